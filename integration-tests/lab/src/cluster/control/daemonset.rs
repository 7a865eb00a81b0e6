//! DaemonSet -> Pods, one for each node that wants it.
//!
//! Invariant: each pod is pinned to its node by affinity and scheduled like any other.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::work::{Context, Outcome, count, pod_from_template};
use crate::cluster::object;
use crate::cluster::schedule::pod::PodView;
use crate::cluster::schedule::shape::{Shape, Taint};
use crate::cluster::server::DeleteOptions;
use crate::cluster::store::Key;

const RESOURCE: &str = "daemonsets.apps";
/// Taints every daemon pod tolerates: key and effect.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key) -> Outcome {
    let Some(set) = context.get(RESOURCE, key) else { return Ok(()) };
    let pods = context.world.pods_of(object::uid(&set));
    let by_node: BTreeMap<String, Vec<&Arc<PodView>>> = group(&pods);
    let model = daemon_pod(&set, "");
    let shape = Shape::of(&without_pin(&model));
    let mut wanted = 0;
    for node in context.list("nodes", "") {
        let name = object::name(&node);
        let here = by_node.get(name).map_or(&[][..], Vec::as_slice);
        let (may_start, may_stay) = verdict(&shape, &node);
        wanted += i64::from(may_start);
        if object::is_deleting(&set) || !may_stay {
            end(context, here.iter())?;
        } else if may_start && !here.iter().any(|pod| !pod.is_terminal()) {
            end(context, here.iter())?;
            context.create("pods", daemon_pod(&set, name))?;
        }
    }
    let scheduled = count(pods.iter().filter(|pod| pod.is_active()));
    let ready = count(pods.iter().filter(|pod| pod.is_ready));
    context.set_status(
        RESOURCE,
        key,
        &json!({
            "observedGeneration": set["metadata"]["generation"],
            "desiredNumberScheduled": wanted,
            "currentNumberScheduled": scheduled,
            "updatedNumberScheduled": scheduled,
            "numberMisscheduled": 0,
            "numberReady": ready,
            "numberAvailable": ready,
            "numberUnavailable": (wanted - ready).max(0),
        }),
    )
}

/// Whether a daemon pod may be started on the node, and whether one there may stay.
fn verdict(shape: &Shape, node: &Value) -> (bool, bool) {
    if !shape.selects(node) {
        return (false, false);
    }
    let taints = Taint::of_node(node);
    let against = |effects: &[&str]| {
        let hard = taints.iter().filter(|taint| effects.contains(&taint.effect.as_str()));
        hard.filter(|taint| !shape.tolerates(taint)).count()
    };
    (against(&["NoSchedule", "NoExecute"]) == 0, against(&["NoExecute"]) == 0)
}

fn end<'a>(context: &Context<'_>, pods: impl Iterator<Item = &'a &'a Arc<PodView>>) -> Outcome {
    for pod in pods.filter(|pod| !pod.is_deleting) {
        context.delete("pods", &pod.key, &DeleteOptions::default())?;
    }
    Ok(())
}

fn group(pods: &[Arc<PodView>]) -> BTreeMap<String, Vec<&Arc<PodView>>> {
    let mut by_node: BTreeMap<String, Vec<&Arc<PodView>>> = BTreeMap::new();
    for pod in pods {
        let node = if pod.node.is_empty() { pin(pod.value()) } else { pod.node.clone() };
        by_node.entry(node).or_default().push(pod);
    }
    by_node
}

fn pinned_terms(pod: &Value) -> &Value {
    let affinity = &pod["spec"]["affinity"]["nodeAffinity"];
    &affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
}

/// The node a daemon pod that is not bound yet is meant for.
fn pin(pod: &Value) -> String {
    let values = &pinned_terms(pod)[0]["matchFields"][0]["values"][0];
    values.as_str().unwrap_or_default().to_owned()
}

fn daemon_pod(set: &Value, node: &str) -> Value {
    let mut pod = pod_from_template(set, &set["spec"]["template"]);
    let fields = json!([{ "key": "metadata.name", "operator": "In", "values": [node] }]);
    let terms: Vec<Value> = match object::items(pinned_terms(&pod)) {
        [] => vec![json!({ "matchFields": fields })],
        terms => terms
            .iter()
            .map(|term| {
                let mut term = term.clone();
                term["matchFields"] = fields.clone();
                term
            })
            .collect(),
    };
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({ "nodeSelectorTerms": terms });
    let mut tolerations = object::items(&pod["spec"]["tolerations"]).to_vec();
    tolerations.extend(
        TOLERATED
            .iter()
            .map(|(key, effect)| json!({ "key": key, "operator": "Exists", "effect": effect })),
    );
    pod["spec"]["tolerations"] = Value::Array(tolerations);
    pod
}

/// The pod as it would be judged on any node.
fn without_pin(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let node_affinity = &mut pod["spec"]["affinity"]["nodeAffinity"];
    let required = &mut node_affinity["requiredDuringSchedulingIgnoredDuringExecution"];
    let mut is_bare = true;
    for term in required["nodeSelectorTerms"].as_array_mut().into_iter().flatten() {
        object::remove(term, "matchFields");
        is_bare &= object::items(&term["matchExpressions"]).is_empty();
    }
    if is_bare {
        object::remove(node_affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    }
    pod
}
