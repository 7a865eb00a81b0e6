//! A call whose answer is not known: by this process or by a leader before it.
//!
//! Invariant: such a call is never taken for failed. What there is of it is looked up first; then
//! the same call is made again, byte for byte, for all launches that it was made for; and nothing
//! is concluded from not finding an instance before EC2 must have shown it. A call that has been
//! answered is not made again by the leader that heard it: neither while only the ledger lacks the
//! answer, nor while what was refused is waited for.

use std::sync::Arc;

use longshore_runtime::planted;
use tokio::time::Instant;

use super::call::{FleetCall, create_fleet};
use super::patience::{must_show, overdue};
use super::{Heard, Members, Next, award, fail, note, outcome, record};
use crate::cloud::{CallMarks, CloudError, FleetOutcome, Instance, Order, TAG_BATCH, TAG_LAUNCH};
use crate::leader::Leader;
use crate::ledger::{LaunchRecord, LedgerError, Move};
use crate::pace::Answered;
use crate::work::instances;

pub async fn resume(
    leader: &Leader,
    members: &Members,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let Some(first) = members.first() else { return Ok(Next::Done) };
    let lost = !first.batch_id.is_empty() && planted::is("S33a");
    if planted::is("S8") || lost {
        return void(leader, members).await;
    }
    let known = answered(leader, first);
    let whole = known.clone().filter(|known| known.is_whole() || planted::is("S36a"));
    if let Some((known, order)) = whole.zip(call(leader, first)) {
        let call = call_of(members, &order, &[], &known);
        return conclude(leader, call, known.answer.clone(), heard).await;
    }
    let token = first.client_token();
    let (key, value) = match first.batch_id.as_str() {
        "" => (TAG_LAUNCH, first.launch_id()),
        batch_id => (TAG_BATCH, batch_id),
    };
    let marks = CallMarks { key, value, client_token: &token };
    let found = match instances::of_call(leader, marks).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(token, %error, "outcome looked up again");
            note(leader, members, |pace| pace.heard = Some(error.clone()));
            return Ok(Next::Later);
        }
    };
    let found = unclaimed(leader, found);
    if found.len() >= members.len() {
        return award::adopt(leader, members, &found).await;
    }
    // One that is not wanted any more is only waited for: another call might yet launch it.
    let wants = |launch: &Arc<LaunchRecord>| !launch.cancelled && overdue(leader, launch).is_none();
    let order = call(leader, first).filter(|_| members.iter().any(wants));
    let Some(order) = order else { return nothing_more(leader, members, &found).await };
    let said = match known {
        Some(known) => known,
        None => {
            let answer = create_fleet(leader, members, &order).await;
            Arc::new(Answered { client_token: token, answer, repeated: true, at: Instant::now() })
        }
    };
    let call = call_of(members, &order, &found, &said);
    conclude(leader, call, said.answer.clone(), heard).await
}

/// A call that was answered.
fn call_of<'a>(
    members: &'a Members,
    order: &'a Order,
    found: &'a [Instance],
    said: &Answered,
) -> FleetCall<'a> {
    let (repeated, answered) = (said.repeated, said.at);
    FleetCall { members, class: None, order, found, repeated, answered }
}

/// What EC2 has said of the call of this launch, which nothing could be concluded from yet.
fn answered(leader: &Leader, launch: &LaunchRecord) -> Option<Arc<Answered>> {
    let known = leader.paces().of(launch.launch_id()).answered.clone();
    known.filter(|known| known.client_token == launch.client_token() && !planted::is("S35"))
}

/// Takes down what EC2 has answered to a call, and whether a call before may have got through.
async fn conclude(
    leader: &Leader,
    call: FleetCall<'_>,
    answer: Result<FleetOutcome, CloudError>,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let class = call.members.first().and_then(|first| leader.class_of(first));
    let call = FleetCall { class: class.as_deref(), ..call };
    outcome::settle(leader, &call, answer, heard).await
}

/// The call as it was made.
fn call(leader: &Leader, launch: &LaunchRecord) -> Option<Order> {
    if launch.batch_id.is_empty() {
        return launch.unanswered();
    }
    leader.ledger.book().batches.get(&launch.batch_id).map(|batch| batch.call())
}

/// Those that no other launch has.
fn unclaimed(leader: &Leader, found: Vec<Instance>) -> Vec<Instance> {
    let book = leader.ledger.book();
    let free = |instance: &Instance| book.may_be_claimed(&instance.instance_id);
    found.into_iter().filter(free).collect()
}

/// No more than this is found. Once it must have been, the call is over: nothing else came of it.
async fn nothing_more(
    leader: &Leader,
    members: &Members,
    found: &[Instance],
) -> Result<Next, LedgerError> {
    if !must_show(leader, members) {
        return Ok(Next::Later);
    }
    if !found.is_empty() {
        return award::adopt(leader, members, found).await;
    }
    let late = |launch: &&Arc<LaunchRecord>| !launch.cancelled && overdue(leader, launch).is_some();
    for launch in members.iter().filter(late) {
        let Some(failure) = overdue(leader, launch) else { continue };
        fail(leader, std::slice::from_ref(launch), failure).await?;
    }
    let rest: Vec<_> = members.iter().filter(|launch| !late(launch)).cloned().collect();
    if rest.is_empty() { Ok(Next::Done) } else { void(leader, &rest).await }
}

/// The call's token is used up.
async fn void(leader: &Leader, members: &Members) -> Result<Next, LedgerError> {
    record(leader, members, Move::Refused { exhausted: false }).await?;
    Ok(Next::Again)
}
