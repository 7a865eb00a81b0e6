//! What an actuator reports about its region, kept in step by its Watch stream.
//!
//! Invariant: `RegionState` only changes by [`RegionState::apply`]; absence of an instance means
//! something only while the state is synced.

pub mod directory;
mod link;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longshore_core::vocabulary::catalogue::Catalogue;
use longshore_proto::capacity::v1 as capacity;
use longshore_proto::capacity::v1::region_change::Change;
use tokio::time::Instant;

use crate::wire;

/// Key of a node class resolution: cluster and node class.
type ClassKey = (String, String);

/// Everything known about a region.
#[derive(Debug, Default)]
pub struct RegionState {
    /// Who answers; absent before the first message.
    pub info: Option<capacity::RegionInfo>,
    /// True while a Watch stream has delivered its whole initial state and is still open.
    pub synced: bool,
    /// When the stream ended; none while it is open.
    pub lost: Option<Instant>,
    /// Number of the Watch stream it is from: what was told to one leader must be told to the next.
    pub stream: u64,
    /// Grows with everything that may change a plan: what is on offer, and what is about to go.
    pub supply: u64,
    /// Grows whenever a node class resolves to something else.
    pub resolved: u64,
    /// Catalogues by id.
    pub catalogues: BTreeMap<String, Arc<Catalogue>>,
    /// Launches by id.
    pub launches: BTreeMap<String, capacity::LaunchState>,
    /// Instances by id.
    pub instances: BTreeMap<String, capacity::InstanceState>,
    /// Announcements by instance id; the most urgent one is kept.
    pub interruptions: BTreeMap<String, capacity::Interruption>,
    node_classes: BTreeMap<ClassKey, capacity::NodeClassResolution>,
    by_cluster: BTreeMap<String, BTreeSet<String>>,
}

impl RegionState {
    /// Applies one change. What cannot be understood is reported and left out.
    pub fn apply(&mut self, change: capacity::RegionChange) {
        self.supply += u64::from(matters(&change));
        match change.change {
            None => tracing::warn!("region change without content ignored"),
            Some(Change::Region(info)) => self.info = Some(info),
            Some(Change::Catalogue(catalogue)) => self.put_catalogue(&catalogue),
            Some(Change::Offerings(updates)) => self.update_offerings(&updates),
            Some(Change::NodeClass(resolution)) => self.put_node_class(resolution),
            Some(Change::Launch(launch)) => {
                self.launches.insert(launch.launch_id.clone(), launch);
            }
            Some(Change::Instance(instance)) => self.put_instance(instance),
            Some(Change::Interruption(interruption)) => self.put_interruption(interruption),
            Some(Change::Forgotten(forgotten)) => self.forget(&forgotten),
        }
    }

    /// Instances of one cluster.
    pub fn instances_of(&self, cluster_id: &str) -> impl Iterator<Item = &capacity::InstanceState> {
        let ids = self.by_cluster.get(cluster_id).into_iter().flatten();
        ids.filter_map(|id| self.instances.get(id))
    }

    /// Those of them that start or run.
    pub fn living_of(&self, cluster_id: &str) -> impl Iterator<Item = &capacity::InstanceState> {
        use capacity::InstancePhase::{Pending, Running};
        self.instances_of(cluster_id).filter(|it| matches!(it.phase(), Pending | Running))
    }

    /// Notes that nobody keeps the state in step any more.
    pub const fn lose(&mut self, now: Instant) {
        self.synced = false;
        self.lost = Some(now);
    }

    /// What a cluster's node class resolves to, when the actuator has said so.
    #[must_use]
    pub fn node_class(
        &self,
        cluster_id: &str,
        name: &str,
    ) -> Option<&capacity::NodeClassResolution> {
        self.node_classes.get(&(cluster_id.to_owned(), name.to_owned()))
    }

    /// Why EC2 will take the instance away, or already has. That it advises to leave is no reason.
    #[must_use]
    pub fn interruption(&self, instance_id: &str) -> Option<capacity::InterruptionKind> {
        let announced = self.interruptions.get(instance_id)?.kind();
        (announced != capacity::InterruptionKind::Rebalance).then_some(announced)
    }

    fn put_catalogue(&mut self, catalogue: &longshore_proto::types::v1::Catalogue) {
        match wire::catalogue::catalogue(catalogue) {
            Ok(part) => {
                let id = catalogue.catalogue_id.clone();
                let slot = self.catalogues.entry(id).or_default();
                Arc::make_mut(slot).merge(part);
            }
            Err(error) => tracing::warn!(%error, "catalogue refused"),
        }
    }

    fn update_offerings(&mut self, updates: &capacity::OfferingUpdates) {
        for (id, catalogue) in &mut self.catalogues {
            if updates.catalogue_id.is_empty() || *id == updates.catalogue_id {
                wire::catalogue::update(Arc::make_mut(catalogue), &updates.updates);
            }
        }
    }

    fn put_node_class(&mut self, resolution: capacity::NodeClassResolution) {
        let Some(status) = &resolution.status else {
            tracing::warn!("node class resolution without status ignored");
            return;
        };
        let key = (resolution.cluster_id.clone(), status.node_class.clone());
        let known = self.node_classes.insert(key.clone(), resolution);
        self.resolved += u64::from(known.as_ref() != self.node_classes.get(&key));
    }

    fn put_instance(&mut self, instance: capacity::InstanceState) {
        let (id, cluster) = (instance.instance_id.clone(), instance.cluster_id.clone());
        let before = self.instances.insert(id.clone(), instance);
        if let Some(before) = before.filter(|before| before.cluster_id != cluster) {
            self.unlist(&before);
        }
        self.by_cluster.entry(cluster).or_default().insert(id);
    }

    fn unlist(&mut self, instance: &capacity::InstanceState) {
        let Some(ids) = self.by_cluster.get_mut(&instance.cluster_id) else { return };
        ids.remove(&instance.instance_id);
        if ids.is_empty() {
            self.by_cluster.remove(&instance.cluster_id);
        }
    }

    fn put_interruption(&mut self, interruption: capacity::Interruption) {
        let id = interruption.instance_id.clone();
        let urgent = |kind| kind != capacity::InterruptionKind::Rebalance;
        let replaces = match self.interruptions.get(&id) {
            None => true,
            Some(known) => urgent(interruption.kind()) || !urgent(known.kind()),
        };
        if replaces {
            self.interruptions.insert(id, interruption);
        }
    }

    fn forget(&mut self, forgotten: &capacity::Forgotten) {
        for id in &forgotten.launch_ids {
            self.launches.remove(id);
        }
        for id in &forgotten.instance_ids {
            if let Some(gone) = self.instances.remove(id) {
                self.unlist(&gone);
            }
            self.interruptions.remove(id);
        }
    }
}

/// Whether a change may change a plan. Launches and instances come back to the planner as claims.
const fn matters(change: &capacity::RegionChange) -> bool {
    match &change.change {
        Some(
            Change::Catalogue(_)
            | Change::Offerings(_)
            | Change::NodeClass(_)
            | Change::Interruption(_)
            | Change::Region(_),
        ) => true,
        Some(Change::Launch(_) | Change::Instance(_) | Change::Forgotten(_)) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_found_by_their_cluster_however_they_change() {
        let mut state = RegionState::default();
        let mut put = |id: &str, cluster: &str| {
            let instance = capacity::InstanceState {
                instance_id: id.to_owned(),
                cluster_id: cluster.to_owned(),
                ..Default::default()
            };
            state.apply(capacity::RegionChange { change: Some(Change::Instance(instance)) });
        };
        put("i-1", "a");
        put("i-2", "a");
        put("i-2", "b");
        let ids = |state: &RegionState, cluster: &str| -> Vec<String> {
            state.instances_of(cluster).map(|instance| instance.instance_id.clone()).collect()
        };
        assert_eq!((ids(&state, "a"), ids(&state, "b")), (vec!["i-1".into()], vec!["i-2".into()]));
        let forgotten =
            capacity::Forgotten { instance_ids: vec!["i-1".to_owned()], ..Default::default() };
        state.apply(capacity::RegionChange { change: Some(Change::Forgotten(forgotten)) });
        assert_eq!((ids(&state, "a").len(), state.by_cluster.len()), (0, 1));
    }
}
