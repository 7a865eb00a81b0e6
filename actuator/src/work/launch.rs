//! Launching: from a recorded launch to an instance, or to the reason why there is none. Launches
//! that are equal but for their claim are asked for in one call.
//!
//! Invariant: each call is recorded with its token before it is made. An answer that never came
//! leaves its launches as they are: the same call is made again with the same token, after a look
//! at what is there. Every launch has a deadline, and none waits in a slot.

mod attempt;
mod award;
mod call;
mod group;
mod outcome;
mod patience;
mod resume;

use std::sync::Arc;

use longshore_runtime::planted;
use longshore_runtime::tasks::Supervisor;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::cloud::CloudError;
use crate::fair::Fair;
use crate::leader::Leader;
use crate::ledger::{Failure, LaunchRecord, LedgerError, Move, Phase};
use crate::pace::Pace;

/// Calls under way at the same time: EC2's bucket for CreateFleet holds about fifty tokens.
const LAUNCHES_AT_ONCE: usize = 50;
/// Most calls in one go; a launch that needs more is found again at the next reconciliation.
const CALLS_MAX: u32 = 8;

/// Launches that one call is about; never empty.
type Members = [Arc<LaunchRecord>];

/// What to do after an attempt.
enum Next {
    /// The launches are settled.
    Done,
    /// Ask for something else at once.
    Again,
    /// Look at them again later.
    Later,
}

/// What EC2 said during the attempts at one launch.
#[derive(Default)]
struct Heard(Vec<CloudError>);

pub fn start(leader: &Arc<Leader>, queue: Arc<Fair<String>>, supervisor: &Supervisor) {
    let (leader, owner) = (Arc::clone(leader), supervisor.clone());
    supervisor.spawn_once("launches", async move {
        let slots = Arc::new(Semaphore::new(LAUNCHES_AT_ONCE));
        let token = owner.token().clone();
        loop {
            let next = async { (Arc::clone(&slots).acquire_owned().await, queue.pop().await) };
            let Some((slot, id)) = token.run_until_cancelled(next).await else { return Ok(()) };
            let group = group::gather(&leader, &queue, id);
            begin(&leader, group, slot?, &owner);
        }
    });
}

/// Works on launches in a slot, which is free again as soon as no call is under way. A panic is
/// their own: it is logged, and they are tried again later and later.
fn begin(leader: &Arc<Leader>, group: Vec<String>, slot: OwnedSemaphorePermit, owner: &Supervisor) {
    let (worker, token) = (Arc::clone(leader), owner.token().clone());
    let (leader, names) = (Arc::clone(leader), group.clone());
    let work = async move {
        token.run_until_cancelled(launch(&worker, &names)).await;
        Ok(())
    };
    owner.spawn_contained("launch", work, move |ended| {
        for id in &group {
            if ended.is_err() {
                leader.paces().strike(id);
            }
            leader.busy().remove(id);
        }
        drop(slot);
    });
}

async fn launch(leader: &Leader, group: &[String]) {
    let mut heard = Heard::default();
    for _ in 0..CALLS_MAX {
        let members = group::pending(leader, group);
        if members.is_empty() {
            break;
        }
        match attempt::attempt(leader, &members, &mut heard).await {
            Ok(Next::Done | Next::Again) => {}
            Ok(Next::Later) => break,
            Err(error) => {
                let first = members.first().map_or("", |record| record.launch_id());
                tracing::warn!(launch_id = first, %error, "launch waits for the ledger");
                if members.len() > 1 && error.is_refusal() {
                    leader.share_nothing();
                }
                break;
            }
        }
    }
    let slow = rest(leader, group);
    if slow && planted::is("S15") {
        tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    }
}

/// Those that are not settled wait a while, longer each time; whether there are any.
fn rest(leader: &Leader, group: &[String]) -> bool {
    let book = leader.ledger.book();
    let mut paces = leader.paces();
    let mut any = false;
    for id in group {
        if book.launches.get(id).is_some_and(|record| record.phase() == Phase::Pending) {
            paces.strike(id);
            any = true;
        } else {
            paces.settled(id);
        }
    }
    any
}

/// Makes a move of each and says when another one overtook it.
async fn record(leader: &Leader, members: &Members, step: Move) -> Result<(), LedgerError> {
    let moves = members.iter().map(|launch| (launch.launch_id().to_owned(), step.clone()));
    for illegal in leader.ledger.record(moves.collect(), leader.now_ms()).await? {
        tracing::warn!(%illegal, "overtaken by another move");
    }
    Ok(())
}

async fn fail(leader: &Leader, members: &Members, failure: Failure) -> Result<Next, LedgerError> {
    for launch in members {
        leader.events().failed(launch.launch_id(), &failure.reason, &failure.message);
    }
    record(leader, members, Move::Fail(failure)).await?;
    Ok(Next::Done)
}

/// Notes something about each.
fn note(leader: &Leader, members: &Members, note: impl Fn(&mut Pace)) {
    let mut paces = leader.paces();
    members.iter().for_each(|launch| note(paces.of(launch.launch_id())));
}

impl Heard {
    /// The failure with what EC2 said.
    fn explain(&self, failure: Failure) -> Failure {
        let Some(first) = self.0.first() else { return failure };
        let same = self.0.iter().all(|error| error.class == first.class);
        let mut said: Vec<_> =
            self.0.iter().map(|e| format!("{}: {}", e.code, e.message)).collect();
        said.sort();
        said.dedup();
        let shown = said.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
        Failure {
            reason: if same { first.class.reason().to_owned() } else { failure.reason },
            message: format!("{}. EC2 said: {shown}", failure.message),
            ..failure
        }
    }
}

#[cfg(test)]
mod tests;
