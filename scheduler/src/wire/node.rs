//! Nodes, claims, DaemonSets and disruption budgets on the wire and in the planner.

use longshore_core::vocabulary::ids::ObjectKey;
use longshore_core::vocabulary::pool::DisruptionReason;
use longshore_core::world::budget::{DaemonSet, DisruptionBudget};
use longshore_core::world::claim::NodeClaim;
use longshore_core::world::node::Node;
use longshore_proto::time::duration_ms;
use longshore_proto::types::v1;

use super::catalogue::capacity_type;
use super::requirement::{requirements, selector, taints};
use super::{WireError, optional, resources, time_ms};

/// Reads a node.
///
/// # Errors
/// When a taint or an amount cannot be read.
pub fn node(wire: &v1::Node) -> Result<Node, WireError> {
    let named = |error: WireError| error.of("Node", &wire.name);
    Ok(Node {
        name: wire.name.as_str().into(),
        provider_id: wire.provider_id.clone(),
        labels: wire.labels.clone(),
        taints: taints(&wire.taints).map_err(named)?,
        allocatable: resources::from_wire(wire.allocatable.as_ref()).map_err(named)?,
        capacity: resources::from_wire(wire.capacity.as_ref()).map_err(named)?,
        ready: wire.ready,
        cordoned: wire.cordoned,
        deleting: wire.deleting,
        do_not_disrupt: wire.do_not_disrupt,
        created_ms: wire.create_time.as_ref().map_or(0, time_ms),
    })
}

/// Reads a claim.
///
/// # Errors
/// When a requirement, taint or amount cannot be read.
pub fn claim(wire: &v1::NodeClaim) -> Result<NodeClaim, WireError> {
    read_claim(wire).map_err(|error| error.of("NodeClaim", &wire.name))
}

fn read_claim(wire: &v1::NodeClaim) -> Result<NodeClaim, WireError> {
    let ceiling = wire.max_price_micro_usd_per_hour;
    Ok(NodeClaim {
        name: wire.name.as_str().into(),
        pool: wire.pool.as_str().into(),
        node_class: wire.node_class.clone(),
        requirements: requirements(&wire.requirements)?,
        requests: resources::from_wire(wire.requests.as_ref())?,
        labels: wire.labels.clone(),
        taints: taints(&wire.taints)?,
        startup_taints: taints(&wire.startup_taints)?,
        max_price_micro_usd_per_hour: (ceiling > 0).then_some(ceiling),
        provider_id: wire.provider_id.clone(),
        node: optional(&wire.node_name).map(Into::into),
        instance_type: optional(&wire.instance_type).map(Into::into),
        zone: optional(&wire.zone).map(Into::into),
        capacity_type: capacity_type(wire.capacity_type()),
        allocatable: resources::from_wire(wire.allocatable.as_ref())?,
        created_ms: wire.create_time.as_ref().map_or(0, time_ms),
        registered_ms: wire.register_time.as_ref().map(time_ms),
        initialized_ms: wire.initialize_time.as_ref().map(time_ms),
        last_pod_event_ms: wire.last_pod_event_time.as_ref().map(time_ms),
        deleting: wire.deleting,
        drained: wire.drained,
        replaced_by: wire.replaced_by.iter().map(|name| name.as_str().into()).collect(),
        replacement: wire.replacement,
        disrupted: optional(&wire.disruption_reason).map(|reason| disruption_reason(&reason)),
        interrupted: false,
        drifted: false,
        do_not_disrupt: wire.do_not_disrupt,
        expire_after_ms: wire.expire_after.as_ref().map(duration_ms),
        termination_grace_ms: wire.termination_grace_period.as_ref().map(duration_ms),
    })
}

/// The reason a claim carries. A word of another version still means that it is being disrupted.
fn disruption_reason(text: &str) -> DisruptionReason {
    match text {
        "Empty" => DisruptionReason::Empty,
        "Drifted" => DisruptionReason::Drifted,
        "Expired" => DisruptionReason::Expired,
        "Interrupted" => DisruptionReason::Interrupted,
        "Excess" => DisruptionReason::Excess,
        _ => DisruptionReason::Underutilized,
    }
}

/// Reads a DaemonSet.
#[must_use]
pub fn daemon_set(wire: &v1::DaemonSet) -> DaemonSet {
    DaemonSet {
        key: ObjectKey::new(&wire.namespace, &wire.name),
        shape: wire.shape_id.as_str().into(),
    }
}

/// Reads a disruption budget.
///
/// # Errors
/// When its selector cannot be read.
pub fn disruption_budget(wire: &v1::DisruptionBudget) -> Result<DisruptionBudget, WireError> {
    let name = format!("{}/{}", wire.namespace, wire.name);
    let selector = wire.selector.as_ref().map(selector).transpose();
    Ok(DisruptionBudget {
        key: ObjectKey::new(&wire.namespace, &wire.name),
        selector: selector.map_err(|error| error.of("PodDisruptionBudget", &name))?,
        disruptions_allowed: i64::from(wire.disruptions_allowed),
        fully_blocking: wire.fully_blocking,
        lets_unready_go: wire.lets_unready_go,
    })
}
