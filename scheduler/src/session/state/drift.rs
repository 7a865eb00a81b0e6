//! Which claims have drifted, kept in step with what they are measured by.
//!
//! Invariant: a claim is measured again when it has changed, and all are when what they are
//! measured by has: in a large cluster neither is often.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClusterState, Stir, demand};
use crate::region::RegionState;
use crate::session::drift::{self, Drift};
use crate::session::rollout::{self, Rollout};

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

    /// Rollouts that are under way or have been stopped, by pool.
    #[must_use]
    pub const fn rollouts(&self) -> &BTreeMap<String, Rollout> {
        &self.rollouts
    }

    /// Looks how rollouts are getting on. When one is to be looked at again, in milliseconds since
    /// 1970, at the latest.
    pub fn refresh_rollouts(&mut self, region: &RegionState, now_ms: i64) -> Option<i64> {
        let found = rollout::all(self, region, now_ms);
        let before = std::mem::replace(&mut self.rollouts, found);
        let stopped = |rollouts: &BTreeMap<String, Rollout>, pool: &str| {
            rollouts.get(pool).is_some_and(|rollout| rollout.stopped.is_some())
        };
        let turned = |claim: &&String| {
            let pool = self.watched.get(*claim).map_or("", |claim| claim.pool.as_str());
            stopped(&before, pool) != stopped(&self.rollouts, pool)
        };
        let turned: Vec<String> = self.drift.drifted.keys().filter(turned).cloned().collect();
        for claim in &turned {
            self.show_claim(claim);
        }
        self.rollouts.values().filter_map(|rollout| rollout.due_ms).min()
    }

    /// Brings claims in line with what their pools and node classes ask for.
    pub fn refresh_drift(&mut self, region: &RegionState) {
        let basis = Some((region.stream, region.supply, region.synced));
        let due = std::mem::take(&mut self.drift.due);
        let due =
            if self.drift.basis == basis { due } else { self.watched.keys().cloned().collect() };
        self.drift.basis = basis;
        for name in due {
            let found = self.watched.get(&name);
            let found = found.and_then(|claim| drift::of_claim(self, claim, region));
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
