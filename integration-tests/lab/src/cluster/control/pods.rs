//! Pods past their grace.
//!
//! Invariant: a pod is removed here only when nobody else will: its node has no kubelet, or does
//! not exist.

use super::work::{Context, Outcome, Task};
use crate::cluster::clock;
use crate::cluster::server::DeleteOptions;
use crate::cluster::store::Key;

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key) -> Outcome {
    let Some(pod) = context.world.pod(key).filter(|pod| pod.is_deleting) else { return Ok(()) };
    if !context.reaps_pods_after_grace {
        return Ok(());
    }
    let metadata = &pod.value()["metadata"];
    if metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0 {
        return Ok(());
    }
    let end = metadata["deletionTimestamp"].as_str().and_then(clock::parse);
    match end.filter(|end| *end > context.server.clock().now()) {
        Some(end) => {
            context.work.add_at(end, Task::Pod(key.clone()));
            Ok(())
        }
        None => {
            let now = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
            context.delete("pods", key, &now)
        }
    }
}
