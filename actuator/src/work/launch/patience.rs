//! How long a launch is worked on, and when silence about it says something.
//!
//! Invariant: judged by this process's own monotonic clock.

use std::time::Duration;

use longshore_runtime::planted;

use super::Members;
use crate::inventory::VISIBLE_WITHIN;
use crate::leader::Leader;
use crate::ledger::{Failure, LaunchRecord};

/// Longest time a leader works on a launch, its answers outstanding apart: the next plan does
/// better.
const DEADLINE: Duration = Duration::from_secs(300);
/// Most calls for one launch, over all leaders: far more than it has capacity types and templates.
const ATTEMPTS_MAX: u32 = 40;

/// Why no further call is made for a launch; none while there may be some.
pub fn overdue(leader: &Leader, launch: &LaunchRecord) -> Option<Failure> {
    let pace = leader.paces().of(launch.launch_id()).clone();
    if (pace.since.elapsed() < DEADLINE && launch.attempts < ATTEMPTS_MAX) || planted::is("S9a") {
        return None;
    }
    let reason = pace.heard.as_ref().map_or("LAUNCH_DEADLINE", |error| error.class.reason());
    let said = pace.heard.as_ref().map_or_else(
        || "its node class is not resolved, or it is not known what the region sells".to_owned(),
        ToString::to_string,
    );
    Some(Failure {
        reason: reason.to_owned(),
        message: format!(
            "no instance after {} calls in {} s ({said}); the next plan asks again",
            launch.attempts,
            pace.since.elapsed().as_secs()
        ),
        retryable: true,
    })
}

/// True once EC2 must have shown what any call so far launched.
pub fn must_show(leader: &Leader, members: &Members) -> bool {
    let asked = |id: &str| leader.paces().of(id).asked;
    members.iter().all(|launch| asked(launch.launch_id()).elapsed() >= VISIBLE_WITHIN)
}
