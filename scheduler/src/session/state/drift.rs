//! Which claims have drifted, kept in step with what they are measured by.
//!
//! Invariant: a claim is measured again when it has changed, and all are when what they are
//! measured by has: in a large cluster neither is often.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClusterState, Stir, demand};
use crate::region::RegionState;
use crate::session::drift::{self, Drift};

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
