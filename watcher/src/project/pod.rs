//! Pods: a shape and a small row.
//!
//! Invariant: the row is all that changes in a pod's life; the shape stays while its constraints
//! do.

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::{PodPhase, PodShape};
use prost_types::Timestamp;

use super::fault::Fault;
use super::owner::{Owner, controller};
use super::shape::{self, Source};
use super::surroundings::Surroundings;
use super::{devices, duration, owner, volumes};
use crate::names;

/// Annotation of static pods.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// What the workload of a Deployment's pods begins with.
const DEPLOYMENT: &str = "Deployment/";
/// The same of a StatefulSet's.
const STATEFUL_SET: &str = "StatefulSet/";
/// Why a container waits that is only about to start.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// A pod as the wire has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// Its shape.
    pub shape: PodShape,
    /// Its row.
    pub row: wire::Pod,
    /// True when the shape changes with the pod's surroundings.
    pub contextual: bool,
    /// True when the pod has devices that its shape does not count.
    pub uncounted: bool,
    /// Its owner, where that may be creating more pods like it.
    pub owner: Option<Owner>,
}

/// A pod and its shape.
///
/// # Errors
/// Requests that cannot be read.
pub fn pod(pod: &Pod, around: &Surroundings) -> Result<Projection, Fault> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let none = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&none);
    let devices = devices::wanted(namespace, spec, around);
    let uncounted = devices.uncounted;
    let source = Source {
        namespace,
        labels: pod.metadata.labels.as_ref(),
        spec,
        status: pod.status.as_ref(),
        owner: workload(pod),
        daemon: is_daemon(pod) || is_mirror(pod),
        demand: volumes::demand(namespace, name, spec, around),
        devices,
    };
    let shape = shape::shape(source, around)
        .map_err(|fault| fault.of(format!("Pod/{namespace}/{name}")))?;
    let surges = around.surges
        && annotation(pod, names::SURGE) == Some("true")
        && deployment(&shape.owner).is_some();
    let row = wire::Pod { surges, ..row(pod, &shape.shape_id) };
    let refers = volumes::has_claims(spec) || devices::are_claimed(spec);
    let contextual = refers || selects_namespaces(spec);
    Ok(Projection { shape, row, contextual, uncounted, owner: owner::of(pod) })
}

/// True for a pod that has run its course: it takes no room any more.
#[must_use]
pub fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// True for a pod of a DaemonSet.
#[must_use]
pub fn is_daemon(pod: &Pod) -> bool {
    controller(pod).is_some_and(|o| o.kind == "DaemonSet")
}

/// True for a static pod.
#[must_use]
pub fn is_mirror(pod: &Pod) -> bool {
    let annotated = pod.metadata.annotations.as_ref().is_some_and(|a| a.contains_key(MIRROR));
    annotated || controller(pod).is_some_and(|o| o.kind == "Node")
}

/// Workload as Kind/name. A ReplicaSet of a Deployment is named by the Deployment, so that a
/// rollout keeps its shape.
fn workload(pod: &Pod) -> String {
    let Some(owner) = controller(pod).filter(|_| !is_mirror(pod)) else { return String::new() };
    match super::owner::deployment(pod) {
        Some(name) => format!("{DEPLOYMENT}{name}"),
        None => format!("{}/{}", owner.kind, owner.name),
    }
}

/// The Deployment that a workload is, as shapes have it; nothing for any other.
#[must_use]
pub fn deployment(workload: &str) -> Option<&str> {
    workload.strip_prefix(DEPLOYMENT)
}

/// The StatefulSet that a workload is, as shapes have it, and which of its replicas the pod of a
/// name is; nothing for any other.
#[must_use]
pub fn ordinal<'w>(workload: &'w str, pod: &str) -> Option<(&'w str, u32)> {
    let set = workload.strip_prefix(STATEFUL_SET)?;
    Some((set, pod.strip_prefix(set)?.strip_prefix('-')?.parse().ok()?))
}

fn selects_namespaces(spec: &PodSpec) -> bool {
    let mut terms = spec.affinity.iter().flat_map(super::labels::affinity_terms);
    terms.any(|term| term.namespace_selector.is_some())
}

fn row(pod: &Pod, shape_id: &str) -> wire::Pod {
    let meta = &pod.metadata;
    let status = pod.status.as_ref();
    let (do_not_disrupt, do_not_disrupt_until) = protection(pod);
    let phase = match status.and_then(|s| s.phase.as_deref()) {
        Some("Running") => PodPhase::Running,
        _ => PodPhase::Pending,
    };
    wire::Pod {
        uid: meta.uid.clone().unwrap_or_default(),
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
        shape_id: shape_id.to_owned(),
        node_name: pod.spec.as_ref().and_then(|s| s.node_name.clone()).unwrap_or_default(),
        phase: phase.into(),
        create_time: meta.creation_timestamp.as_ref().map(duration::timestamp),
        unschedulable: is_unschedulable(pod),
        nominated_node: status.and_then(|s| s.nominated_node_name.clone()).unwrap_or_default(),
        nominated_by_us: is_nominated_by_us(pod),
        deleting: meta.deletion_timestamp.is_some(),
        do_not_disrupt,
        do_not_disrupt_until,
        deletion_cost: annotation(pod, names::POD_DELETION_COST)
            .and_then(|c| c.parse().ok())
            .unwrap_or(0),
        failing: is_failing(pod),
        surges: false,
        end_time: meta.deletion_timestamp.as_ref().map(duration::timestamp),
    }
}

/// True for a pod on a node that runs, is not ready, and has been started again, or of which a
/// container cannot be started.
fn is_failing(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let condition = |kind: &str| status.conditions.iter().flatten().find(|c| c.type_ == kind);
    let unready = condition("Ready").is_some_and(|ready| ready.status != "True");
    let mut containers = status.container_statuses.iter().flatten();
    let running = status.phase.as_deref() == Some("Running");
    unready
        && containers.any(|container| {
            let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
            let reason = waiting.and_then(|waiting| waiting.reason.as_deref());
            let failed = reason.is_some_and(|reason| !STARTING.contains(&reason));
            if running { container.restart_count > 0 } else { failed }
        })
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Whether eviction is refused, and until when if not for ever. A duration counts from the start of
/// the pod, and is in force while that is unknown. Any other text is ignored.
fn protection(pod: &Pod) -> (bool, Option<Timestamp>) {
    if annotation(pod, names::DO_NOT_EVICT) == Some("true") {
        return (true, None);
    }
    let Some(text) = annotation(pod, names::DO_NOT_DISRUPT) else { return (false, None) };
    if text == "true" {
        return (true, None);
    }
    let Ok(length) = duration::duration(text) else { return (false, None) };
    if length.seconds == 0 {
        return (false, None);
    }
    let start = pod.status.as_ref().and_then(|s| s.start_time.as_ref()).map(duration::timestamp);
    let until = start.map(|s| Timestamp { seconds: s.seconds + length.seconds, nanos: s.nanos });
    (true, until)
}

fn is_unschedulable(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|s| s.conditions.iter().flatten());
    conditions.into_iter().any(|c| {
        c.type_ == "PodScheduled"
            && c.status == "False"
            && c.reason.as_deref() == Some("Unschedulable")
    })
}

/// True when our field manager owns `status.nominatedNodeName`.
fn is_nominated_by_us(pod: &Pod) -> bool {
    let entries = pod.metadata.managed_fields.iter().flatten();
    entries.into_iter().any(|entry| {
        let fields = entry.fields_v1.as_ref().map(|f| &f.0);
        entry.manager.as_deref() == Some(names::FIELD_MANAGER)
            && fields.is_some_and(|f| f.pointer("/f:status/f:nominatedNodeName").is_some())
    })
}
