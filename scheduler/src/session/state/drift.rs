//! Which claims have drifted, kept in step with what they are measured by.
//!
//! Invariant: a claim is measured again when it has changed, and all are when what they are
//! measured by has: in a large cluster neither is often. Nothing is written on one before.

use std::collections::{BTreeMap, BTreeSet};

use longshore_proto::capacity::v1::NodeClassResolution;
use longshore_proto::cluster::v1::NoteDrift;
use longshore_proto::provider_id::instance_id;
use longshore_proto::types::v1::{NodeClaim, NodePool};
use longshore_runtime::planted;

use super::{ClusterState, Stir, demand};
use crate::region::RegionState;
use crate::session::drift::{self, Drift, Wanted};

/// What has been found.
#[derive(Default)]
pub(super) struct Found {
    drifted: BTreeMap<String, Drift>,
    /// Claims to be measured; all of them while there is no basis.
    due: BTreeSet<String>,
    /// State of the region when all claims were measured last.
    basis: Option<(u64, u64, bool)>,
}

impl Found {
    /// Measures a claim again, next time.
    pub(super) fn measure(&mut self, claim: &str) {
        self.due.insert(claim.to_owned());
    }

    /// Measures all claims again, next time.
    pub(super) const fn measure_all(&mut self) {
        self.basis = None;
    }

    /// True for a claim that is still to be measured.
    fn is_due(&self, claim: &str) -> bool {
        (self.basis.is_none() || self.due.contains(claim)) && !planted::is("S37")
    }

    /// What was found last, until all claims are measured again.
    pub(super) fn renewed(self) -> Self {
        Self { basis: None, ..self }
    }

    /// A claim is gone.
    pub(super) fn forget(&mut self, claim: &str) {
        self.due.remove(claim);
        self.drifted.remove(claim);
    }
}

impl ClusterState {
    /// Claims whose nodes are not what is asked for, and why.
    #[must_use]
    pub const fn drifted(&self) -> &BTreeMap<String, Drift> {
        &self.drift.drifted
    }

    /// What claims are measured by may have changed.
    pub(super) const fn measure(&mut self, changed: bool) -> Stir {
        if changed {
            self.drift.measure_all();
        }
        demand(changed)
    }

    /// What nodes of each pool count as made from now.
    #[must_use]
    pub fn drift_hashes(&self) -> BTreeMap<String, String> {
        let hash = |pool: &NodePool| self.wanted(pool, &pool.node_class, None).hash();
        self.pools.values().map(|pool| (pool.name.clone(), hash(pool))).collect()
    }

    /// Directives that write on claims what they count as made from, and whether they have
    /// drifted; on none that is still to be measured, which may say more of itself than is known.
    #[must_use]
    pub fn drift_notes(&self) -> Vec<NoteDrift> {
        let launched = self.watched.values().filter(|claim| is_measured(claim));
        let launched = launched.filter(|claim| !self.drift.is_due(&claim.name));
        let notes = launched.filter_map(|claim| {
            let wanted = self.wanted(self.pools.get(&claim.pool)?, &claim.node_class, None);
            drift::note(wanted, claim, self.drifted().get(&claim.name))
        });
        notes.collect()
    }

    pub(super) fn wanted<'a>(
        &'a self,
        pool: &'a NodePool,
        class: &str,
        found: Option<&'a NodeClassResolution>,
    ) -> Wanted<'a> {
        Wanted { pool, class: self.classes.get(class), found }
    }

    /// Why a claim's node is not what is asked for; nothing when it is, or has not been launched.
    fn drift_of(&self, claim: &NodeClaim, region: &RegionState) -> Option<Drift> {
        // A watcher of the version before knows nothing of drift.
        let pool = self.pools.get(&claim.pool).filter(|pool| !pool.drift_hash.is_empty());
        let pool = pool.filter(|_| is_measured(claim))?;
        let found = region.node_class(&self.cluster_id, &claim.node_class);
        let instance = region.instances.get(instance_id(&claim.provider_id));
        self.wanted(pool, &claim.node_class, found).drift_of(claim, instance)
    }

    /// Brings claims in line with what their pools and node classes ask for.
    pub fn refresh_drift(&mut self, region: &RegionState) {
        let basis = Some((region.stream, region.resolved, region.synced));
        let due = std::mem::take(&mut self.drift.due);
        let due =
            if self.drift.basis == basis { due } else { self.watched.keys().cloned().collect() };
        self.drift.basis = basis;
        for name in due {
            let found = self.watched.get(&name);
            let found = found.and_then(|claim| self.drift_of(claim, region));
            let drifted = found.is_some();
            let before = match found {
                Some(drift) => self.drift.drifted.insert(name.clone(), drift),
                None => self.drift.drifted.remove(&name),
            };
            if before.is_some() != drifted {
                self.show_claim(&name);
            }
        }
    }
}

/// True for a claim that has an instance, and keeps it.
const fn is_measured(claim: &NodeClaim) -> bool {
    !claim.provider_id.is_empty() && !claim.deleting
}

#[cfg(test)]
mod tests;
