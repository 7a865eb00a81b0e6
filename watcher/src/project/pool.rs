//! NodePools.
//!
//! Invariant: a pool with one field that cannot be read is a fault as a whole: half a pool would
//! launch what its owner forbade.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::{Disruption, NodeBudget, PoolLimits, Requirement, Taint};
use longshore_runtime::planted;
use prost_types::Duration;

use super::fault::{Fault, FieldFault, FieldResult, Problem};
use super::quantity::{Rounding, integer};
use super::{annotation, drift, duration, requirement, rollout};
use crate::api::keys::{AWS_GROUP, GROUP};
use crate::api::node_pool::{Budget, ConsolidationPolicy, Disruption as ApiDisruption};
use crate::api::{self, NodeClassReference, NodePool, ResourceList};
use crate::names;

/// A pool.
///
/// # Errors
/// The first field that cannot be read.
pub fn pool(pool: &NodePool) -> Result<wire::NodePool, Fault> {
    let name = pool.metadata.name.clone().unwrap_or_default();
    let object = || format!("NodePool/{name}");
    let spec = read(pool, &name).map_err(|fault| fault.within("spec").of(object()))?;
    let noted = annotated(&pool.metadata, spec).map_err(|fault| fault.of(object()))?;
    let said = pool.status.as_ref().map_or(&[][..], |status| &status.conditions);
    Ok(finished((&pool.metadata, said), noted))
}

/// The pool with its hash, and with what its conditions say of rollouts.
pub(super) fn finished(
    (metadata, said): (&ObjectMeta, &[Condition]),
    pool: wire::NodePool,
) -> wire::NodePool {
    let drift_hash = drift::of_pool(&pool);
    let rollout = pool.rollout.clone().map(|rules| rollout::said(metadata, said, rules));
    unless_deleted(metadata, wire::NodePool { drift_hash, rollout, ..pool })
}

/// The pool as it is; but one that is being deleted keeps what it has, by its own rules, and gets
/// nothing more.
fn unless_deleted(metadata: &ObjectMeta, pool: wire::NodePool) -> wire::NodePool {
    if metadata.deletion_timestamp.is_none() || planted::is("S29") {
        return pool;
    }
    let mut limits = pool.limits.unwrap_or_default();
    limits.values.insert("nodes".to_owned(), 0);
    wire::NodePool { limits: Some(limits), replicas: None, ..pool }
}

fn read(pool: &NodePool, name: &str) -> FieldResult<wire::NodePool> {
    let (spec, template) = (&pool.spec, &pool.spec.template);
    let requirements = requirements(&template.spec.requirements)
        .map_err(|f| f.within("template.spec.requirements"))?;
    Ok(wire::NodePool {
        name: name.to_owned(),
        weight: spec.weight.unwrap_or(0),
        labels: template.metadata.labels.clone(),
        annotations: template.metadata.annotations.clone(),
        taints: taints(&template.spec.taints),
        startup_taints: taints(&template.spec.startup_taints),
        requirements,
        node_class: class_name(&template.spec.node_class_ref),
        expire_after: template.spec.expire_after.duration().and_then(to_wire),
        termination_grace_period: template
            .spec
            .termination_grace_period
            .as_ref()
            .and_then(|d| to_wire(d.duration())),
        limits: limits(&spec.limits).map_err(|f| f.within("limits"))?,
        disruption: Some(disruption(&spec.disruption).map_err(|f| f.within("disruption"))?),
        legacy: false,
        generation: pool.metadata.generation.unwrap_or(0),
        replicas: spec.replicas,
        dense_spread: false,
        losses_accepted_until: None,
        drift_hash: String::new(),
        rollout: None,
        keeps_ailing_nodes: false,
    })
}

/// The pool with what its own annotations ask for.
///
/// # Errors
/// A value of an annotation that has no meaning.
pub(super) fn annotated(
    metadata: &ObjectMeta,
    pool: wire::NodePool,
) -> FieldResult<wire::NodePool> {
    let losses_accepted_until = losses_accepted_until(metadata)?;
    let dense_spread = chosen(metadata, names::SPREAD_DENSITY, ["safe", "dense"])?;
    let keeps_ailing_nodes = chosen(metadata, names::NODE_REPAIR, ["on", "off"])?;
    let rollout = Some(rollout::rules(metadata)?);
    let evictions_per_hour = evictions_per_hour(metadata)?;
    let disruption = pool.disruption.map(|rules| Disruption { evictions_per_hour, ..rules });
    let pool = wire::NodePool { disruption, ..pool };
    Ok(wire::NodePool { dense_spread, losses_accepted_until, rollout, keeps_ailing_nodes, ..pool })
}

fn losses_accepted_until(metadata: &ObjectMeta) -> FieldResult<Option<prost_types::Timestamp>> {
    let key = names::ACCEPT_LOSSES_UNTIL;
    let Some(text) = annotation::text(metadata, key) else { return Ok(None) };
    let wrong = |_| annotation::wrong(key, text, "a time such as 2026-01-31T09:00:00Z");
    let time = text.parse::<Timestamp>().map_err(wrong)?;
    Ok(Some(duration::timestamp(&Time(time))))
}

fn evictions_per_hour(metadata: &ObjectMeta) -> FieldResult<Option<i64>> {
    let key = names::EVICTIONS_PER_HOUR;
    let Some(text) = annotation::text(metadata, key) else { return Ok(None) };
    let most: u32 = text.parse().map_err(|_| annotation::wrong(key, text, "a count such as 50"))?;
    Ok(Some(most.into()))
}

/// Whether an annotation says the second of two words; without it, the first is meant.
fn chosen(metadata: &ObjectMeta, key: &str, [first, second]: [&str; 2]) -> FieldResult<bool> {
    match annotation::text(metadata, key) {
        None => Ok(false),
        Some(value) if value == first => Ok(false),
        Some(value) if value == second => Ok(true),
        Some(value) => {
            let allowed = if key == names::NODE_REPAIR { "on or off" } else { "safe or dense" };
            Err(annotation::wrong(key, value, allowed))
        }
    }
}

fn to_wire(duration: std::time::Duration) -> Option<Duration> {
    Duration::try_from(duration).ok()
}

/// Requirements of a pool or claim.
///
/// # Errors
/// Values that do not suit their operator, or a minimum out of range.
pub fn requirements(list: &[api::Requirement]) -> FieldResult<Vec<Requirement>> {
    list.iter()
        .map(|from| {
            let operator = requirement::operator_name(from.operator);
            let parsed = requirement::requirement(&from.key, operator, &from.values)?;
            let min_values = from.min_values.map(|n| min_values(&from.key, n)).transpose()?;
            Ok(Requirement { min_values, ..parsed })
        })
        .collect()
}

fn min_values(key: &str, count: i32) -> FieldResult<u32> {
    let range = 1..=50;
    u32::try_from(count).ok().filter(|n| range.contains(n)).ok_or_else(|| {
        FieldFault::new(format!("[{key}].minValues"), Problem::MinValues(count.into()))
    })
}

/// Taints of a pool or claim.
#[must_use]
pub fn taints(list: &[api::Taint]) -> Vec<Taint> {
    let taint = |t: &api::Taint| requirement::taint(&t.key, t.value.as_deref(), t.effect.as_str());
    // The effects of the API's type are all known.
    list.iter().filter_map(|t| taint(t).ok()).collect()
}

/// Limits of a pool; nothing when there are none.
///
/// # Errors
/// A quantity that cannot be read.
pub fn limits(list: &ResourceList) -> FieldResult<Option<PoolLimits>> {
    let read = |(name, quantity): (&String, &api::Quantity)| {
        let per_unit = if name == "cpu" { 1000 } else { 1 };
        let value = integer(&quantity.0, per_unit, Rounding::Down)
            .map_err(|problem| FieldFault::new(format!("[{name}]"), problem))?;
        Ok((name.clone(), value))
    };
    let values: BTreeMap<_, _> = list.iter().map(read).collect::<FieldResult<_>>()?;
    Ok((!values.is_empty()).then_some(PoolLimits { values }))
}

fn disruption(from: &ApiDisruption) -> FieldResult<Disruption> {
    let policy = match from.consolidation_policy {
        ConsolidationPolicy::WhenEmpty => wire::ConsolidationPolicy::WhenEmpty,
        // A plan of ours weighs savings against disruption under either name.
        ConsolidationPolicy::WhenEmptyOrUnderutilized | ConsolidationPolicy::Balanced => {
            wire::ConsolidationPolicy::WhenEmptyOrUnderutilized
        }
    };
    let budgets = from.budgets.iter().enumerate().map(|(n, budget)| {
        node_budget(budget).map_err(|fault| fault.within(format!("budgets[{n}]")))
    });
    Ok(Disruption {
        policy: policy.into(),
        consolidate_after: from.consolidate_after.duration().and_then(to_wire),
        budgets: budgets.collect::<FieldResult<_>>()?,
        evictions_per_hour: None,
    })
}

fn node_budget(from: &Budget) -> FieldResult<NodeBudget> {
    let digits = from.nodes.strip_suffix('%').unwrap_or(&from.nodes);
    if digits.parse::<u32>().is_err() {
        return Err(FieldFault::new("nodes", Problem::Budget(from.nodes.clone())));
    }
    if from.schedule.is_some() != from.duration.is_some() {
        return Err(FieldFault::new("duration", Problem::Missing));
    }
    let reasons = from.reasons.iter().flatten();
    Ok(NodeBudget {
        nodes: from.nodes.clone(),
        reasons: reasons.map(|reason| reason.as_str().to_owned()).collect(),
        schedule: from.schedule.clone().unwrap_or_default(),
        duration: from.duration.as_ref().and_then(|d| to_wire(d.duration())),
    })
}

/// Name of a node class on the wire. One of a group that is not ours is none that we know,
/// whatever its kind and name.
#[must_use]
pub fn class_name(reference: &NodeClassReference) -> String {
    let NodeClassReference { group, kind, name } = reference;
    if group == class_group(kind) {
        format!("{kind}/{name}")
    } else {
        format!("{kind}.{group}/{name}")
    }
}

/// API group of a kind of node class.
#[must_use]
pub fn class_group(kind: &str) -> &'static str {
    if kind == "Provisioner" { GROUP } else { AWS_GROUP }
}
