//! Terminations: instances in batches.
//!
//! Invariant: terminating twice is harmless, so an unclear answer is followed by another call. One
//! instance that cannot be ended keeps no other from it: batches are split, and it waits longer
//! each time.

use std::sync::Arc;
use std::time::Duration;

use longshore_runtime::planted;
use longshore_runtime::tasks::Supervisor;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::explain;
use super::reconciling::Subject;
use crate::cloud::{Class, CloudError};
use crate::leader::Leader;
use crate::wire;

/// Most instances in a call, and the most EC2 takes comfortably.
const BATCH_INSTANCES: usize = 500;
/// Longest time for a call; the client library tries it several times within.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

pub fn start(
    leader: &Arc<Leader>,
    mut terminating: mpsc::Receiver<Subject>,
    supervisor: &Supervisor,
) {
    let leader = Arc::clone(leader);
    let token = supervisor.token().clone();
    supervisor.spawn_once("terminations", async move {
        let mut batch = Vec::with_capacity(BATCH_INSTANCES);
        loop {
            tokio::select! {
                () = token.cancelled() => return Ok(()),
                count = terminating.recv_many(&mut batch, BATCH_INSTANCES) => {
                    if count == 0 {
                        return Ok(());
                    }
                }
            }
            let batch = std::mem::take(&mut batch);
            let ending = end_all(&leader, &batch);
            if token.run_until_cancelled(ending).await.is_none() {
                return Ok(());
            }
            let mut busy = leader.busy();
            for terminating in &batch {
                busy.remove(&terminating.instance_id);
            }
        }
    });
}

/// Ends what can be ended, in batches that are smaller the more often their instances have failed.
async fn end_all(leader: &Leader, batch: &[Subject]) {
    let strikes = |terminating: &Subject| leader.paces().strikes(&terminating.instance_id);
    let mut batch = batch.to_vec();
    batch.sort_by_cached_key(|terminating| (strikes(terminating), terminating.instance_id.clone()));
    let mut waiting = Vec::new();
    for group in batch.chunk_by(|a, b| strikes(a) == strikes(b)) {
        let size = group.first().map_or(BATCH_INSTANCES, |first| size_after(strikes(first)));
        waiting.extend(group.chunks(size).map(<[Subject]>::to_vec));
    }
    waiting.reverse();
    while let Some(mut part) = waiting.pop() {
        let Err(error) = end(leader, &part).await else { continue };
        let splits = part.len() > 1 && !matches!(error.class, Class::Throttled | Class::Unknown);
        if splits && !planted::is("S11") {
            let back = part.split_off(part.len() / 2);
            waiting.extend([back, part]);
        } else {
            failed(leader, &part, &error).await;
        }
    }
}

/// Instances that go into one call after so many failures: none of them can hide behind another for
/// long.
fn size_after(strikes: u32) -> usize {
    let halvings = if planted::is("S11") { 0 } else { strikes };
    BATCH_INSTANCES.checked_shr(halvings).unwrap_or_default().max(1)
}

async fn end(leader: &Leader, part: &[Subject]) -> Result<(), CloudError> {
    let ids: Vec<_> = part.iter().map(|terminating| terminating.instance_id.clone()).collect();
    leader.events().terminating(&ids);
    let answer = timeout(ANSWER_WITHIN, leader.cloud().terminate(&ids)).await;
    answer.unwrap_or_else(|_| Err(CloudError::silent("ec2:TerminateInstances")))?;
    for id in &ids {
        leader.paces().settled(id);
    }
    leader.inventory.send_modify(|inventory| inventory.terminating(&ids));
    leader.look.notify_one();
    Ok(())
}

/// They are asked for again later; meanwhile their launches show why.
async fn failed(leader: &Leader, part: &[Subject], error: &CloudError) {
    let records = part.iter().filter_map(|terminating| leader.record(&terminating.launch_id));
    let records: Vec<_> = records.collect();
    let why = explain::for_launch(leader, records.first().map(|r| &**r), error).await;
    let ids: Vec<_> = part.iter().map(|terminating| terminating.instance_id.as_str()).collect();
    tracing::error!(instances = ids.join(" "), %why, "cannot terminate instances");
    for id in ids {
        leader.paces().strike(id);
    }
    for record in records {
        let mut shown = (*record).clone();
        error.class.reason().clone_into(&mut shown.reason);
        shown.message = format!("its instance cannot be terminated: {why}");
        wire::show_launch(&leader.board, &shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scripted, leader};

    #[tokio::test]
    async fn an_instance_that_cannot_be_ended_keeps_no_other_from_it() {
        let protected = ["i-007".to_owned(), "i-008".to_owned(), "i-250".to_owned()];
        let cloud =
            Arc::new(Scripted { protected: protected.clone().into(), ..Scripted::default() });
        let leader = leader(Arc::clone(&cloud)).await;
        let terminating =
            |n: usize| Subject { instance_id: format!("i-{n:03}"), launch_id: String::new() };
        let batch: Vec<_> = (0..400).map(terminating).collect();
        end_all(&leader, &batch).await;
        assert_eq!(crate::leader::lock(&cloud.ended).len(), batch.len() - protected.len());
        let waiting: Vec<_> = leader.paces().waiting().into_iter().collect();
        assert_eq!(waiting, protected);
    }

    #[test]
    fn batches_shrink_to_one_instance() {
        let sizes: Vec<_> = [0, 1, 8, 9, 100].into_iter().map(size_after).collect();
        assert_eq!(sizes, [500, 250, 1, 1, 1]);
    }
}
