//! PodDisruptionBudget status.
//!
//! Invariant: disruptionsAllowed is what the budget's own arithmetic gives for the pods of this
//! moment, less evictions granted whose pods have not gone yet.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::deployment::share;
use super::work::{Context, Outcome, Task, count};
use crate::cluster::clock;
use crate::cluster::object;
use crate::cluster::schedule::pod::PodView;
use crate::cluster::selector::LabelSelector;
use crate::cluster::server::Part;
use crate::cluster::store::Key;

const RESOURCE: &str = "poddisruptionbudgets.policy";
/// How long a granted eviction counts although its pod is still there.
const GRANT_LIFETIME: SignedDuration = SignedDuration::from_secs(120);

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key) -> Outcome {
    let Some(budget) = context.get(RESOURCE, key) else { return Ok(()) };
    let selector = LabelSelector::of_object(&budget["spec"]["selector"]);
    let selects = budget["spec"]["selector"].is_object();
    let world = context.world;
    let pods: Vec<&PodView> = world
        .pods_in(&key.namespace)
        .map(AsRef::as_ref)
        .filter(|pod| selects && !pod.is_terminal() && selector.matches_object(pod.value()))
        .collect();
    let granted = live_grants(context, key, &budget, &pods);
    let (expected, desired) = demands(context, &budget, &pods);
    let healthy = |pod: &&&PodView| {
        pod.is_ready && !pod.is_deleting && !granted.contains_key(pod.key.name.as_str())
    };
    let current = count(pods.iter().filter(healthy));
    let allowed = if expected > 0 { (current - desired).max(0) } else { 0 };
    let stamp = context.server.clock().stamp();
    let (flag, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    context.modify(RESOURCE, key, Part::Status, |budget| {
        budget["status"]["observedGeneration"] = budget["metadata"]["generation"].clone();
        budget["status"]["expectedPods"] = json!(expected);
        budget["status"]["desiredHealthy"] = json!(desired);
        budget["status"]["currentHealthy"] = json!(current);
        budget["status"]["disruptionsAllowed"] = json!(allowed);
        if granted.is_empty() {
            object::remove(&mut budget["status"], "disruptedPods");
        } else {
            budget["status"]["disruptedPods"] = json!(granted);
        }
        let condition =
            json!({ "type": "DisruptionAllowed", "status": flag, "reason": reason, "message": "" });
        object::set_condition(budget, condition, &stamp);
    })
}

/// Evictions granted whose pods are still there and not deleting, and whose grant is fresh.
fn live_grants(
    context: &mut Context<'_>,
    key: &Key,
    budget: &Value,
    pods: &[&PodView],
) -> BTreeMap<String, String> {
    let now = context.server.clock().now();
    let mut live = object::string_map(&budget["status"]["disruptedPods"]);
    live.retain(|name, since| {
        let end = clock::parse(since).and_then(|since| since.checked_add(GRANT_LIFETIME).ok());
        let is_fresh = end.is_some_and(|end| end > now);
        is_fresh && pods.iter().any(|pod| pod.key.name == *name && !pod.is_deleting)
    });
    if !live.is_empty()
        && let Ok(end) = now.checked_add(GRANT_LIFETIME)
    {
        context.work.add_at(end, Task::Budget(key.clone()));
    }
    live
}

/// Pods expected and healthy pods demanded.
fn demands(context: &Context<'_>, budget: &Value, pods: &[&PodView]) -> (i64, i64) {
    let spec = &budget["spec"];
    if !spec["maxUnavailable"].is_null() {
        let expected = expected_by_owners(context, pods);
        let unavailable = share(&spec["maxUnavailable"], expected, true);
        return (expected, (expected - unavailable).max(0));
    }
    match &spec["minAvailable"] {
        minimum if minimum.is_string() => {
            let expected = expected_by_owners(context, pods);
            (expected, share(minimum, expected, true))
        }
        minimum => (count(pods.iter()), minimum.as_i64().unwrap_or(1)),
    }
}

/// Replicas that the managing owners of the pods want together.
fn expected_by_owners(context: &Context<'_>, pods: &[&PodView]) -> i64 {
    let mut replicas: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods {
        let Some(owner) = object::controller_of(pod.value()) else { continue };
        if replicas.contains_key(&pod.owner_uid) {
            continue;
        }
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let found = context.server.lock().registry.find_kind(text("apiVersion"), text("kind"));
        let key = Key::new(&pod.key.namespace, text("name"));
        let workload = found.and_then(|resource| context.get(&resource.id(), &key));
        let wanted = workload.and_then(|workload| workload["spec"]["replicas"].as_i64());
        replicas.insert(pod.owner_uid.clone(), wanted.unwrap_or(0));
    }
    replicas.values().sum()
}
