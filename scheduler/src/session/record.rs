//! What the cluster is told of an instance that was launched for a claim.
//!
//! Invariant: every fact comes from the instance or from the catalogue of the claim's node class.

use longshore_core::capacity_group::CapacityGroup;
use longshore_core::labels;
use longshore_proto::capacity::v1::InstanceState;
use longshore_proto::cluster::v1::RecordLaunch;
use longshore_proto::provider_id;
use longshore_proto::types::v1::{CapacityType, NodeClaim};

use crate::region::RegionState;
use crate::wire;

/// The directive that records `instance` on `claim`.
#[must_use]
pub fn launch(
    cluster_id: &str,
    claim: &NodeClaim,
    instance: &InstanceState,
    region: &RegionState,
) -> RecordLaunch {
    let mut record = RecordLaunch {
        claim: claim.name.clone(),
        provider_id: provider_id::of(&instance.zone, &instance.instance_id),
        instance_type: instance.instance_type.clone(),
        zone: instance.zone.clone(),
        zone_id: instance.zone_id.clone(),
        capacity_type: instance.capacity_type,
        image_id: instance.image_id.clone(),
        ..Default::default()
    };
    let resolution = region.node_class(cluster_id, &claim.node_class);
    let catalogue = resolution.and_then(|class| region.catalogues.get(&class.catalogue_id));
    let kind = catalogue.and_then(|catalogue| catalogue.types.get(instance.instance_type.as_str()));
    if let Some(kind) = kind {
        record.capacity = Some(wire::resources::to_wire(&kind.capacity));
        record.allocatable = Some(wire::resources::to_wire(&kind.allocatable()));
        record.labels = kind.labels.clone();
    }
    record.labels.extend(CapacityGroup::of(&instance.instance_type, &instance.zone).labels());
    record.labels.extend(reservation(instance));
    record
}

/// Labels of the reservation that an instance runs in, whatever its plan had in mind for it.
fn reservation(instance: &InstanceState) -> Vec<(String, String)> {
    let id = instance.reservation_id.as_str();
    if instance.capacity_type() != CapacityType::Reserved || id.is_empty() {
        return Vec::new();
    }
    let said = [(labels::RESERVATION_ID, id)].into_iter().chain(labels::OF_RESERVATIONS);
    said.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use longshore_proto::types::v1::{Operator, Requirement};

    use super::*;

    #[test]
    fn a_node_gets_the_labels_of_its_capacity_group() {
        let instance = InstanceState {
            instance_type: "m7g.large".into(),
            zone: "us-east-1a".into(),
            ..InstanceState::default()
        };
        let record = launch("c", &NodeClaim::default(), &instance, &RegionState::default());
        let group = CapacityGroup::of("m7g.large", "us-east-1a");
        for (key, value) in group.labels() {
            assert_eq!(record.labels.get(&key), Some(&value));
        }
    }
    #[test]
    fn the_instance_says_whether_it_runs_in_a_reservation() {
        let reserved = NodeClaim {
            requirements: vec![Requirement {
                key: labels::RESERVATION_ID.to_owned(),
                operator: Operator::In.into(),
                values: vec!["cr-1".to_owned()],
                min_values: None,
            }],
            ..NodeClaim::default()
        };
        for (kind, id, expected) in [
            (CapacityType::Reserved, "cr-1", [Some("cr-1"), Some("default"), Some("false")]),
            (CapacityType::Reserved, "", [None; 3]),
            // One that an open reservation took in, and one that fell back.
            (CapacityType::OnDemand, "cr-1", [None; 3]),
            (CapacityType::OnDemand, "", [None; 3]),
        ] {
            let instance = InstanceState {
                capacity_type: kind.into(),
                reservation_id: id.to_owned(),
                ..InstanceState::default()
            };
            let record = launch("c", &reserved, &instance, &RegionState::default());
            let keys = [
                labels::RESERVATION_ID,
                labels::RESERVATION_TYPE,
                labels::RESERVATION_INTERRUPTIBLE,
            ];
            let seen = keys.map(|key| record.labels.get(key).map(String::as_str));
            assert_eq!(seen, expected, "{kind:?} {id}");
            assert_eq!(record.capacity_type(), kind);
        }
    }
}
