//! Rollouts of a cluster's pools, kept in step with claims and time.
//!
//! Invariant: claims of a pool whose rollout has been stopped do not show as drifted to the
//! planner.

use std::collections::BTreeMap;

use longshore_core::world::claim::NodeClaim;
use longshore_proto::cluster::v1::Condition;
use longshore_proto::types::v1::NodePool;

use super::ClusterState;
use crate::region::RegionState;
use crate::session::rollout::{self, Look, Rollout};

/// By pool, of those that were looked at: the rollout that is under way or has been stopped.
pub(super) type Rollouts = BTreeMap<String, Option<Rollout>>;

impl ClusterState {
    /// Rollouts that are under way or have been stopped, by pool.
    pub fn rollouts(&self) -> impl Iterator<Item = (&String, &Rollout)> {
        self.rollouts.iter().filter_map(|(pool, rollout)| Some((pool, rollout.as_ref()?)))
    }

    /// The rollout of a pool that is under way or has been stopped.
    pub(super) fn rollout(&self, pool: &str) -> Option<&Rollout> {
        self.rollouts.get(pool)?.as_ref()
    }

    /// What a pool is to say of its rollout. Nothing before one was looked for: what it says is all
    /// that is remembered of a rollout that was stopped.
    #[must_use]
    pub fn rollout_condition(&self, pool: &str) -> Option<Condition> {
        self.rollouts.get(pool).map(|rollout| rollout::condition(rollout.as_ref()))
    }

    /// Looks how rollouts are getting on. When one is to be looked at again, in milliseconds since
    /// 1970, at the latest.
    pub fn refresh_rollouts(&mut self, region: &RegionState, now_ms: i64) -> Option<i64> {
        let found = self.find_rollouts(region, now_ms);
        let before = std::mem::replace(&mut self.rollouts, found);
        let turned = |claim: &&String| {
            let pool = self.watched.get(*claim).map_or("", |claim| claim.pool.as_str());
            is_stopped(&before, pool) != is_stopped(&self.rollouts, pool)
        };
        let turned: Vec<String> = self.drifted().keys().filter(turned).cloned().collect();
        for claim in &turned {
            self.show_claim(claim);
        }
        self.rollouts().filter_map(|(_, rollout)| rollout.due_ms).min()
    }

    /// Rollouts of all pools; those that have drifted nodes have one.
    fn find_rollouts(&self, region: &RegionState, now_ms: i64) -> Rollouts {
        let mut found: Rollouts = self.pools.keys().map(|pool| (pool.clone(), None)).collect();
        let drifting: Vec<&NodePool> = self.pools.values().filter(|it| self.drifts(it)).collect();
        if drifting.is_empty() {
            return found;
        }
        let (world, drifted) = (self.view.world(), self.drifted());
        let mut claims: BTreeMap<&str, Vec<&NodeClaim>> = BTreeMap::new();
        for claim in world.claims.values().filter(|claim| !claim.provider_id.is_empty()) {
            claims.entry(claim.pool.as_str()).or_default().push(claim);
        }
        let of_pool = |pool: &NodePool| {
            let claims = claims.remove(pool.name.as_str()).unwrap_or_default();
            let resolution = region.node_class(&self.cluster_id, &pool.node_class);
            let target = rollout::target(self.wanted(pool, &pool.node_class, resolution));
            let look = Look { world, drifted, pool, now_ms };
            (pool.name.clone(), Some(look.rollout(&claims, target)))
        };
        found.extend(drifting.into_iter().map(of_pool));
        found
    }

    fn drifts(&self, pool: &NodePool) -> bool {
        let mut drifted = self.drifted().keys();
        drifted.any(|claim| self.watched.get(claim).is_some_and(|it| it.pool == pool.name))
    }
}

/// True for a pool whose rollout has been stopped.
pub(super) fn is_stopped(rollouts: &Rollouts, pool: &str) -> bool {
    let rollout = rollouts.get(pool).and_then(Option::as_ref);
    rollout.is_some_and(|rollout| rollout.stopped.is_some())
}

#[cfg(test)]
mod tests;
