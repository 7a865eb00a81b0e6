//! Pools as they can be bought from at present.
//!
//! Invariant: a pool that cannot be read is left out of planning and said once for each reason.

use std::collections::BTreeMap;

use longshore_core::vocabulary::pool::NodePool;
use longshore_core::world::view::{Change, ObjectRef};
use longshore_proto::cluster::v1::Condition;
use longshore_proto::reference;
use longshore_proto::types::v1;
use longshore_proto::types::v1::object::Kind;

use super::ClusterState;
use crate::region::RegionState;
use crate::session::health::Edition;
use crate::session::supply;
use crate::wire::{self, WireError};

impl ClusterState {
    /// A pool as the watcher sent it.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&v1::NodePool> {
        self.pools.get(name)
    }

    /// All pools as the watcher sent them.
    #[must_use]
    pub const fn pools(&self) -> &BTreeMap<String, v1::NodePool> {
        &self.pools
    }

    /// Whether nodes of a pool come up, as its condition says; nothing while that is not known.
    #[must_use]
    pub fn registration(&self, pool: &str) -> Option<Condition> {
        self.health.condition(pool, self.edition(pool))
    }

    /// Generations of a pool and its node class.
    pub(super) fn edition(&self, pool: &str) -> Edition {
        let Some(pool) = self.pools.get(pool) else { return Edition::default() };
        (pool.generation, self.classes.get(&pool.node_class).map_or(0, |class| class.generation))
    }

    /// Pools that cannot be read, and why.
    #[must_use]
    pub const fn unreadable_pools(&self) -> &BTreeMap<String, WireError> {
        &self.unreadable_pools
    }

    /// Brings the view in line with what the region has found and with the time. When to do that
    /// again although nothing has changed, in milliseconds since 1970: a rollout is to be looked
    /// at, or a budget begins or ceases to count.
    pub fn refresh(&mut self, region: &RegionState, now_ms: i64) -> Option<i64> {
        self.refresh_drift(region);
        let look_ms = self.refresh_rollouts(region, now_ms);
        self.refresh_pools(region, now_ms);
        let edges_ms = self.pools.values().filter_map(|it| wire::pool::next_edge_ms(it, now_ms));
        edges_ms.chain(look_ms).min()
    }

    /// Brings pools in line with what their node classes resolve to and with the time.
    fn refresh_pools(&mut self, region: &RegionState, now_ms: i64) {
        let before = std::mem::take(&mut self.unreadable_pools);
        for wire in self.pools.clone().into_values() {
            let class = self.classes.get(&wire.node_class);
            let supply = supply::of_class(&self.cluster_id, &wire.node_class, class, region);
            let error = match wire::pool::pool(&wire, &supply, now_ms) {
                Ok(pool) => {
                    let canary = self.rollouts.get(&wire.name).and_then(|rollout| rollout.canary);
                    self.view.apply(Change::Pool(NodePool { canary, ..pool }));
                    continue;
                }
                Err(error) => error,
            };
            self.view.remove(ObjectRef::Pool(wire.name.as_str().into()));
            self.unreadable_pools.insert(wire.name.clone(), error.clone());
            if before.get(&wire.name) != Some(&error) {
                self.refuse(reference::of(&Kind::NodePool(wire)), error);
            }
        }
    }
}
