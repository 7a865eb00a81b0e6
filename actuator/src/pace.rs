//! How fast one launch or termination is tried again, and what this leader remembers of it
//! meanwhile.
//!
//! Invariant: measured on this process's monotonic clock alone; nobody waits inside a slot, and one
//! that fails again and again waits longer each time while the others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::cloud::{Class, CloudError, FleetOutcome};

/// First wait after a failure; doubles with each further one.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// Longest wait.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Doublings after which the wait does not grow any more: 2^5 s is more than the longest.
const DOUBLINGS_MAX: u32 = 5;

/// What is remembered of one launch or instance.
#[derive(Clone, Debug)]
pub struct Pace {
    /// When this leader took it up.
    pub since: Instant,
    /// When EC2 was asked last for what it has not answered; when it was taken up, if by another
    /// leader.
    pub asked: Instant,
    /// Failures in a row.
    pub strikes: u32,
    /// Answers that its launch template is not there.
    pub templates_missing: u32,
    /// What EC2 said last.
    pub heard: Option<CloudError>,
    /// What EC2 has answered and nothing could be concluded from yet.
    pub answered: Option<Arc<Answered>>,
    until: Instant,
}

/// The answer to a call, which is the same however often the call is made.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Token of the call.
    pub client_token: String,
    /// What EC2 said.
    pub answer: Result<FleetOutcome, CloudError>,
    /// True when a call before this one may have got through.
    pub repeated: bool,
    /// When it said so.
    pub at: Instant,
}

impl Answered {
    /// True when the answer says all that came of the call.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.answer.as_ref().is_err_and(|error| leaves_doubt(error, self.repeated))
    }
}

/// True when a refusal says nothing of what came of the token: a call before may have got through,
/// whether we know that there was one or EC2 says so.
#[must_use]
pub fn leaves_doubt(error: &CloudError, repeated: bool) -> bool {
    repeated || error.class == Class::TokenReused
}

/// Paces by launch or instance id.
#[derive(Debug, Default)]
pub struct Paces(BTreeMap<String, Pace>);

impl Paces {
    /// What is remembered; begins to remember.
    pub fn of(&mut self, id: &str) -> &mut Pace {
        let now = Instant::now();
        self.0.entry(id.to_owned()).or_insert(Pace {
            since: now,
            asked: now,
            strikes: 0,
            templates_missing: 0,
            heard: None,
            answered: None,
            until: now,
        })
    }

    /// Takes over that it failed: it waits, longer each time.
    pub fn strike(&mut self, id: &str) {
        self.strike_at(id, Instant::now());
    }

    fn strike_at(&mut self, id: &str, now: Instant) {
        let pace = self.of(id);
        let wait = (WAIT_MIN * 2_u32.pow(pace.strikes.min(DOUBLINGS_MAX))).min(WAIT_MAX);
        pace.strikes = pace.strikes.saturating_add(1);
        pace.until = now + wait;
    }

    /// Lets one rest, whatever its failures: what was done shows by itself, or nobody can do it for
    /// now.
    pub fn rest(&mut self, id: &str, wait: Duration) {
        self.of(id).until = Instant::now() + wait;
    }

    /// Failures in a row.
    #[must_use]
    pub fn strikes(&self, id: &str) -> u32 {
        self.0.get(id).map_or(0, |pace| pace.strikes)
    }

    /// Forgets one that is settled.
    pub fn settled(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Forgets all but some.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|id, _| keep(id));
    }

    /// Those that wait at present.
    #[must_use]
    pub fn waiting(&self) -> BTreeSet<String> {
        self.waiting_at(Instant::now())
    }

    fn waiting_at(&self, now: Instant) -> BTreeSet<String> {
        self.0.iter().filter(|(_, pace)| pace.until > now).map(|(id, _)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_bound_and_are_each_ones_own() {
        let mut paces = Paces::default();
        let mut waited = Vec::new();
        for _ in 0..7 {
            let now = Instant::now();
            paces.strike_at("bad", now);
            let over = |seconds: &u64| {
                !paces.waiting_at(now + Duration::from_secs(*seconds)).contains("bad")
            };
            waited.extend((0..).find(over));
        }
        assert_eq!(waited, [1, 2, 4, 8, 16, 30, 30]);
        paces.of("good");
        assert_eq!(paces.waiting(), ["bad".to_owned()].into());
        paces.settled("bad");
        assert_eq!(paces.strikes("bad"), 0);
    }
}
