//! Initialisation: when a registered node takes pods.
//!
//! Invariant: most nodes take pods when they are opened and are marked in the same writes; those
//! that do not yet are marked later. A node is initialised when it is ready, its start-up taints
//! are gone, and every resource that its claim asked for is there; what it waits for is said on the
//! claim.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as CoreQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use longshore_runtime::propagate;

use super::{Step, traceparent};
use crate::api::keys::conditions;
use crate::api::{NodeClaim, Quantity};
use crate::index::Index;
use crate::names;
use crate::patch::{Wanted, set_condition};
use crate::project::attachments;
use crate::project::claim::condition;
use crate::project::node::is_ready;

/// What initialisation calls for.
#[must_use]
pub fn steps(index: &Index) -> Vec<Step> {
    index.claims().filter(|claim| is_waiting(claim)).filter_map(|c| step(index, c)).collect()
}

fn is_waiting(claim: &NodeClaim) -> bool {
    let Some(status) = &claim.status else { return false };
    claim.metadata.deletion_timestamp.is_none()
        && condition(&status.conditions, conditions::REGISTERED).is_some()
        && condition(&status.conditions, conditions::INITIALIZED).is_none()
}

fn step(index: &Index, claim: &NodeClaim) -> Option<Step> {
    let name = claim.name_any();
    let Some(node) = index.node_of(claim) else {
        let message = "the node of the claim does not exist".to_owned();
        return pending(claim, "NodeNotFound", message);
    };
    match obstacle(index, claim, &node) {
        None => Some(Step::Initialize { claim: name, node: node.name_any() }),
        Some((reason, message)) => pending(claim, reason, message),
    }
}

/// Says what is waited for, unless the claim says so already.
fn pending(claim: &NodeClaim, reason: &'static str, message: String) -> Option<Step> {
    let conditions = claim.status.iter().flat_map(|status| &status.conditions);
    let mut said = conditions.filter(|c| c.type_ == conditions::INITIALIZED);
    let known = said.any(|c| c.reason == reason && c.message == message);
    let kind = conditions::INITIALIZED;
    (!known).then(|| Step::Await { claim: claim.name_any(), kind, reason, message })
}

/// True when a node takes pods as soon as it is opened.
#[must_use]
pub fn is_complete(index: &Index, claim: &NodeClaim, node: &Node) -> bool {
    has_started(claim, node) && missing_resource(index, claim, node).is_none()
}

/// Marks a node as one that takes pods.
pub fn mark(node: &mut Node) {
    node.labels_mut().insert(names::INITIALIZED.to_owned(), "true".to_owned());
}

/// True for a node that is marked so.
#[must_use]
pub fn is_marked(node: &Node) -> bool {
    node.labels().get(names::INITIALIZED).is_some_and(|value| value == "true")
}

/// Writes into a claim that its node takes pods, and what it gives them.
pub fn complete(claim: &mut NodeClaim, node: &Node, at: &Time) {
    let generation = claim.metadata.generation;
    let own = claim.status.get_or_insert_default();
    let list = |list: Option<&BTreeMap<String, CoreQuantity>>| {
        let entries = list.into_iter().flatten();
        entries.map(|(key, quantity)| (key.clone(), Quantity::from(quantity.clone()))).collect()
    };
    let status = node.status.as_ref();
    own.capacity = list(status.and_then(|status| status.capacity.as_ref()));
    own.allocatable = list(status.and_then(|status| status.allocatable.as_ref()));
    for kind in [conditions::INITIALIZED, conditions::READY] {
        set_condition(&mut own.conditions, &Wanted::met(kind), generation, at);
    }
}

/// The span in which a node is found to take pods, in the trace of its claim.
#[must_use]
pub fn span(claim: &NodeClaim, node: &str) -> tracing::Span {
    let span = tracing::info_span!("watcher.node_ready", claim = claim.name_any(), node);
    propagate::set_parent(&span, traceparent(claim));
    span
}

/// True when nothing but karpenter.sh/unregistered keeps pods off a node.
#[must_use]
pub fn has_started(claim: &NodeClaim, node: &Node) -> bool {
    let passing = |taint: &Taint| {
        taint.key != names::UNREGISTERED_TAINT && (is_startup(claim, taint) || is_ephemeral(taint))
    };
    is_ready(node) && !taints(node).iter().any(passing)
}

/// What keeps a node from taking pods.
fn obstacle(index: &Index, claim: &NodeClaim, node: &Node) -> Option<(&'static str, String)> {
    if !is_ready(node) {
        return Some(("NodeNotReady", format!("node {} is not ready", node.name_any())));
    }
    let taints = taints(node);
    if let Some(taint) = taints.iter().find(|taint| is_startup(claim, taint)) {
        let message = format!("start-up taint {} has not been removed", taint.key);
        return Some(("StartupTaintsExist", message));
    }
    if let Some(taint) = taints.iter().find(|taint| is_ephemeral(taint)) {
        let message = format!("taint {} has not been removed", taint.key);
        return Some(("KnownEphemeralTaintsExist", message));
    }
    missing_resource(index, claim, node).map(|name| {
        let message =
            format!("resource {name} is not registered; does its device plugin or driver run?");
        ("ResourceNotRegistered", message)
    })
}

fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|s| s.taints.as_deref()).unwrap_or_default()
}

/// Taints that the pool says somebody removes once the node has started.
fn is_startup(claim: &NodeClaim, taint: &Taint) -> bool {
    let startup = &claim.spec.startup_taints;
    startup.iter().any(|s| s.key == taint.key && s.effect.as_str() == taint.effect)
}

/// Taints that come and go while a node starts.
fn is_ephemeral(taint: &Taint) -> bool {
    let key = taint.key.as_str();
    matches!(key, names::NOT_READY | names::UNREGISTERED_TAINT | names::CLOUD_UNINITIALIZED)
        || (key == names::UNREACHABLE && taint.effect == "NoSchedule")
        || key.starts_with(names::READINESS_PREFIX)
}

/// A resource that the claim asks for and the node does not have. Devices come with a plug-in or
/// with the slices of a driver. What volumes can be attached a node says elsewhere, or not at all.
fn missing_resource<'a>(index: &Index, claim: &'a NodeClaim, node: &Node) -> Option<&'a str> {
    let devices = index.devices_on(&node.name_any());
    let allocatable = node.status.as_ref().and_then(|s| s.allocatable.as_ref());
    let is_zero = |text: &str| text.trim_start_matches('0').is_empty();
    let requests = claim.spec.resources.requests.iter();
    let mut asked = requests
        .filter(|(name, quantity)| !is_zero(&quantity.0) && !name.starts_with(attachments::PREFIX));
    let missing = asked.find(|(name, _)| {
        let given = allocatable.and_then(|a| a.get(*name));
        given.is_none_or(|quantity| is_zero(&quantity.0)) && !devices.contains_key(*name)
    });
    missing.map(|(name, _)| name.as_str())
}
