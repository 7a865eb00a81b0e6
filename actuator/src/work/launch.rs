//! Launching: from a recorded launch to an instance, or to the reason why there is none.
//!
//! Invariant: each call is recorded with its token before it is made. An answer that never came
//! leaves the launch as it is: the same token is used again, after a look at what is there.

mod attempt;
mod outcome;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use longshore_runtime::tasks::Supervisor;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::cloud::CloudError;
use crate::leader::Leader;
use crate::ledger::{Failure, LaunchRecord, LedgerError, Move, Phase};

/// Launches worked on at the same time: EC2's bucket for CreateFleet holds about fifty tokens.
const LAUNCHES_AT_ONCE: usize = 50;
/// Most calls in one go; a launch that needs more is found again at the next reconciliation.
const CALLS_MAX: u32 = 8;
/// Time before a launch with an unclear answer is looked at again.
const PAUSE: Duration = Duration::from_secs(1);

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

pub fn start(leader: &Arc<Leader>, launches: mpsc::Receiver<String>, supervisor: &Supervisor) {
    let leader = Arc::clone(leader);
    let token = supervisor.token().clone();
    supervisor.spawn_once("launches", async move {
        let work = ReceiverStream::new(launches).for_each_concurrent(LAUNCHES_AT_ONCE, |id| {
            let leader = Arc::clone(&leader);
            async move {
                launch(&leader, &id).await;
                leader.busy().remove(&id);
            }
        });
        tokio::select! {
            () = token.cancelled() => {}
            () = work => {}
        }
        Ok(())
    });
}

async fn launch(leader: &Leader, id: &str) {
    let mut heard = Heard::default();
    for _ in 0..CALLS_MAX {
        let Some(record) = leader.record(id).filter(|r| r.phase() == Phase::Pending) else {
            return;
        };
        match attempt::attempt(leader, &record, &mut heard).await {
            Ok(Next::Done) => return,
            Ok(Next::Again) => {}
            Ok(Next::Later) => break,
            Err(error) => {
                tracing::warn!(launch_id = id, %error, "launch waits for the ledger");
                break;
            }
        }
    }
    tokio::time::sleep(PAUSE).await;
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
