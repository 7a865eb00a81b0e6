//! Pools as they can be bought from at present.
//!
//! Invariant: a pool that cannot be read is left out of planning and said once for each reason.

use std::collections::BTreeMap;

use longshore_core::vocabulary::pool::NodePool;
use longshore_core::world::view::{Change, ObjectRef};
use longshore_proto::reference;
use longshore_proto::types::v1;
use longshore_proto::types::v1::object::Kind;

use super::ClusterState;
use crate::region::RegionState;
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

    /// Pools that cannot be read, and why.
    #[must_use]
    pub const fn unreadable_pools(&self) -> &BTreeMap<String, WireError> {
        &self.unreadable_pools
    }

    /// Brings the view in line with what the region has found and with the time. When rollouts are
    /// to be looked at again, in milliseconds since 1970, at the latest.
    pub fn refresh(&mut self, region: &RegionState, now_ms: i64) -> Option<i64> {
        self.refresh_drift(region);
        let look_ms = self.refresh_rollouts(region, now_ms);
        self.refresh_pools(region, now_ms);
        look_ms
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
