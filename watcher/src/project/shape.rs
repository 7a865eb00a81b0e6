//! Pod shapes: everything about a pod that decides where it may run, named by a hash of itself.
//!
//! Invariant: pods of one workload have one shape, whether read from the pod or from the
//! workload's template; a constraint that cannot be met or read is a reason in the shape, never a
//! pod left out, because a bound pod takes room whatever its constraints say.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Container, PodSpec, PodStatus, PodTemplateSpec};
use longshore_proto::content;
use longshore_proto::types::v1::{HostPort, PodShape};

use super::affinity::{self, Scope};
use super::devices::{self, Wanted};
use super::fault::{Fault, FieldResult};
use super::requests::{is_sidecar, requests};
use super::surroundings::Surroundings;
use super::volumes::{self, Demand};
use super::{attachments, labels, requirement};
use crate::names;

/// What a shape is made from: a pod, or the pod of a template.
pub struct Source<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Labels of the pod.
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// Its specification.
    pub spec: &'a PodSpec,
    /// Its status, when it exists.
    pub status: Option<&'a PodStatus>,
    /// Workload, as Kind/name; empty for bare pods.
    pub owner: String,
    /// True for pods of a DaemonSet and static pods.
    pub daemon: bool,
    /// What its volumes demand.
    pub demand: Demand,
    /// What its claims of devices ask for.
    pub devices: Wanted,
}

/// Shape of the pods of a workload's template. `kind` and `name` are the workload's.
///
/// # Errors
/// Requests that cannot be read.
pub fn template(
    workload: &Workload<'_>,
    template: &PodTemplateSpec,
    around: &Surroundings,
) -> Result<PodShape, Fault> {
    let Workload { kind, namespace, name } = workload;
    let spec = template.spec.clone().unwrap_or_default();
    let demand = volumes::demand(namespace, name, &spec, around);
    let source = Source {
        namespace,
        labels: template.metadata.as_ref().and_then(|m| m.labels.as_ref()),
        spec: &spec,
        status: None,
        owner: format!("{kind}/{name}"),
        daemon: *kind == "DaemonSet",
        demand,
        devices: devices::wanted(namespace, &spec, around),
    };
    shape(source, around).map_err(|fault| fault.of(format!("{kind}/{namespace}/{name}")))
}

/// Shape of the pods of a StatefulSet, the volumes it will make included.
///
/// # Errors
/// Requests that cannot be read.
pub fn stateful_set(set: &StatefulSet, around: &Surroundings) -> Result<PodShape, Fault> {
    let workload = Workload {
        kind: "StatefulSet",
        namespace: set.metadata.namespace.as_deref().unwrap_or("default"),
        name: set.metadata.name.as_deref().unwrap_or_default(),
    };
    let spec = set.spec.clone().unwrap_or_default();
    let templates = spec.volume_claim_templates.unwrap_or_default();
    let mut shape = template(&workload, &spec.template, around)?;
    if !templates.is_empty() {
        let given = Demand {
            terms: shape.volume_terms,
            impossible: shape.unschedulable_reason,
            attachments: attachments::read(shape.requests.as_ref()),
        };
        let all = volumes::combine(given, volumes::template_demand(&templates, around));
        attachments::write(&all.attachments, shape.requests.get_or_insert_default());
        (shape.volume_terms, shape.unschedulable_reason) = (all.terms, all.impossible);
        name_by_content(&mut shape);
    }
    Ok(shape)
}

/// A workload by kind, namespace and name.
#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    /// Deployment, StatefulSet, ReplicaSet, Job or DaemonSet.
    pub kind: &'a str,
    /// Namespace.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

/// The shape of a source.
///
/// # Errors
/// Requests that cannot be read.
pub fn shape(source: Source<'_>, around: &Surroundings) -> FieldResult<PodShape> {
    let spec = source.spec;
    let mut requests = requests(spec, source.status)?;
    attachments::write(&source.demand.attachments, &mut requests);
    devices::request(&source.devices.devices, &mut requests);
    let mut shape = PodShape {
        namespace: source.namespace.to_owned(),
        labels: labels::lasting(source.labels, spec),
        requests: Some(requests),
        node_selector: node_selector(spec),
        tolerations: requirement::tolerations(spec.tolerations.as_deref()),
        host_ports: host_ports(spec),
        volume_terms: source.demand.terms,
        priority: priority(spec),
        owner: source.owner,
        daemon: source.daemon,
        unschedulable_reason: source.demand.impossible,
        scheduler_name: scheduler_name(spec),
        ..PodShape::default()
    };
    let none = BTreeMap::new();
    let scope = Scope { labels: source.labels.unwrap_or(&none), around };
    if let Err(fault) = constraints(&mut shape, spec, &scope) {
        shape.unschedulable_reason = fault.to_string();
    }
    if let Some(refusal) = &source.devices.refusal {
        shape.unschedulable_reason = refusal.to_string();
    }
    if let Some(gate) = spec.scheduling_gates.iter().flatten().next() {
        shape.unschedulable_reason = format!("scheduling gate {} has not been lifted", gate.name);
    }
    name_by_content(&mut shape);
    Ok(shape)
}

/// Name of kube-scheduler where a pod says nothing.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Who schedules the pods; empty for kube-scheduler under its own name.
fn scheduler_name(spec: &PodSpec) -> String {
    let name = spec.scheduler_name.as_deref().filter(|name| *name != DEFAULT_SCHEDULER);
    name.unwrap_or_default().to_owned()
}

fn constraints(shape: &mut PodShape, spec: &PodSpec, scope: &Scope<'_>) -> FieldResult<()> {
    let affinity = spec.affinity.as_ref();
    let nodes = affinity.and_then(|a| a.node_affinity.as_ref());
    // A DaemonSet's pods are told apart by the node each is for; they all share one shape.
    shape.required_node_terms = if shape.daemon {
        affinity::required_by_daemons(nodes).unwrap_or_default()
    } else {
        affinity::required_nodes(nodes)?
    };
    shape.preferred_node_terms = affinity::preferred_nodes(nodes)?;
    shape.topology_spread = affinity::spreads(spec.topology_spread_constraints.as_deref(), scope)?;
    let pods = affinity::pod_affinities(affinity, scope)?;
    shape.required_affinity = pods.required;
    shape.required_anti_affinity = pods.required_anti;
    shape.preferred_affinity = pods.preferred;
    shape.preferred_anti_affinity = pods.preferred_anti;
    Ok(())
}

fn node_selector(spec: &PodSpec) -> BTreeMap<String, String> {
    let pairs = spec.node_selector.iter().flatten();
    pairs.map(|(key, value)| (names::canonical(key).to_owned(), value.clone())).collect()
}

/// Names the shape by the first sixteen bytes of the SHA-256 of everything else in it.
fn name_by_content(shape: &mut PodShape) {
    shape.shape_id.clear();
    shape.shape_id = content::hash::<16>(shape);
}

fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().flatten().filter(|c| is_sidecar(c));
    let containers = spec.containers.iter().chain(sidecars);
    containers.flat_map(|c| container_ports(c, spec.host_network == Some(true))).collect()
}

fn container_ports(container: &Container, host_network: bool) -> Vec<HostPort> {
    let ports = container.ports.iter().flatten();
    ports
        .filter_map(|port| {
            let default = if host_network { port.container_port } else { 0 };
            let number = port.host_port.filter(|p| *p != 0).unwrap_or(default);
            Some(HostPort {
                port: u32::try_from(number).ok().filter(|p| *p != 0)?,
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
                host_ip: port.host_ip.clone().unwrap_or_default(),
            })
        })
        .collect()
}

/// Priority as admission resolves it; a class that only the cluster knows counts as zero.
fn priority(spec: &PodSpec) -> i32 {
    spec.priority.unwrap_or(match spec.priority_class_name.as_deref() {
        Some("system-cluster-critical") => 2_000_000_000,
        Some("system-node-critical") => 2_000_001_000,
        _ => 0,
    })
}
