//! Nodes: the taints that follow their conditions, eviction by NoExecute taints, and the pods of
//! nodes that are gone.
//!
//! Invariant: the lifecycle taints are a function of the Ready condition and the cordon.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::work::{Context, Outcome, Task};
use crate::cluster::clock;
use crate::cluster::object;
use crate::cluster::schedule::pod::PodView;
use crate::cluster::schedule::shape::Taint;
use crate::cluster::server::{DeleteOptions, Part};
use crate::cluster::store::Key;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that close a node for new pods, and their taints.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

pub(super) fn reconcile(context: &mut Context<'_>, name: &str) -> Outcome {
    let Some(node) = context.get("nodes", &Key::new("", name)) else {
        return collect_pods(context, name);
    };
    let (taints, changed) = lifecycle_taints(&node, &context.server.clock().stamp());
    if changed {
        context.modify("nodes", &Key::new("", name), Part::Main, |node| {
            node["spec"]["taints"] = Value::Array(taints.clone());
        })?;
    }
    if object::condition(&node, "Ready").is_some_and(|ready| ready["status"] != "True") {
        mark_pods_not_ready(context, name)?;
    }
    evict_intolerant(context, name, &taints)
}

/// The node's taints with the lifecycle ones as they should be, and whether that is a change.
fn lifecycle_taints(node: &Value, stamp: &str) -> (Vec<Value>, bool) {
    let due = due_taints(node);
    let is_ours = |taint: &Value| {
        let key = taint["key"].as_str().unwrap_or_default();
        [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&key)
            || PRESSURES.iter().any(|(_, ours)| *ours == key)
    };
    let is_due = |taint: &Value| {
        due.iter().any(|(key, effect)| taint["key"] == *key && taint["effect"] == *effect)
    };
    let present = object::items(&node["spec"]["taints"]);
    let mut taints: Vec<Value> =
        present.iter().filter(|taint| !is_ours(taint) || is_due(taint)).cloned().collect();
    let mut changed = taints.len() != present.len();
    for (key, effect) in due {
        if !taints.iter().any(|taint| taint["key"] == key && taint["effect"] == effect) {
            taints.push(json!({ "key": key, "effect": effect, "timeAdded": stamp }));
            changed = true;
        }
    }
    (taints, changed)
}

fn due_taints(node: &Value) -> Vec<(&'static str, &'static str)> {
    let mut due = Vec::new();
    let ready = object::condition(node, "Ready").and_then(|ready| ready["status"].as_str());
    match ready {
        Some("True") => {}
        Some("Unknown") => due.extend([(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]),
        Some(_) => due.extend([(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
        None => due.push((NOT_READY, "NoSchedule")),
    }
    if node["spec"]["unschedulable"] == true {
        due.push((UNSCHEDULABLE, "NoSchedule"));
    }
    for (condition, taint) in PRESSURES {
        if object::condition_is_true(node, condition) {
            due.push((taint, "NoSchedule"));
        }
    }
    due
}

fn mark_pods_not_ready(context: &Context<'_>, node: &str) -> Outcome {
    let stamp = context.server.clock().stamp();
    for pod in context.world.pods_on(node).into_iter().filter(|pod| pod.is_ready) {
        context.modify("pods", &pod.key, Part::Status, |pod| {
            let condition = json!({ "type": "Ready", "status": "False", "reason": "NodeNotReady" });
            object::set_condition(pod, condition, &stamp);
        })?;
    }
    Ok(())
}

/// Ends pods that do not tolerate a NoExecute taint, those with a limit after it.
fn evict_intolerant(context: &mut Context<'_>, node: &str, taints: &[Value]) -> Outcome {
    let parsed = Taint::of_node(&json!({ "spec": { "taints": taints } }));
    let hard: Vec<(&Taint, &Value)> =
        parsed.iter().zip(taints).filter(|(taint, _)| taint.effect == "NoExecute").collect();
    if hard.is_empty() {
        return Ok(());
    }
    let now = context.server.clock().now();
    for pod in context.world.pods_on(node).into_iter().filter(|pod| pod.is_active()) {
        let deadlines = hard.iter().filter_map(|(taint, raw)| deadline(&pod, taint, raw, now));
        match deadlines.min() {
            None => {}
            Some(at) if at > now => context.work.add_at(at, Task::Node(node.to_owned())),
            Some(_) => context.disrupt(
                &pod,
                "DeletionByTaintManager",
                "Taint manager: deleting due to NoExecute taint",
                &DeleteOptions::default(),
            )?,
        }
    }
    Ok(())
}

/// When the pod has to go because of the taint; none when it may stay.
fn deadline(
    pod: &PodView,
    taint: &Taint,
    raw: &Value,
    now: jiff::Timestamp,
) -> Option<jiff::Timestamp> {
    let tolerations: Vec<_> =
        pod.shape.tolerations.iter().filter(|toleration| toleration.tolerates(taint)).collect();
    if tolerations.is_empty() {
        return Some(now);
    }
    let seconds = tolerations.iter().filter_map(|toleration| toleration.seconds).min()?;
    let since = raw["timeAdded"].as_str().and_then(clock::parse).unwrap_or(now);
    since.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// Removes pods bound to a node that does not exist any more.
fn collect_pods(context: &Context<'_>, node: &str) -> Outcome {
    let at_once = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
    for pod in context.world.pods_on(node) {
        if pod.is_terminal() || pod.is_deleting {
            context.delete("pods", &pod.key, &at_once)?;
        } else {
            context.disrupt(&pod, "DeletionByPodGC", "PodGC: node no longer exists", &at_once)?;
        }
    }
    Ok(())
}
