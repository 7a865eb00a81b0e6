//! A call whose answer is not known: by this process or by a leader before it.
//!
//! Invariant: such a call is never taken for failed. What there is of the launch is looked up
//! first; then the same call is made again, byte for byte; and nothing is concluded from not
//! finding an instance before EC2 must have shown it.

use longshore_runtime::planted;

use super::attempt::{self, overdue};
use super::{Heard, Next, fail, outcome, record};
use crate::cloud::Instance;
use crate::inventory::VISIBLE_WITHIN;
use crate::leader::Leader;
use crate::ledger::{LaunchRecord, LedgerError, Move};
use crate::work::instances;

pub async fn resume(
    leader: &Leader,
    launch: &LaunchRecord,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    if planted::is("S8") {
        return void(leader, launch).await;
    }
    match instances::of_launch(leader, launch.launch_id(), &launch.client_token()).await {
        Ok(found) if !found.is_empty() => return adopt(leader, launch, &found).await,
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(launch_id = launch.launch_id(), %error, "outcome looked up again");
            leader.paces().of(launch.launch_id()).heard = Some(error);
            return Ok(Next::Later);
        }
    }
    // One that is not wanted any more is only waited for: another call might yet launch it.
    let wanted = !launch.cancelled && overdue(leader, launch).is_none();
    let Some(order) = launch.unanswered().filter(|_| wanted) else {
        return nothing_came(leader, launch).await;
    };
    let class = leader.class_of(launch);
    let answer = attempt::create_fleet(leader, launch, &order).await;
    let deal = outcome::Deal { launch, class: class.as_deref(), order: &order, repeated: true };
    outcome::settle(leader, &deal, answer, heard).await
}

/// True once EC2 must have shown what any call so far launched.
pub fn must_show(leader: &Leader, launch_id: &str) -> bool {
    leader.paces().of(launch_id).asked.elapsed() >= VISIBLE_WITHIN
}

/// Nothing is found. Once it must have been, the call is over: nothing came of it.
pub async fn nothing_came(leader: &Leader, launch: &LaunchRecord) -> Result<Next, LedgerError> {
    if !must_show(leader, launch.launch_id()) {
        return Ok(Next::Later);
    }
    match overdue(leader, launch) {
        Some(failure) if !launch.cancelled => fail(leader, launch, failure).await,
        _ => void(leader, launch).await,
    }
}

/// The call's token is used up.
async fn void(leader: &Leader, launch: &LaunchRecord) -> Result<Next, LedgerError> {
    record(leader, launch, Move::Refused { exhausted: false }).await?;
    Ok(if launch.cancelled { Next::Later } else { Next::Again })
}

/// The call got through. Of several instances the first that lives is taken; reconciliation ends
/// the rest.
async fn adopt(
    leader: &Leader,
    launch: &LaunchRecord,
    found: &[Instance],
) -> Result<Next, LedgerError> {
    let best = found.iter().min_by_key(|instance| (!instance.alive(), &instance.instance_id));
    let Some(best) = best else { return Ok(Next::Later) };
    let instance_id = best.instance_id.clone();
    record(leader, launch, Move::Launched { instance_id, ec2_request_id: String::new() }).await?;
    leader.events().bought(launch);
    leader.look.notify_one();
    Ok(Next::Done)
}
