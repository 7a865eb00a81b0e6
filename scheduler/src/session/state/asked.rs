//! What has been asked of the watcher and does not show yet.
//!
//! Invariant: it shows to the planner at once, and only until the cluster does.

use longshore_proto::types::v1;

use super::{ClusterState, Stir, demand};

impl ClusterState {
    /// A claim has been asked for.
    pub fn creating(&mut self, claim: v1::NodeClaim, now_ms: i64) {
        let name = claim.name.clone();
        self.company.asked(&name, now_ms);
        self.effects.create(claim, now_ms);
        self.show_claim(&name);
    }

    /// The watcher has created a claim.
    pub fn created(&mut self, claim: &str) {
        self.created.insert(claim.to_owned());
    }

    /// A claim has been marked for disruption, or the mark taken back by an empty reason.
    pub fn disrupting(&mut self, claim: &str, reason: &str, replaced_by: &[String], now_ms: i64) {
        self.effects.disrupt(claim, reason, replaced_by, now_ms);
        self.show_claim(claim);
    }

    /// Pods move off a claim's node to save money.
    pub fn moving(&mut self, claim: &str, pods: usize, now_ms: i64) {
        let of_claim = self.effective.get(claim).map(|claim| claim.pool.as_str());
        let bounded = |name: &&str| {
            let rules = self.pools.get(*name).and_then(|pool| pool.disruption.as_ref());
            rules.is_some_and(|rules| rules.evictions_per_hour.is_some())
        };
        if let Some(pool) = of_claim.filter(bounded) {
            self.evictions.add(pool, pods, now_ms);
        }
    }

    /// Deletion of a claim has been asked for, and why.
    pub fn deleting(&mut self, claim: &str, reason: &str, now_ms: i64) {
        // Asked for again, it is the same end.
        if let Some(ending) = self.effective.get(claim).filter(|claim| !claim.deleting) {
            self.health.ends(ending, self.edition(&ending.pool), reason, now_ms);
        }
        self.effects.delete(claim, now_ms);
        self.show_claim(claim);
    }

    /// What was asked for a claim will not happen.
    pub fn refused(&mut self, claim: &str) {
        self.company.left(claim);
        self.effects.refuse(claim);
        self.show_claim(claim);
    }

    /// Drops effects whose time is over, and says what that calls for: what was counted on has not
    /// come.
    pub fn expire(&mut self, now_ms: i64) -> Stir {
        let over = self.effects.expire(now_ms);
        let stirs = over.iter().map(|name| self.show_claim(name) > Stir::Nothing);
        demand(stirs.fold(false, |any, one| any | one))
    }
}
