//! How many nodes and pods may still be disturbed: NodePool budgets and disruption budgets.
//!
//! Invariant: nodes that are leaving or not ready use up their pool's budget until their pods have
//! left: how long EC2 takes to end an instance holds up nobody. A disruption budget
//! must allow an eviction for each node that holds covered pods, unless the node must go and its
//! drain is bounded; what one node takes is not given twice.

use std::collections::BTreeMap;

use crate::disrupt::candidate::Candidate;
use crate::model::Model;
use crate::vocabulary::ids::PoolName;
use crate::vocabulary::pool::DisruptionReason;
use crate::world::budget::DisruptionBudget;
use crate::world::pod::Pod;

/// What may still be disturbed.
#[derive(Debug)]
pub(crate) struct Allowance<'a> {
    /// Nodes of each pool: all that count, and those disturbed already.
    nodes: BTreeMap<PoolName, Count>,
    /// Drifted nodes that may still go of each pool whose rollout has not proven itself.
    canaries: BTreeMap<PoolName, i64>,
    /// Pods that may still be moved to save money, of each pool that bounds them.
    savings: BTreeMap<PoolName, i64>,
    /// Evictions left of each disruption budget, in order of key.
    evictions: Vec<i64>,
    /// Budgets that cover each shape.
    cover: Vec<Vec<usize>>,
    /// Disruption budgets, in order of key.
    budgets: Vec<&'a DisruptionBudget>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    total: i64,
    disturbed: i64,
}

impl<'a> Allowance<'a> {
    /// Counts what is disturbed before the plan.
    pub(crate) fn new(model: &Model<'a>) -> Self {
        let mut nodes: BTreeMap<PoolName, Count> = BTreeMap::new();
        for existing in &model.existing_nodes {
            let (Some(node), Some(claim)) = (existing.node, &existing.claim) else { continue };
            if claim.initialized_ms.is_some() && !claim.drained {
                let count = nodes.entry(claim.pool.clone()).or_default();
                count.total += 1;
                count.disturbed += i64::from(existing.leaving || !node.ready);
            }
        }
        let budgets: Vec<&'a DisruptionBudget> = model.input.world.budgets.values().collect();
        let covers = |shape: &&crate::world::shape::PodShape| {
            (0..budgets.len()).filter(|index| budgets[*index].covers(shape)).collect()
        };
        let pools = model.input.world.pools.values();
        let canaries = pools.filter_map(|pool| {
            let canary = pool.canary?;
            Some((pool.name.clone(), canary.nodes - canary.under_way))
        });
        let pools = model.input.world.pools.values();
        let savings = pools.filter_map(|pool| {
            let left = pool.disruption.evictions_left?;
            Some((pool.name.clone(), left))
        });
        Self {
            nodes,
            canaries: canaries.collect(),
            savings: savings.collect(),
            evictions: budgets.iter().map(|budget| budget.disruptions_allowed).collect(),
            cover: model.shapes.iter().map(covers).collect(),
            budgets,
        }
    }

    /// True when all these nodes may go together.
    pub(crate) fn admits(
        &self,
        model: &Model<'_>,
        gone: &[&Candidate<'_>],
        reason: DisruptionReason,
    ) -> bool {
        let mut pools: BTreeMap<&PoolName, (i64, i64)> = BTreeMap::new();
        for candidate in gone {
            let (nodes, pods) = pools.entry(&candidate.pool.name).or_default();
            (*nodes, *pods) = (*nodes + 1, *pods + candidate.pod_count());
        }
        let nodes = pools.iter().all(|(pool, (more, pods))| {
            let (disturbed, allowed) = self.of_pool(model, pool, reason);
            let drifts = reason == DisruptionReason::Drifted;
            let canaries = self.canaries_left(pool).filter(|_| drifts);
            let moved = self.savings_left(pool, reason);
            allowed.is_none_or(|allowed| disturbed + more <= allowed)
                && canaries.is_none_or(|left| *more <= left)
                && moved.is_none_or(|left| *pods <= left)
        });
        let kept = gone.iter().copied().filter(|candidate| !candidate.overrides(reason));
        nodes && self.admits_evictions(&kept.collect::<Vec<_>>())
    }

    /// Nodes of a pool that are disturbed, and how many may be for a reason; none without a bound.
    pub(crate) fn of_pool(
        &self,
        model: &Model<'_>,
        pool: &PoolName,
        reason: DisruptionReason,
    ) -> (i64, Option<i64>) {
        let count = self.nodes.get(pool).copied().unwrap_or_default();
        let rules = model.input.world.pools.get(pool).map(|pool| &pool.disruption);
        (count.disturbed, rules.and_then(|rules| rules.allowed(reason, count.total)))
    }

    /// Drifted nodes of a pool that may still go while its rollout has not proven itself; none when
    /// it need not.
    pub(crate) fn canaries_left(&self, pool: &PoolName) -> Option<i64> {
        self.canaries.get(pool).copied()
    }

    /// Pods of a pool's nodes that may still be moved for a reason; none without a bound.
    pub(crate) fn savings_left(&self, pool: &PoolName, reason: DisruptionReason) -> Option<i64> {
        self.savings.get(pool).copied().filter(|_| saves(reason))
    }

    /// Disruption budgets that cover a shape, by their place in order of key.
    pub(crate) fn cover(&self, shape: usize) -> &[usize] {
        &self.cover[shape]
    }

    /// Disruption budgets that must allow the eviction of a pod.
    pub(crate) fn minding(&self, shape: usize, pod: &Pod) -> Vec<usize> {
        let cover = self.cover[shape].iter().copied();
        cover.filter(|budget| self.budgets[*budget].minds(pod)).collect()
    }

    /// Evictions that a disruption budget still allows.
    pub(crate) fn evictions_left(&self, budget: usize) -> i64 {
        self.evictions[budget]
    }

    /// Draws on the budgets.
    pub(crate) fn spend(&mut self, gone: &[&Candidate<'_>], reason: DisruptionReason) {
        for candidate in gone {
            self.nodes.entry(candidate.pool.name.clone()).or_default().disturbed += 1;
            if reason == DisruptionReason::Drifted
                && let Some(left) = self.canaries.get_mut(&candidate.pool.name)
            {
                *left -= 1;
            }
            if saves(reason)
                && let Some(left) = self.savings.get_mut(&candidate.pool.name)
            {
                *left -= candidate.pod_count();
            }
            for (shape, pod) in &candidate.pods {
                for budget in self.minding(*shape, pod) {
                    self.evictions[budget] -= 1;
                }
            }
        }
    }

    /// Each covering budget must allow an eviction when the node's turn comes, and none may be
    /// covered twice.
    fn admits_evictions(&self, gone: &[&Candidate<'_>]) -> bool {
        let mut left = self.evictions.clone();
        gone.iter().all(|candidate| {
            let pods = candidate.pods.iter();
            let single =
                pods.clone().all(|(shape, pod)| pod.surges || self.cover[*shape].len() <= 1);
            let minding = pods.flat_map(|(shape, pod)| self.minding(*shape, pod));
            let minding: Vec<usize> = minding.collect();
            let allowed = minding.iter().all(|budget| left[*budget] > 0);
            minding.iter().for_each(|budget| left[*budget] -= 1);
            single && allowed
        })
    }
}

/// True where pods are moved for nothing but money.
fn saves(reason: DisruptionReason) -> bool {
    reason == DisruptionReason::Underutilized
}
