//! Nodes, whoever made them.
//!
//! Invariant: allocatable rounds down; a taint with an unknown effect repels all, so that nothing
//! is planned onto a node that is not understood.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use longshore_proto::types::v1 as wire;

use super::ailment;
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
    let amounts = |list: Option<&BTreeMap<String, Quantity>>, field: &str| {
        let read = list.map(|list| resources(list, Rounding::Down)).transpose();
        read.map_err(|fault| fault.within(field).of(object()))
    };
    let status = node.status.as_ref();
    let allocatable = amounts(status.and_then(|s| s.allocatable.as_ref()), "status.allocatable")?;
    let capacity = amounts(status.and_then(|s| s.capacity.as_ref()), "status.capacity")?;
    let ailing = ailment::of(node);
    let taints = spec.taints.iter().flatten().filter(|taint| !is_outlived(node, taint));
    let taints =
        requirement::taints(taints).map_err(|fault| fault.within("spec.taints").of(object()))?;
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
        do_not_disrupt: protection(node).is_some(),
        capacity,
        ailment: ailing.as_ref().map(|ailing| ailing.what.clone()).unwrap_or_default(),
        repair_time: ailing.map(|ailing| ailing.repair_time),
    })
}

/// The annotation by which a node asks to be left alone: today's, or that of the first API.
#[must_use]
pub fn protection(node: &Node) -> Option<&'static str> {
    let annotations = node.metadata.annotations.as_ref()?;
    let mut all = [names::DO_NOT_DISRUPT, names::DO_NOT_CONSOLIDATE].into_iter();
    all.find(|key| annotations.get(*key).is_some_and(|value| value == "true"))
}

/// True for the taint of a node that is not ready, on one that is and has yet to be opened: it is
/// taken off when the node is. kube-controller-manager takes it off too, of a dozen nodes a second
/// where the API server is busy.
#[must_use]
pub fn is_outlived(node: &Node, taint: &Taint) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let is_closed = || taints.into_iter().any(|taint| taint.key == names::UNREGISTERED_TAINT);
    taint.key == names::NOT_READY && is_ready(node) && is_closed()
}

/// True when the node's Ready condition is true.
#[must_use]
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|s| s.conditions.iter().flatten());
    conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_closed_node_is_told_without_the_taint_that_it_has_outlived() {
        let unregistered = json!({ "key": "karpenter.sh/unregistered", "effect": "NoExecute" });
        let not_ready =
            |effect: &str| json!({ "key": "node.kubernetes.io/not-ready", "effect": effect });
        let told = |taints: &[&serde_json::Value], ready: &str| {
            let conditions = json!([{ "type": "Ready", "status": ready }]);
            let of =
                json!({ "spec": { "taints": taints }, "status": { "conditions": conditions } });
            let told = node(&serde_json::from_value(of).unwrap()).unwrap().taints;
            told.into_iter().map(|taint| taint.key).collect::<Vec<_>>()
        };
        let (slow, evicting) = (not_ready("NoSchedule"), not_ready("NoExecute"));
        let closed = [&unregistered, &slow, &evicting];
        assert_eq!(told(&closed, "True"), ["karpenter.sh/unregistered"]);
        assert_eq!(told(&closed, "False").len(), 3, "it says the truth");
        assert_eq!(told(&[&slow], "True").len(), 1, "nobody of ours takes it off an open node");
    }

    #[test]
    fn a_node_is_left_alone_for_the_word_of_either_api() {
        let table = [
            ("karpenter.sh/do-not-disrupt", "true", true),
            ("karpenter.sh/do-not-consolidate", "true", true),
            ("karpenter.sh/do-not-consolidate", "false", false),
            ("karpenter.sh/do-not-evict", "true", false),
        ];
        for (key, value, expected) in table {
            let of = json!({ "metadata": { "annotations": { key: value } } });
            let told = node(&serde_json::from_value(of).unwrap()).unwrap();
            assert_eq!(told.do_not_disrupt, expected, "{key}: {value}");
        }
    }
}
