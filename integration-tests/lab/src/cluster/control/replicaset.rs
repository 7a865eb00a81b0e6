//! ReplicaSet -> Pods.
//!
//! Invariant: on scale-down the pods whose end costs least go first, in the order of the real
//! controller.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::work::{Context, Outcome, Task, pod_from_template};
use super::world::Tally;
use crate::cluster::object;
use crate::cluster::schedule::pod::{Phase, PodView};
use crate::cluster::server::DeleteOptions;
use crate::cluster::store::Key;

const RESOURCE: &str = "replicasets.apps";
/// Most pods made or ended in one reconciliation, so that scheduling runs alongside.
const PODS_PER_ROUND: usize = 500;

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key) -> Outcome {
    let Some(set) = context.get(RESOURCE, key) else { return Ok(()) };
    let tally = context.world.tally_of(object::uid(&set));
    let wanted = set["spec"]["replicas"].as_i64().unwrap_or(1);
    if !object::is_deleting(&set) {
        let missing = usize::try_from(wanted - tally.active).unwrap_or(0).min(PODS_PER_ROUND);
        for _ in 0..missing {
            context.create("pods", pod_from_template(&set, &set["spec"]["template"]))?;
        }
        let excess = usize::try_from(tally.active - wanted).unwrap_or(0).min(PODS_PER_ROUND);
        if excess > 0 {
            let mut pods = context.world.pods_of(object::uid(&set));
            pods.retain(|pod| pod.is_active());
            for pod in cheapest_to_end(&pods, excess) {
                context.delete("pods", &pod.key, &DeleteOptions::default())?;
            }
        }
    }
    // The pods just made or ended mark the set again; the status shows what was there before.
    context.set_status(RESOURCE, key, &status(&set, tally))?;
    if let Some(owner) = object::controller_of(&set) {
        let name = owner["name"].as_str().unwrap_or_default();
        context.work.add(Task::Deployment(Key::new(&key.namespace, name)));
    }
    Ok(())
}

fn status(set: &Value, tally: Tally) -> Value {
    json!({
        "replicas": tally.active,
        "fullyLabeledReplicas": tally.active,
        "readyReplicas": tally.ready,
        "availableReplicas": tally.ready,
        "observedGeneration": set["metadata"]["generation"],
    })
}

/// The `count` pods whose end costs least: unassigned, not running, not ready, cheaper by
/// annotation, on nodes with more siblings, ready for a shorter time, restarted more, younger.
pub(super) fn cheapest_to_end(pods: &[Arc<PodView>], count: usize) -> Vec<Arc<PodView>> {
    let mut siblings: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in pods {
        *siblings.entry(&pod.node).or_insert(0) += 1;
    }
    let mut ranked: Vec<&Arc<PodView>> = pods.iter().collect();
    ranked.sort_by_cached_key(|pod| {
        let beside = siblings.get(pod.node.as_str()).copied().unwrap_or(0);
        (
            (!pod.node.is_empty(), pod.phase.min(Phase::Running), pod.is_ready),
            deletion_cost(pod.value()),
            Reverse(beside),
            Reverse(ready_since(pod.value()).to_owned()),
            Reverse(restarts(pod.value())),
            Reverse(created(pod.value()).to_owned()),
            pod.key.clone(),
        )
    });
    ranked.into_iter().take(count).cloned().collect()
}

fn deletion_cost(pod: &Value) -> i64 {
    let cost = object::annotation(pod, "controller.kubernetes.io/pod-deletion-cost");
    cost.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn ready_since(pod: &Value) -> &str {
    let ready = object::condition(pod, "Ready").filter(|condition| condition["status"] == "True");
    ready.and_then(|condition| condition["lastTransitionTime"].as_str()).unwrap_or_default()
}

fn restarts(pod: &Value) -> i64 {
    let containers = object::items(&pod["status"]["containerStatuses"]).iter();
    containers.filter_map(|status| status["restartCount"].as_i64()).max().unwrap_or(0)
}

fn created(pod: &Value) -> &str {
    pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default()
}
