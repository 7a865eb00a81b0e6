//! What a pod requests, added up as kube-scheduler adds it up.
//!
//! Invariant: max(containers + sidecars, each init container + the sidecars before it) + overhead;
//! pod-level requests replace the sum; a resize under way counts with the larger of both sizes, and
//! one that its node has refused for good counts with what the pod has.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use longshore_proto::types::v1::Resources;

use super::fault::FieldResult;
use super::quantity::{Rounding, resources};

/// Requests of one pod; `pods` is 1.
///
/// # Errors
/// A quantity that cannot be read.
pub fn requests(spec: &PodSpec, status: Option<&PodStatus>) -> FieldResult<Resources> {
    let refused = status.is_some_and(is_resize_refused);
    let statuses = status.and_then(|s| s.container_statuses.as_deref()).unwrap_or_default();
    let seen = Seen { statuses, refused };
    let mut running = Resources::default();
    for container in &spec.containers {
        add(&mut running, &container_requests(container, seen)?);
    }
    let statuses = status.and_then(|s| s.init_container_statuses.as_deref()).unwrap_or_default();
    let seen = Seen { statuses, refused };
    let mut sidecars = Resources::default();
    let mut starting = Resources::default();
    for container in spec.init_containers.iter().flatten() {
        let own = container_requests(container, seen)?;
        if is_sidecar(container) {
            add(&mut sidecars, &own);
            raise(&mut starting, &sidecars);
        } else {
            let mut with_sidecars = sidecars.clone();
            add(&mut with_sidecars, &own);
            raise(&mut starting, &with_sidecars);
        }
    }
    add(&mut running, &sidecars);
    raise(&mut running, &starting);
    override_by_pod_level(&mut running, spec)?;
    if let Some(overhead) = &spec.overhead {
        let overhead = resources(overhead, Rounding::Up).map_err(|f| f.within("spec.overhead"))?;
        add(&mut running, &overhead);
    }
    running.pods = 1;
    Ok(running)
}

/// True for an init container that keeps running beside the others.
#[must_use]
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// What a kubelet says of containers.
#[derive(Clone, Copy)]
struct Seen<'a> {
    statuses: &'a [ContainerStatus],
    /// True when the size in the specification will never be had on this node.
    refused: bool,
}

/// True when the node has refused the size that the specification asks for, for good.
fn is_resize_refused(status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    let refused = conditions.any(|c| {
        c.type_ == "PodResizePending"
            && c.status == "True"
            && c.reason.as_deref() == Some("Infeasible")
    });
    refused || status.resize.as_deref() == Some("Infeasible")
}

fn container_requests(container: &Container, seen: Seen<'_>) -> FieldResult<Resources> {
    let field = || format!("spec.containers[{}].resources.requests", container.name);
    let wanted = container
        .resources
        .as_ref()
        .map(|r| with_limits(r.requests.as_ref(), r.limits.as_ref()))
        .map_or_else(|| Ok(Resources::default()), |list| resources(&list, Rounding::Up))
        .map_err(|f| f.within(field()))?;
    let Some(status) = seen.statuses.iter().find(|s| s.name == container.name) else {
        return Ok(wanted);
    };
    let actual = status.resources.as_ref().and_then(|r| r.requests.as_ref());
    let lists: Vec<_> =
        [actual, status.allocated_resources.as_ref()].into_iter().flatten().collect();
    let gone = seen.refused && !lists.is_empty();
    let mut larger = if gone { Resources::default() } else { wanted };
    for list in lists {
        raise(&mut larger, &resources(list, Rounding::Up).map_err(|f| f.within(field()))?);
    }
    Ok(larger)
}

/// Requests, with the limit standing in where a request is absent, as the API server defaults it.
fn with_limits(
    requests: Option<&BTreeMap<String, Quantity>>,
    limits: Option<&BTreeMap<String, Quantity>>,
) -> BTreeMap<String, Quantity> {
    let mut list = limits.cloned().unwrap_or_default();
    list.extend(requests.cloned().unwrap_or_default());
    list
}

/// Pod-level requests replace what the containers ask for together; a pod-level limit stands in
/// where neither says anything, as the API server defaults it.
fn override_by_pod_level(total: &mut Resources, spec: &PodSpec) -> FieldResult<()> {
    let Some(level) = &spec.resources else { return Ok(()) };
    let asked = level.requests.clone().unwrap_or_default();
    let by_limit = level
        .limits
        .iter()
        .flatten()
        .filter(|(name, _)| !asked.contains_key(*name) && amount(total, name) == 0);
    let by_limit: Vec<_> = by_limit.map(|(name, q)| (name.clone(), q.clone())).collect();
    let list: BTreeMap<_, _> = asked.into_iter().chain(by_limit).collect();
    let level = resources(&list, Rounding::Up).map_err(|f| f.within("spec.resources.requests"))?;
    if list.contains_key("cpu") {
        total.cpu_millis = level.cpu_millis;
    }
    if list.contains_key("memory") {
        total.memory_bytes = level.memory_bytes;
    }
    total.extended.extend(level.extended);
    Ok(())
}

/// The amount of a resource that a pod may ask for as a whole.
fn amount(of: &Resources, name: &str) -> i64 {
    match name {
        "cpu" => of.cpu_millis,
        "memory" => of.memory_bytes,
        _ => of.extended.get(name).copied().unwrap_or(0),
    }
}

/// Adds `b` to `a`.
pub fn add(a: &mut Resources, b: &Resources) {
    each(a, b, i64::saturating_add);
}

/// Raises each entry of `a` to that of `b`.
fn raise(a: &mut Resources, b: &Resources) {
    each(a, b, i64::max);
}

fn each(a: &mut Resources, b: &Resources, combine: impl Fn(i64, i64) -> i64) {
    a.cpu_millis = combine(a.cpu_millis, b.cpu_millis);
    a.memory_bytes = combine(a.memory_bytes, b.memory_bytes);
    a.ephemeral_storage_bytes = combine(a.ephemeral_storage_bytes, b.ephemeral_storage_bytes);
    a.pods = combine(a.pods, b.pods);
    for (name, value) in &b.extended {
        let entry = a.extended.entry(name.clone()).or_default();
        *entry = combine(*entry, *value);
    }
}
