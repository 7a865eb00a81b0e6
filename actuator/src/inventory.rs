//! The instances that are ours, as EC2 lists them and as we have just bought them.
//!
//! Invariant: an instance that was bought stays known until a listing that must have shown it does
//! not: EC2 lists new instances late.

use std::collections::BTreeMap;

use longshore_proto::capacity::v1::InstancePhase;

use crate::cloud::{Instance, TAG_LAUNCH};

/// How long a new instance may be missing from listings, in milliseconds.
pub const VISIBLE_WITHIN_MS: i64 = 60_000;

/// Instances by id. Equal content compares equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    instances: BTreeMap<String, Instance>,
    /// Milliseconds since 1970 at which the latest listing was asked for; 0 before the first.
    listed_ms: i64,
}

impl Inventory {
    /// An instance.
    #[must_use]
    pub fn get(&self, instance_id: &str) -> Option<&Instance> {
        self.instances.get(instance_id)
    }

    /// All instances, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values()
    }

    /// When the latest listing was asked for; 0 before the first.
    #[must_use]
    pub const fn listed_ms(&self) -> i64 {
        self.listed_ms
    }

    /// True when any instance is on its way up or down, so that a look soon is worth it.
    #[must_use]
    pub fn restless(&self) -> bool {
        self.iter().any(|instance| {
            matches!(instance.phase, InstancePhase::Pending | InstancePhase::ShuttingDown)
        })
    }

    /// Takes over an instance that was just bought.
    pub fn bought(&mut self, instance: Instance) {
        self.instances.entry(instance.instance_id.clone()).or_insert(instance);
    }

    /// Takes over that instances were asked to terminate.
    pub fn terminating(&mut self, instance_ids: &[String]) {
        for id in instance_ids {
            if let Some(instance) = self.instances.get_mut(id).filter(|found| found.alive()) {
                instance.phase = InstancePhase::ShuttingDown;
            }
        }
    }

    /// Takes over a listing asked for at `asked_ms`. Returns the ids that are gone.
    pub fn listed(&mut self, listing: Vec<Instance>, asked_ms: i64) -> Vec<String> {
        let mut next: BTreeMap<_, _> = listing
            .into_iter()
            .filter(|instance| !instance.tag(TAG_LAUNCH).is_empty())
            .map(|instance| (instance.instance_id.clone(), instance))
            .collect();
        let mut gone = Vec::new();
        for (id, known) in std::mem::take(&mut self.instances) {
            if next.contains_key(&id) {
                continue;
            }
            if known.launch_ms + VISIBLE_WITHIN_MS > asked_ms {
                next.insert(id, known);
            } else {
                gone.push(id);
            }
        }
        self.instances = next;
        self.listed_ms = asked_ms;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_proto::types::v1::CapacityType;

    fn instance(id: &str, launch_ms: i64) -> Instance {
        Instance {
            instance_id: id.to_owned(),
            phase: InstancePhase::Pending,
            instance_type: "t4g.small".to_owned(),
            zone: "a".to_owned(),
            zone_id: String::new(),
            capacity_type: CapacityType::Spot,
            private_dns_name: String::new(),
            image_id: String::new(),
            launch_ms,
            tags: [(TAG_LAUNCH.to_owned(), "l".to_owned())].into(),
        }
    }

    #[test]
    fn a_new_instance_may_be_listed_late_an_old_one_not() {
        let mut inventory = Inventory::default();
        inventory.bought(instance("young", 100_000));
        inventory.bought(instance("old", 0));
        assert_eq!(inventory.listed(vec![], 100_500), ["old"]);
        assert!(inventory.get("young").is_some());
        assert_eq!(inventory.listed(vec![], 100_000 + VISIBLE_WITHIN_MS), ["young"]);
    }

    #[test]
    fn instances_without_a_launch_are_not_ours() {
        let mut inventory = Inventory::default();
        let foreign = Instance { tags: BTreeMap::new(), ..instance("x", 0) };
        inventory.listed(vec![foreign, instance("y", 0)], 5);
        assert_eq!(inventory.iter().map(|i| i.instance_id.as_str()).collect::<Vec<_>>(), ["y"]);
    }
}
