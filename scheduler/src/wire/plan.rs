//! Plans on their way out: nodes, placements, reasons and the bound.

use longshore_core::answer::{Candidate, NewNode, Plan, Target, Unplaced};
use longshore_core::bound::{BoundKind, LowerBound, ResourcePrices};
use longshore_core::reason::Reason;
use longshore_proto::types::v1;

use super::catalogue::capacity_type_to_wire;
use super::{requirement, resources};

/// Writes a candidate.
#[must_use]
pub fn candidate(candidate: &Candidate) -> v1::Candidate {
    v1::Candidate {
        instance_type: candidate.instance_type.to_string(),
        zone: candidate.zone.to_string(),
        zone_id: candidate.zone_id.to_string(),
        capacity_type: capacity_type_to_wire(candidate.capacity_type).into(),
        price_micro_usd_per_hour: candidate.price_micro_usd_per_hour,
        cost_micro_usd_per_hour: Some(candidate.cost_micro_usd_per_hour)
            .filter(|cost| *cost != candidate.price_micro_usd_per_hour)
            .unwrap_or(0),
        reservation_id: candidate.reservation.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}

/// Writes one planned node.
#[must_use]
pub fn planned_node(node: &NewNode) -> v1::PlannedNode {
    v1::PlannedNode {
        pool: node.pool.to_string(),
        candidates: node.candidates.iter().map(candidate).collect(),
        requests: Some(resources::to_wire(&node.requests)),
        count: 1,
        pods_each: u32::try_from(node.pods.len()).unwrap_or(u32::MAX),
        standing: node.standing,
    }
}

/// Writes the claim of a node to launch, as far as the plan knows it: what it wants, not who asked
/// when.
#[must_use]
pub fn claim(node: &NewNode) -> v1::NodeClaim {
    v1::NodeClaim {
        pool: node.pool.to_string(),
        node_class: node.node_class.clone(),
        requirements: requirement::requirements_to_wire(&node.requirements),
        requests: Some(resources::to_wire(&node.requests)),
        labels: node.labels.clone(),
        taints: requirement::taints_to_wire(&node.taints),
        startup_taints: requirement::taints_to_wire(&node.startup_taints),
        max_price_micro_usd_per_hour: node.max_price_micro_usd_per_hour,
        replacement: node.replacement,
        ..v1::NodeClaim::default()
    }
}

/// Writes what becomes of each capacity buffer.
#[must_use]
pub fn buffers(plan: &Plan) -> Vec<v1::BufferRoom> {
    let rooms = plan.buffers.iter().map(|(key, room)| v1::BufferRoom {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        in_service: room.in_service,
        coming: room.coming,
        unplaced: room.unplaced,
        reason: (room.unplaced > 0).then(|| reason(&room.reason)),
    });
    rooms.collect()
}

/// Writes where each pod goes.
#[must_use]
pub fn placements(plan: &Plan) -> Vec<v1::Placement> {
    let each = plan.placements.iter().map(|placement| v1::Placement {
        pod: placement.pod.to_string(),
        count: 1,
        target: Some(target(&placement.target)),
    });
    each.collect()
}

/// Writes a place.
#[must_use]
pub fn target(target: &Target) -> v1::placement::Target {
    match target {
        Target::Node(node) => v1::placement::Target::Node(node.to_string()),
        Target::Claim(claim) => v1::placement::Target::Claim(claim.to_string()),
        Target::New(index) => {
            v1::placement::Target::Planned(u32::try_from(*index).unwrap_or(u32::MAX))
        }
    }
}

/// Writes what cannot be placed.
#[must_use]
pub fn unplaced(unplaced: &Unplaced) -> v1::Unplaced {
    v1::Unplaced {
        pods: unplaced.pods.iter().map(ToString::to_string).collect(),
        shape_id: unplaced.shape.to_string(),
        count: u32::try_from(unplaced.pods.len()).unwrap_or(u32::MAX),
        reason: Some(reason(&unplaced.reason)),
    }
}

/// Writes a reason with its causes.
#[must_use]
pub fn reason(reason: &Reason) -> v1::Reason {
    v1::Reason {
        code: reason.code().to_owned(),
        subject: reason.subject.clone(),
        message: reason.message(),
        causes: reason.causes.iter().map(self::reason).collect(),
    }
}

/// Writes prices of resources.
fn resource_prices(prices: &ResourcePrices) -> Vec<v1::ResourcePrice> {
    let price = |(resource, price): (&String, &i64)| v1::ResourcePrice {
        resource: resource.clone(),
        nano_usd_per_hour: *price,
    };
    prices.iter().map(price).collect()
}

/// Writes a bound.
#[must_use]
pub fn bound(bound: &LowerBound) -> v1::LowerBound {
    let kind = match bound.kind {
        BoundKind::None => v1::BoundKind::Unspecified,
        BoundKind::ResourcePrices => v1::BoundKind::ResourcePrices,
        BoundKind::PriceSets => v1::BoundKind::PriceSets,
        BoundKind::ClassValues => v1::BoundKind::ClassValues,
        BoundKind::WholeNodes => v1::BoundKind::WholeNodes,
    };
    let sets = bound.price_sets.iter().map(|set| v1::PriceSet { prices: resource_prices(set) });
    let values = bound.values_nano_usd_per_hour.iter().map(|(shape, value)| v1::ClassValue {
        shape_id: shape.to_string(),
        nano_usd_per_hour: *value,
    });
    v1::LowerBound {
        kind: kind.into(),
        price_micro_usd_per_hour: bound.cost_micro_usd_per_hour,
        resource_prices: resource_prices(&bound.prices_nano_usd_per_hour),
        price_sets: sets.collect(),
        certificate_checked: bound.checked,
        class_values: values.collect(),
    }
}
