//! Terminations: instances in batches.
//!
//! Invariant: terminating twice is harmless, so an unclear answer is followed by another call.

use std::sync::Arc;
use std::time::Duration;

use longshore_runtime::tasks::Supervisor;
use tokio::sync::mpsc;

use super::explain;
use super::reconciling::Doomed;
use crate::leader::Leader;

/// Most instances in a call, and the most EC2 takes comfortably.
const BATCH_INSTANCES: usize = 500;
/// Time between two calls for the same instances when the first failed.
const PAUSE: Duration = Duration::from_secs(2);

pub fn start(leader: &Arc<Leader>, mut doomed: mpsc::Receiver<Doomed>, supervisor: &Supervisor) {
    let leader = Arc::clone(leader);
    let token = supervisor.token().clone();
    supervisor.spawn_once("terminations", async move {
        let mut batch = Vec::with_capacity(BATCH_INSTANCES);
        loop {
            tokio::select! {
                () = token.cancelled() => return Ok(()),
                count = doomed.recv_many(&mut batch, BATCH_INSTANCES) => {
                    if count == 0 {
                        return Ok(());
                    }
                }
            }
            terminate(&leader, std::mem::take(&mut batch)).await;
        }
    });
}

async fn terminate(leader: &Leader, batch: Vec<Doomed>) {
    let ids: Vec<_> = batch.iter().map(|doomed| doomed.instance_id.clone()).collect();
    leader.events().terminating(&ids);
    match leader.cloud().terminate(&ids).await {
        Ok(()) => {
            leader.inventory.send_modify(|inventory| inventory.terminating(&ids));
            leader.look.notify_one();
        }
        Err(error) => {
            let launch = batch.first().and_then(|doomed| leader.record(&doomed.launch_id));
            let why = explain::for_launch(leader, launch.as_deref(), &error).await;
            tracing::error!(instances = ids.join(" "), %why, "cannot terminate instances");
            tokio::time::sleep(PAUSE).await;
        }
    }
    let mut busy = leader.busy();
    for id in &ids {
        busy.remove(id);
    }
}
