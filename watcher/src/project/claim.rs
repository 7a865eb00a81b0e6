//! NodeClaims: what was asked for, and how far it has come.
//!
//! Invariant: everything a scheduler needs to go on after a restart is read from the object: spec,
//! labels, Longshore's annotations, and the times of the conditions.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::{CapacityType, Requirement, Resources};
use prost_types::Duration;

use super::fault::{Fault, FieldResult};
use super::quantity::{Rounding, resources};
use super::{duration, pool, requirement};
use crate::api::keys::conditions;
use crate::api::{NodeClaim, NodeClaimStatus, ResourceList};
use crate::names;

/// A claim.
///
/// # Errors
/// A requirement or quantity that cannot be read.
pub fn claim(claim: &NodeClaim) -> Result<wire::NodeClaim, Fault> {
    let name = claim.metadata.name.clone().unwrap_or_default();
    read(claim).map_err(|fault| fault.of(format!("NodeClaim/{name}")))
}

fn read(claim: &NodeClaim) -> FieldResult<wire::NodeClaim> {
    let (meta, spec) = (&claim.metadata, &claim.spec);
    let status = claim.status.clone().unwrap_or_default();
    let labels = meta.labels.clone().unwrap_or_default();
    let notes = meta.annotations.clone().unwrap_or_default();
    let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
    let note = |key: &str| notes.get(key).cloned().unwrap_or_default();
    let since = |kind: &str| condition(&status.conditions, kind).map(duration::timestamp);
    let launched = condition(&status.conditions, conditions::LAUNCHED).is_some();
    let drifted = holding(&status.conditions, conditions::DRIFTED);
    let drained = is_drained(&status);
    Ok(wire::NodeClaim {
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        pool: pool_of(&labels).to_owned(),
        node_class: pool::class_name(&spec.node_class_ref),
        requirements: requirements(claim)?,
        requests: Some(amounts(&spec.resources.requests, Rounding::Up, "spec.resources.requests")?),
        labels: labels.clone(),
        taints: pool::taints(&spec.taints),
        startup_taints: pool::taints(&spec.startup_taints),
        launch_id: note(names::LAUNCH_ID),
        max_price_micro_usd_per_hour: note(names::MAX_PRICE).parse().unwrap_or(0),
        provider_id: status.provider_id.unwrap_or_default(),
        node_name: status.node_name.unwrap_or_default(),
        instance_type: if launched { label(names::INSTANCE_TYPE) } else { String::new() },
        zone: if launched { label(names::ZONE) } else { String::new() },
        capacity_type: if launched { capacity_type(&label(names::CAPACITY_TYPE)) } else { 0 },
        allocatable: Some(amounts(&status.allocatable, Rounding::Down, "status.allocatable")?),
        create_time: meta.creation_timestamp.as_ref().map(duration::timestamp),
        register_time: since(conditions::REGISTERED),
        initialize_time: since(conditions::INITIALIZED),
        last_pod_event_time: status.last_pod_event_time.as_ref().map(duration::timestamp),
        deleting: meta.deletion_timestamp.is_some(),
        drained,
        replaced_by: list(&note(names::REPLACED_BY)),
        replacement: note(names::REPLACEMENT) == "true",
        disruption_reason: note(names::DISRUPTION_REASON),
        expire_after: spec.expire_after.duration().and_then(|d| Duration::try_from(d).ok()),
        termination_grace_period: spec
            .termination_grace_period
            .as_ref()
            .and_then(|d| Duration::try_from(d.duration()).ok()),
        do_not_disrupt: note(names::DO_NOT_DISRUPT) == "true",
        traceparent: note(names::TRACEPARENT),
        drift_hash: note(names::DRIFT_HASH),
        image_id: status.image_id.unwrap_or_default(),
        drift_reason: drifted.map(|drifted| drifted.reason.clone()).unwrap_or_default(),
        blockers: Vec::new(),
    })
}

/// True once a drain is over: no pod is left, and what becomes of the volumes is decided.
#[must_use]
pub fn is_drained(status: &NodeClaimStatus) -> bool {
    let decided = |c: &Condition| c.type_ == conditions::VOLUMES_DETACHED && c.status != "Unknown";
    condition(&status.conditions, conditions::DRAINED).is_some()
        && status.conditions.iter().any(decided)
}

/// Since when a condition is true; nothing when it is not.
#[must_use]
pub fn condition<'a>(list: &'a [Condition], kind: &str) -> Option<&'a Time> {
    holding(list, kind).map(|found| &found.last_transition_time)
}

/// A condition, while it is true.
fn holding<'a>(list: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    list.iter().find(|c| c.type_ == kind && c.status == "True")
}

/// Pool of an object by its labels, legacy ones included; empty for none.
#[must_use]
pub fn pool_of(labels: &BTreeMap<String, String>) -> &str {
    let label = labels.get(names::NODE_POOL).or_else(|| labels.get(names::PROVISIONER_NAME));
    label.map_or("", String::as_str)
}

/// Items of a list separated by commas.
#[must_use]
pub fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn requirements(claim: &NodeClaim) -> FieldResult<Vec<Requirement>> {
    pool::requirements(&claim.spec.requirements).map_err(|f| f.within("spec.requirements"))
}

fn amounts(list: &ResourceList, rounding: Rounding, field: &str) -> FieldResult<Resources> {
    let list = list.iter().map(|(name, q)| (name.clone(), q.clone().into())).collect();
    resources(&list, rounding).map_err(|fault| fault.within(field))
}

/// Capacity type by the value of its label; unspecified for any other text.
#[must_use]
pub fn capacity_type(label: &str) -> i32 {
    let kind = match label {
        "spot" => CapacityType::Spot,
        "on-demand" => CapacityType::OnDemand,
        "reserved" => CapacityType::Reserved,
        _ => CapacityType::Unspecified,
    };
    kind.into()
}

/// The inverse of [`capacity_type`].
#[must_use]
pub const fn capacity_label(kind: CapacityType) -> &'static str {
    match kind {
        CapacityType::Spot => "spot",
        CapacityType::OnDemand => "on-demand",
        CapacityType::Reserved => "reserved",
        CapacityType::Unspecified => "",
    }
}

/// A requirement as the API writes it; none for one that a NodeClaim may not carry. A legacy pool's
/// name is such a one: it stays on the claim as a label.
#[must_use]
pub fn api_requirement(from: &Requirement) -> Option<crate::api::Requirement> {
    if from.key == names::PROVISIONER_NAME {
        return None;
    }
    Some(crate::api::Requirement {
        key: from.key.clone(),
        operator: requirement::api_operator(from.operator())?,
        values: from.values.clone(),
        min_values: from.min_values.and_then(|n| i32::try_from(n).ok()),
    })
}
