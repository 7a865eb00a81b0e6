//! What a watch of the region has shown so far.

use std::collections::BTreeMap;

use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::capacity::v1::{
    InstanceState, Interruption, LaunchPhase, LaunchState, NodeClassResolution, RegionInfo,
};
use longshore_proto::types::v1::{Candidate, CapacityType, Catalogue, Launch};

use crate::world::CLASS;

/// What the watch has shown.
#[derive(Default)]
pub struct Shown {
    pub region: RegionInfo,
    pub catalogues: BTreeMap<String, Catalogue>,
    pub classes: BTreeMap<String, NodeClassResolution>,
    pub launches: BTreeMap<String, LaunchState>,
    pub instances: BTreeMap<String, InstanceState>,
    pub interruptions: Vec<Interruption>,
    pub closed: Vec<(String, String, CapacityType, bool)>,
    /// What was last said to be left in each capacity reservation.
    pub left: BTreeMap<String, i64>,
}

impl Shown {
    pub fn class_ready(&self) -> bool {
        self.classes.get(CLASS).is_some_and(|class| class.ready)
    }

    pub fn condition(&self, kind: &str) -> Option<(Option<bool>, String, String)> {
        let status = self.classes.get(CLASS)?.status.as_ref()?;
        let condition = status.conditions.iter().find(|condition| condition.r#type == kind)?;
        Some((condition.status, condition.reason.clone(), condition.message.clone()))
    }

    pub fn phase(&self, launch_id: &str) -> LaunchPhase {
        let unknown = LaunchPhase::Unspecified;
        self.launches.get(launch_id).map_or(unknown, LaunchState::phase)
    }

    /// Candidates of the catalogue by type, in every zone.
    pub fn candidates(&self, types: &[&str], capacity_type: CapacityType) -> Vec<Candidate> {
        let catalogue = &self.catalogues[&self.classes[CLASS].catalogue_id];
        let mut found = Vec::new();
        for sold in catalogue.types.iter().filter(|t| types.contains(&t.name.as_str())) {
            for offering in &sold.offerings {
                if offering.capacity_type() == capacity_type {
                    found.push(Candidate {
                        instance_type: sold.name.clone(),
                        zone: offering.zone.clone(),
                        zone_id: offering.zone_id.clone(),
                        capacity_type: offering.capacity_type,
                        price_micro_usd_per_hour: offering.price_micro_usd_per_hour,
                        reservation_id: offering.reservation_id.clone(),
                        ..Candidate::default()
                    });
                }
            }
        }
        found.sort_by_key(|candidate| candidate.price_micro_usd_per_hour);
        assert!(!found.is_empty(), "{types:?} are not sold");
        found
    }

    pub fn launch(&self, id: &str, candidates: Vec<Candidate>) -> Launch {
        Launch {
            launch_id: id.to_owned(),
            claim: format!("claim-{id}"),
            pool: "default".to_owned(),
            node_class: CLASS.to_owned(),
            node_class_hash: self.classes[CLASS].hash.clone(),
            candidates,
            labels: [("karpenter.sh/nodepool".to_owned(), "default".to_owned())].into(),
            ..Launch::default()
        }
    }

    fn note_left(&mut self, reservation_id: &str, count: i64) {
        if !reservation_id.is_empty() {
            self.left.insert(reservation_id.to_owned(), count);
        }
    }

    pub fn take(&mut self, change: Change) {
        match change {
            Change::Region(region) => self.region = region,
            Change::Catalogue(catalogue) => {
                for offering in catalogue.types.iter().flat_map(|sold| &sold.offerings) {
                    self.note_left(&offering.reservation_id, offering.reservation_count);
                }
                self.catalogues.insert(catalogue.catalogue_id.clone(), catalogue);
            }
            Change::Offerings(updates) => {
                for update in updates.updates {
                    self.note_left(&update.reservation_id, update.reservation_count);
                    let (kind, available) = (update.capacity_type(), update.available);
                    self.closed.push((update.instance_type, update.zone, kind, available));
                }
            }
            Change::NodeClass(class) => {
                let name = class.status.as_ref().unwrap().node_class.clone();
                self.classes.insert(name, class);
            }
            Change::Launch(launch) => {
                self.launches.insert(launch.launch_id.clone(), launch);
            }
            Change::Instance(instance) => {
                self.instances.insert(instance.instance_id.clone(), instance);
            }
            Change::Interruption(interruption) => self.interruptions.push(interruption),
            Change::Forgotten(_) => {}
        }
    }
}
