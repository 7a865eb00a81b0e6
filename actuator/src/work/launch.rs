//! Launching: from a recorded launch to an instance, or to the reason why there is none.
//!
//! Invariant: each call is recorded with its token before it is made. An answer that never came
//! leaves the launch as it is: the same call is made again with the same token, after a look at
//! what is there. Every launch has a deadline, and none waits in a slot.

mod attempt;
mod outcome;
mod resume;

use std::sync::Arc;

use longshore_runtime::planted;
use longshore_runtime::tasks::Supervisor;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::cloud::CloudError;
use crate::fair::Fair;
use crate::leader::Leader;
use crate::ledger::{Failure, LaunchRecord, LedgerError, Move, Phase};

/// Calls under way at the same time: EC2's bucket for CreateFleet holds about fifty tokens.
const LAUNCHES_AT_ONCE: usize = 50;
/// Most calls in one go; a launch that needs more is found again at the next reconciliation.
const CALLS_MAX: u32 = 8;

/// What to do after an attempt.
enum Next {
    /// The launch is settled.
    Done,
    /// Ask for something else at once.
    Again,
    /// Look at it again later.
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
            begin(&leader, id, slot?, &owner);
        }
    });
}

/// Works on a launch in a slot, which is free again as soon as no call is under way. A panic is the
/// launch's own: it is logged, and tried again later and later.
fn begin(leader: &Arc<Leader>, id: String, slot: OwnedSemaphorePermit, owner: &Supervisor) {
    let (worker, token) = (Arc::clone(leader), owner.token().clone());
    let (leader, name) = (Arc::clone(leader), id.clone());
    let work = async move {
        token.run_until_cancelled(launch(&worker, &name)).await;
        Ok(())
    };
    owner.spawn_contained("launch", work, move |ended| {
        if ended.is_err() {
            leader.paces().strike(&id);
        }
        leader.busy().remove(&id);
        drop(slot);
    });
}

async fn launch(leader: &Leader, id: &str) {
    let mut heard = Heard::default();
    for _ in 0..CALLS_MAX {
        let Some(record) = leader.record(id).filter(|r| r.phase() == Phase::Pending) else {
            return;
        };
        match attempt::attempt(leader, &record, &mut heard).await {
            Ok(Next::Done) => return leader.paces().settled(id),
            Ok(Next::Again) => {}
            Ok(Next::Later) => break,
            Err(error) => {
                tracing::warn!(launch_id = id, %error, "launch waits for the ledger");
                break;
            }
        }
    }
    leader.paces().strike(id);
    if planted::is("S15") {
        tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    }
}

/// Makes a move and says when another one overtook it.
async fn record(leader: &Leader, launch: &LaunchRecord, step: Move) -> Result<(), LedgerError> {
    let moves = vec![(launch.launch_id().to_owned(), step)];
    for illegal in leader.ledger.record(moves, leader.now_ms()).await? {
        tracing::warn!(%illegal, "overtaken by another move");
    }
    Ok(())
}

async fn fail(
    leader: &Leader,
    launch: &LaunchRecord,
    failure: Failure,
) -> Result<Next, LedgerError> {
    leader.events().failed(launch.launch_id(), &failure.reason, &failure.message);
    record(leader, launch, Move::Fail(failure)).await?;
    Ok(Next::Done)
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
