//! CapacityBuffers, once what they refer to has been read.
//!
//! Invariant: pods of a buffer give way to all others, have no volumes of their own and need no
//! other pod near; apart from that they are the pods of their template.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::{PodShape, Resources};

use super::fault::{Fault, FieldFault, FieldResult, Problem};
use super::quantity::{Rounding, integer};
use super::shape::{self, Workload};
use super::surroundings::Surroundings;
use crate::api::CapacityBuffer;
use crate::api::capacity_buffer::{ACTIVE_CAPACITY, CapacityBufferSpec};

/// What a buffer refers to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Referred {
    /// Template of its pods.
    pub template: PodTemplateSpec,
    /// Generation of the object that has it.
    pub generation: Option<i64>,
    /// Replicas of the workload, when it is one.
    pub scale: Option<i32>,
}

/// The object with the template of a buffer's pods, in the buffer's namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// A PodTemplate of this name.
    PodTemplate(&'a str),
    /// A Deployment of this name.
    Deployment(&'a str),
    /// A StatefulSet of this name.
    StatefulSet(&'a str),
    /// A ReplicaSet of this name.
    ReplicaSet(&'a str),
}

/// What a buffer refers to.
///
/// # Errors
/// The field that names nothing that can be read, with the way out.
pub fn reference(spec: &CapacityBufferSpec) -> Result<Reference<'_>, String> {
    let workload = match (&spec.pod_template_ref, &spec.scalable_ref) {
        (Some(template), None) => return Ok(Reference::PodTemplate(&template.name)),
        (None, Some(workload)) => workload,
        (Some(_), Some(_)) | (None, None) => {
            return Err("spec: set one of podTemplateRef and scalableRef".to_owned());
        }
    };
    let name = workload.name.as_str();
    match (workload.api_group.as_str(), workload.kind.as_str()) {
        ("apps" | "", "Deployment") => Ok(Reference::Deployment(name)),
        ("apps" | "", "StatefulSet") => Ok(Reference::StatefulSet(name)),
        ("apps" | "", "ReplicaSet") => Ok(Reference::ReplicaSet(name)),
        (group, kind) => Err(format!(
            "spec.scalableRef: {group}/{kind} is not read; use a Deployment, StatefulSet or ReplicaSet \
             of apps, or a podTemplateRef"
        )),
    }
}

impl Referred {
    /// A workload; the API server fills in one replica where no number is given.
    #[must_use]
    pub fn workload(
        template: PodTemplateSpec,
        replicas: Option<i32>,
        generation: Option<i64>,
    ) -> Self {
        Self { template, generation, scale: Some(replicas.unwrap_or(1)) }
    }
}

/// A buffer with the shape of its pods.
///
/// # Errors
/// The first field that cannot be used.
pub fn buffer(
    buffer: &CapacityBuffer,
    referred: &Referred,
    around: &Surroundings,
) -> Result<(wire::CapacityBuffer, PodShape), Fault> {
    let namespace = buffer.metadata.namespace.as_deref().unwrap_or("default");
    let name = buffer.metadata.name.as_deref().unwrap_or_default();
    let named = |fault: FieldFault| fault.of(format!("CapacityBuffer/{namespace}/{name}"));
    let workload = Workload { kind: "CapacityBuffer", namespace, name };
    let mut template = referred.template.clone();
    adapt(template.spec.get_or_insert_default());
    let shape = shape::template(&workload, &template, around)?;
    let requests = shape.requests.clone().unwrap_or_default();
    let replicas =
        replicas(&buffer.spec, referred.scale, &requests).map_err(|f| named(f.within("spec")))?;
    let row = wire::CapacityBuffer {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        shape_id: shape.shape_id.clone(),
        replicas,
    };
    Ok((row, shape))
}

/// Takes off a pod what a place kept for it does not need.
fn adapt(spec: &mut PodSpec) {
    spec.priority = Some(i32::MIN);
    if let Some(volumes) = &mut spec.volumes {
        volumes.retain(|v| v.persistent_volume_claim.is_none() && v.ephemeral.is_none());
    }
    if let Some(affinity) = &mut spec.affinity {
        affinity.pod_affinity = None;
    }
}

/// The larger of the number and the share asked for, as far as the limits go; what they allow when
/// neither is given.
fn replicas(
    spec: &CapacityBufferSpec,
    scale: Option<i32>,
    requests: &Resources,
) -> FieldResult<i64> {
    let strategy = spec.provisioning_strategy.as_deref().unwrap_or(ACTIVE_CAPACITY);
    if strategy != ACTIVE_CAPACITY {
        let value = strategy.to_owned();
        let problem = Problem::Unknown { value, allowed: ACTIVE_CAPACITY };
        return Err(FieldFault::new("provisioningStrategy", problem));
    }
    let share = spec.percentage.zip(scale).map(|(percentage, scale)| {
        let part = i64::from(percentage) * i64::from(scale);
        ((part + 99) / 100).max(1)
    });
    let asked = spec.replicas.map(i64::from).max(share);
    let most = most(spec, requests).map_err(|f| f.within("limits"))?;
    match (asked, most) {
        (Some(asked), most) => Ok(asked.min(most.unwrap_or(i64::MAX)).max(0)),
        (None, Some(most)) => Ok(most),
        (None, None) => Err(FieldFault::new("replicas", Problem::Missing)),
    }
}

/// How many pods the limits allow; none when they limit nothing that a pod requests.
fn most(spec: &CapacityBufferSpec, requests: &Resources) -> FieldResult<Option<i64>> {
    let mut counts = BTreeSet::new();
    for (name, quantity) in &spec.limits {
        let per_unit = if name == "cpu" { 1000 } else { 1 };
        let limit = integer(&quantity.0, per_unit, Rounding::Down)
            .map_err(|problem| FieldFault::new(format!("[{name}]"), problem))?;
        counts.extend(limit.checked_div(amount(requests, name)));
    }
    Ok(counts.first().copied())
}

fn amount(of: &Resources, name: &str) -> i64 {
    match name {
        "cpu" => of.cpu_millis,
        "memory" => of.memory_bytes,
        "ephemeral-storage" => of.ephemeral_storage_bytes,
        "pods" => of.pods,
        _ => of.extended.get(name).copied().unwrap_or(0),
    }
}
