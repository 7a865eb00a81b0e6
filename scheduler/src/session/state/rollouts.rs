//! Rollouts of a cluster's pools, kept in step with claims and time.
//!
//! Invariant: claims of a pool whose rollout has been stopped do not show as drifted to the
//! planner.

use std::collections::BTreeMap;

use longshore_core::world::claim::NodeClaim;
use longshore_proto::types::v1::NodePool;

use super::ClusterState;
use crate::region::RegionState;
use crate::session::rollout::{self, Look, Rollout};

impl ClusterState {
    /// Rollouts that are under way or have been stopped, by pool.
    #[must_use]
    pub const fn rollouts(&self) -> &BTreeMap<String, Rollout> {
        &self.rollouts
    }

    /// Looks how rollouts are getting on. When one is to be looked at again, in milliseconds since
    /// 1970, at the latest.
    pub fn refresh_rollouts(&mut self, region: &RegionState, now_ms: i64) -> Option<i64> {
        let found = self.find_rollouts(region, now_ms);
        let before = std::mem::replace(&mut self.rollouts, found);
        let stopped = |rollouts: &BTreeMap<String, Rollout>, pool: &str| {
            rollouts.get(pool).is_some_and(|rollout| rollout.stopped.is_some())
        };
        let turned = |claim: &&String| {
            let pool = self.watched.get(*claim).map_or("", |claim| claim.pool.as_str());
            stopped(&before, pool) != stopped(&self.rollouts, pool)
        };
        let turned: Vec<String> = self.drifted().keys().filter(turned).cloned().collect();
        for claim in &turned {
            self.show_claim(claim);
        }
        self.rollouts.values().filter_map(|rollout| rollout.due_ms).min()
    }

    /// Rollouts of all pools that have drifted nodes.
    fn find_rollouts(&self, region: &RegionState, now_ms: i64) -> BTreeMap<String, Rollout> {
        let drifting: Vec<&NodePool> = self.pools.values().filter(|it| self.drifts(it)).collect();
        if drifting.is_empty() {
            return BTreeMap::new();
        }
        let (world, drifted) = (self.view.world(), self.drifted());
        let mut claims: BTreeMap<&str, Vec<&NodeClaim>> = BTreeMap::new();
        for claim in world.claims.values().filter(|claim| !claim.provider_id.is_empty()) {
            claims.entry(claim.pool.as_str()).or_default().push(claim);
        }
        let of_pool = |pool: &NodePool| {
            let claims = claims.remove(pool.name.as_str()).unwrap_or_default();
            let found = region.node_class(&self.cluster_id, &pool.node_class);
            let found = found.and_then(|found| found.status.clone()).unwrap_or_default();
            let target = rollout::target(pool, self.classes.get(&pool.node_class), found);
            let look = Look { world, drifted, pool, now_ms };
            (pool.name.clone(), look.rollout(&claims, target))
        };
        drifting.into_iter().map(of_pool).collect()
    }

    fn drifts(&self, pool: &NodePool) -> bool {
        let mut drifted = self.drifted().keys();
        drifted.any(|claim| self.watched.get(claim).is_some_and(|it| it.pool == pool.name))
    }
}

#[cfg(test)]
mod tests;
