//! Nodes, whoever made them.
//!
//! Invariant: allocatable rounds down; a taint with an unknown effect repels all, so that nothing
//! is planned onto a node that is not understood.

use k8s_openapi::api::core::v1::Node;
use longshore_proto::types::v1 as wire;

use super::fault::Fault;
use super::quantity::{Rounding, resources};
use super::{duration, requirement};
use crate::names;

/// A node.
///
/// # Errors
/// An allocatable quantity or a taint effect that cannot be read.
pub fn node(node: &Node) -> Result<wire::Node, Fault> {
    let name = node.metadata.name.clone().unwrap_or_default();
    let object = || format!("Node/{name}");
    let spec = node.spec.clone().unwrap_or_default();
    let allocatable = node.status.as_ref().and_then(|s| s.allocatable.as_ref());
    let allocatable = allocatable
        .map(|list| resources(list, Rounding::Down))
        .transpose()
        .map_err(|fault| fault.within("status.allocatable").of(object()))?;
    let taints = requirement::taints(spec.taints.iter().flatten())
        .map_err(|fault| fault.within("spec.taints").of(object()))?;
    let annotations = node.metadata.annotations.clone().unwrap_or_default();
    Ok(wire::Node {
        name: name.clone(),
        provider_id: spec.provider_id.unwrap_or_default(),
        labels: node.metadata.labels.clone().unwrap_or_default(),
        taints,
        allocatable: Some(allocatable.unwrap_or_default()),
        ready: is_ready(node),
        cordoned: spec.unschedulable == Some(true),
        deleting: node.metadata.deletion_timestamp.is_some(),
        create_time: node.metadata.creation_timestamp.as_ref().map(duration::timestamp),
        do_not_disrupt: annotations.get(names::DO_NOT_DISRUPT).is_some_and(|v| v == "true"),
    })
}

/// True when the node's Ready condition is true.
#[must_use]
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|s| s.conditions.iter().flatten());
    conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True")
}
