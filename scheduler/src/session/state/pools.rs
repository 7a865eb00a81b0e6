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
use crate::session::duds::Avoided;
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

    /// Why nodes of a pool are tried one at a time: none comes into service; nothing when they do.
    #[must_use]
    pub fn failing(&self, pool: &str) -> Option<String> {
        let failures = self.health.failing(pool, self.edition(pool))?;
        Some(format!(
            "the last {failures} nodes did not come into service, so one is tried at a time; see the \
             Events of its NodeClaims, and mend the NodePool or its node class"
        ))
    }

    /// What pools do not buy for a while, since nodes of it did not come up.
    #[must_use]
    pub fn avoided(&self) -> Avoided {
        let of =
            |name: &String| (name.as_str().into(), self.health.avoided(name, self.edition(name)));
        self.pools.keys().map(of).filter(|(_, avoided)| !avoided.is_empty()).collect()
    }

    /// A pool of which no more than one node is bought at a time while they fail: none while one is
    /// coming.
    fn held_back(&self, mut pool: NodePool) -> NodePool {
        let Some(why) = self.failing(pool.name.as_str()) else { return pool };
        let claims = self.effective.values().filter(|claim| claim.pool == pool.name.as_str());
        let (there, coming): (Vec<_>, Vec<_>) =
            claims.partition(|claim| claim.initialize_time.is_some());
        if coming.iter().any(|claim| !claim.deleting) {
            pool.not_ready.get_or_insert(why);
        } else {
            let one_more = i64::try_from(there.len() + coming.len() + 1).unwrap_or(i64::MAX);
            let most = pool.limits.entry("nodes".to_owned()).or_insert(one_more);
            *most = (*most).min(one_more);
        }
        pool
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
    /// at, a budget begins or ceases to count, a move to save money does, or what was avoided is
    /// to be tried again.
    pub fn refresh(&mut self, region: &RegionState, now_ms: i64) -> Option<i64> {
        self.refresh_drift(region);
        let look_ms = self.refresh_rollouts(region, now_ms);
        let fewer_ms = self.evictions.forget(now_ms);
        let again_ms = self.health.forget(now_ms);
        self.refresh_pools(region, now_ms);
        let edges_ms = self.pools.values().filter_map(|it| wire::pool::next_edge_ms(it, now_ms));
        edges_ms.chain(look_ms).chain(fewer_ms).chain(again_ms).min()
    }

    /// Brings pools in line with what their node classes resolve to and with the time.
    fn refresh_pools(&mut self, region: &RegionState, now_ms: i64) {
        let before = std::mem::take(&mut self.unreadable_pools);
        for wire in self.pools.clone().into_values() {
            let class = self.classes.get(&wire.node_class);
            let supply = supply::of_class(&self.cluster_id, &wire.node_class, class, region);
            let error = match wire::pool::pool(&wire, &supply, now_ms) {
                Ok(mut pool) => {
                    let moved = self.evictions.of(&wire.name);
                    let left = &mut pool.disruption.evictions_left;
                    *left = left.map(|left| (left - moved).max(0));
                    let canary = self.rollout(&wire.name).and_then(|rollout| rollout.canary);
                    let pool = self.held_back(NodePool { canary, ..pool });
                    self.view.apply(Change::Pool(pool));
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use longshore_proto::capacity::v1::region_change;
    use longshore_proto::capacity::v1::{NodeClassResolution, RegionChange};
    use longshore_proto::cluster::v1::SetNodeClassStatus;
    use longshore_proto::types::v1::{NodeClaim, Object, ObjectChange, object_change};

    use super::*;
    use crate::session::duds::Sold;

    fn upsert(kind: Kind) -> ObjectChange {
        let object = Object { kind: Some(kind) };
        ObjectChange { change: Some(object_change::Change::Upsert(object)) }
    }

    fn claim(name: &str, serves: bool) -> Kind {
        let initialize_time = serves.then(prost_types::Timestamp::default);
        let (name, pool) = (name.to_owned(), "p".to_owned());
        Kind::NodeClaim(NodeClaim { name, pool, initialize_time, ..NodeClaim::default() })
    }

    /// Limit on nodes, and why nothing is bought, where the node class is ready.
    fn held(state: &mut ClusterState) -> (Option<i64>, Option<String>) {
        let status = SetNodeClassStatus { node_class: "k/n".to_owned(), ..Default::default() };
        let resolution = NodeClassResolution {
            cluster_id: "c".to_owned(),
            status: Some(status),
            ready: true,
            ..Default::default()
        };
        let mut region = RegionState::default();
        let change = Some(region_change::Change::NodeClass(resolution));
        region.apply(RegionChange { change });
        state.refresh(&region, 0);
        let pool = &state.view().world().pools["p"];
        (pool.limits.get("nodes").copied(), pool.not_ready.clone())
    }

    #[test]
    fn nodes_of_a_pool_that_fail_are_tried_one_at_a_time() {
        let mut state = ClusterState::new("c".to_owned(), 0);
        let (name, node_class) = ("p".to_owned(), "k/n".to_owned());
        let pool = v1::NodePool { name, node_class, ..Default::default() };
        let failing: Vec<Kind> = (0..4).map(|at| claim(&format!("bad{at}"), false)).collect();
        let all = [Kind::NodePool(pool), claim("good", true)].into_iter().chain(failing);
        state.apply(all.map(upsert).collect(), 0);
        assert_eq!(held(&mut state), (None, None));
        for at in 0..4 {
            assert_eq!(state.failing("p"), None);
            state.deleting(&format!("bad{at}"), "RegistrationTimeout", 0);
        }
        assert_eq!(held(&mut state), (Some(6), None), "one more than there are");
        state.apply(vec![upsert(claim("next", false))], 0);
        let (_, why) = held(&mut state);
        assert!(why.is_some_and(|why| why.starts_with("the last 4 nodes did not come")));
        state.apply(vec![upsert(claim("next", true))], 0);
        assert_eq!((held(&mut state), state.failing("p")), ((None, None), None), "it serves");
    }

    #[test]
    fn an_offering_whose_node_has_failed_is_avoided_until_it_is_tried_again() {
        let mut state = ClusterState::new("c".to_owned(), 0);
        let pool = v1::NodePool { name: "p".to_owned(), ..Default::default() };
        let dud = NodeClaim {
            name: "dud".to_owned(),
            pool: "p".to_owned(),
            instance_type: "m".to_owned(),
            zone: "a".to_owned(),
            capacity_type: v1::CapacityType::Spot.into(),
            ..Default::default()
        };
        state.apply([Kind::NodePool(pool.clone()), Kind::NodeClaim(dud)].map(upsert).into(), 0);
        state.deleting("dud", "RegistrationTimeout", 1_000);
        let avoided = |state: &ClusterState| {
            let of =
                |avoided: BTreeSet<Sold>| avoided.into_iter().map(|(name, ..)| name.to_string());
            state.avoided().into_values().flat_map(of).collect::<Vec<_>>()
        };
        assert_eq!(avoided(&state), ["m"]);
        state.reset(vec![upsert(Kind::NodePool(pool.clone()))], 2_000);
        assert_eq!(avoided(&state), ["m"], "a snapshot says nothing of it");
        let again_ms = state.refresh(&RegionState::default(), 2_000);
        assert_eq!(again_ms, Some(121_000), "two minutes after it failed");
        state.refresh(&RegionState::default(), 121_000);
        assert_eq!(avoided(&state), [""; 0]);
        state.deleting("dud", "Empty", 122_000);
        assert_eq!(avoided(&state), [""; 0]);
    }

    #[test]
    fn a_snapshot_gives_back_no_evictions() {
        let mut state = ClusterState::new("c".to_owned(), 0);
        let disruption = v1::Disruption { evictions_per_hour: Some(5), ..Default::default() };
        let pool = v1::NodePool {
            name: "p".to_owned(),
            node_class: "k/n".to_owned(),
            disruption: Some(disruption),
            ..Default::default()
        };
        let all = [Kind::NodePool(pool), claim("n", true)].map(upsert);
        state.apply(all.to_vec(), 0);
        state.moving("n", 3, 0);
        let left = |state: &mut ClusterState| {
            held(state);
            state.view().world().pools["p"].disruption.evictions_left
        };
        assert_eq!(left(&mut state), Some(2));
        state.reset(all.to_vec(), 0);
        assert_eq!(left(&mut state), Some(2));
    }
}
