//! The question that [`plan`](crate::plan) answers.
//!
//! Invariant: everything a plan depends on is in here; equal questions have equal answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::offers::objective::Objective;
use crate::vocabulary::catalogue::Catalogue;
use crate::vocabulary::ids::{CatalogueId, ClaimName, InstanceTypeName, PodUid, PoolName, ShapeId};
use crate::vocabulary::pool::NodePool;
use crate::vocabulary::resources::total;
use crate::world::claim::NodeClaim;
use crate::world::node::Node;
use crate::world::view::World;

/// Everything a plan depends on.
#[derive(Clone, Debug)]
pub struct PlanInput {
    /// The cluster.
    pub world: Arc<World>,
    /// What the region sells, by the id that pools refer to.
    pub catalogues: BTreeMap<CatalogueId, Arc<Catalogue>>,
    /// What overlays make of it for the pools that they touch; see
    /// [`overlaid`](crate::offers::overlaid).
    pub overlaid: BTreeMap<PoolName, Arc<Catalogue>>,
    /// EC2 ids (`i-…`) of instances that are about to be taken away.
    pub interrupted_instances: BTreeSet<String>,
    /// Living instances of a pool that no claim of the world stands for, by type: claims that
    /// cannot be read, and leaks. They draw on the limits of the pool all the same.
    pub unclaimed: BTreeMap<PoolName, BTreeMap<InstanceTypeName, i64>>,
    /// Where the plan before wanted waiting pods, as the name of a node or claim. Pods of one shape
    /// are interchangeable; this keeps their names from being shuffled while nodes are on their
    /// way.
    pub earlier: BTreeMap<PodUid, String>,
    /// Places that the plan before kept for pods which had not come yet, on nodes and claims by
    /// name, by shape. Without these, pods that come would fill what was bought for them in another
    /// order, and not find room.
    pub kept: BTreeMap<String, BTreeMap<ShapeId, i64>>,
    /// Claims whose nodes have been told to open to pods: one that is not ready for a moment again
    /// keeps its pods.
    pub opening: BTreeSet<ClaimName>,
    /// Whether pods are let in one by one to nodes that are closed to all others: each can wait for
    /// its own node then, though others have room, until one of these opens.
    pub pinned: bool,
    /// Claims that are left alone although they might go.
    pub spared: BTreeMap<ClaimName, Spared>,
    /// Whether nodes are looked at that could go by choice, empty or for a saving; those that must
    /// be replaced always are. Where it is left out, the plan says all the same when to look again.
    pub consolidates: bool,
    /// The time the plan is made for, in milliseconds since 1970.
    pub now_ms: i64,
    /// How hard to try.
    pub effort: Effort,
    /// What happens when `minValues` of a pool cannot be kept.
    pub min_values: MinValuesPolicy,
    /// What pods preference of other pods (ScheduleAnyway spreads, preferred affinity and
    /// anti-affinity over zones and the like) may make a node cost this much more than the
    /// cheapest, in percent.
    pub preference_premium_percent: i64,
    /// What is minimised.
    pub objective: Objective,
}

/// Default of [`PlanInput::preference_premium_percent`]: spot prices of one type differ by as much
/// between zones from day to day.
pub const PREFERENCE_PREMIUM_PERCENT: i64 = 10;

impl Default for PlanInput {
    fn default() -> Self {
        Self {
            world: Arc::default(),
            catalogues: BTreeMap::new(),
            overlaid: BTreeMap::new(),
            interrupted_instances: BTreeSet::new(),
            unclaimed: BTreeMap::new(),
            earlier: BTreeMap::new(),
            kept: BTreeMap::new(),
            opening: BTreeSet::new(),
            pinned: false,
            spared: BTreeMap::new(),
            consolidates: true,
            now_ms: 0,
            effort: Effort::default(),
            min_values: MinValuesPolicy::default(),
            preference_premium_percent: PREFERENCE_PREMIUM_PERCENT,
            objective: Objective::default(),
        }
    }
}

/// Why nothing is done to a claim by choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spared {
    /// Its disruption has been called off; left alone until then, in milliseconds since 1970.
    UntilMs(i64),
    /// It, its node or pool, a pod on it or a budget of such a pod is there and cannot be read.
    Unreadable,
}

/// What happens when a launch cannot keep as many values open as `minValues` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinValuesPolicy {
    /// Nothing is launched.
    #[default]
    Strict,
    /// What there is is launched.
    BestEffort,
}

impl PlanInput {
    /// How many living instances of a pool no claim stands for.
    #[must_use]
    pub fn unclaimed_of(&self, pool: &PoolName) -> i64 {
        total(self.unclaimed.get(pool).into_iter().flatten().map(|(_, count)| *count))
    }

    /// Why the claim is left alone; none when it is not, or no longer.
    #[must_use]
    pub fn spared(&self, claim: &ClaimName) -> Option<Spared> {
        self.spared.get(claim).copied().filter(|spared| match spared {
            Spared::UntilMs(until_ms) => self.now_ms < *until_ms,
            Spared::Unreadable => true,
        })
    }

    /// True while a node of ours is what its claim promises rather than what it shows: it has not
    /// initialised, or its taint is not yet seen to be gone.
    #[must_use]
    pub fn is_settling(&self, claim: &NodeClaim, node: &Node) -> bool {
        claim.initialized_ms.is_none_or(|initialized_ms| {
            node.opened_until_ms(initialized_ms).is_some_and(|until_ms| self.now_ms < until_ms)
        })
    }

    /// True while pods may wait for a node that is settling: it is ready, has been, or may still be
    /// in time.
    #[must_use]
    pub fn may_wait_for(&self, claim: &NodeClaim, node: &Node) -> bool {
        let late = node.late_from_ms().is_some_and(|late_ms| late_ms <= self.now_ms);
        self.is_settling(claim, node) && (!late || self.opening.contains(&claim.name))
    }

    /// What a pool can buy from, overlays included; none when its region has not reported it yet.
    #[must_use]
    pub fn catalogue_of(&self, pool: &NodePool) -> Option<&Catalogue> {
        let own = self.overlaid.get(&pool.name).or_else(|| self.catalogues.get(&pool.catalogue));
        own.map(AsRef::as_ref)
    }
}

/// How much work a plan may take. Counted in steps, never in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// First good plan.
    Greedy,
    /// A plan worth launching.
    #[default]
    Default,
    /// The best plan this version can find.
    Max,
}
