//! How many nodes and pods may still be disturbed: NodePool budgets and disruption budgets.
//!
//! Invariant: nodes that are leaving or not ready use up their pool's budget. A disruption budget
//! must allow an eviction for each node that holds covered pods, unless the node must go and its
//! drain is bounded; what one node takes is not given twice.

use std::collections::{BTreeMap, BTreeSet};

use crate::disrupt::candidate::Candidate;
use crate::model::Model;
use crate::vocabulary::ids::PoolName;
use crate::vocabulary::pool::DisruptionReason;

/// What may still be disturbed.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// Nodes of each pool: all that count, and those disturbed already.
    nodes: BTreeMap<PoolName, Count>,
    /// Drifted nodes that may still go of each pool whose rollout has not proven itself.
    canaries: BTreeMap<PoolName, i64>,
    /// Evictions left of each disruption budget, in order of key.
    evictions: Vec<i64>,
    /// Budgets that cover each shape.
    cover: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    total: i64,
    disturbed: i64,
}

impl Allowance {
    /// Counts what is disturbed before the plan.
    pub(crate) fn new(model: &Model<'_>) -> Self {
        let mut nodes: BTreeMap<PoolName, Count> = BTreeMap::new();
        for existing in &model.existing_nodes {
            let (Some(node), Some(claim)) = (existing.node, &existing.claim) else { continue };
            if claim.initialized_ms.is_some() {
                let count = nodes.entry(claim.pool.clone()).or_default();
                count.total += 1;
                count.disturbed += i64::from(existing.leaving || !node.ready);
            }
        }
        let budgets: Vec<_> = model.input.world.budgets.values().collect();
        let covers = |shape: &&crate::world::shape::PodShape| {
            (0..budgets.len()).filter(|index| budgets[*index].covers(shape)).collect()
        };
        let pools = model.input.world.pools.values();
        let canaries = pools.filter_map(|pool| {
            let canary = pool.canary?;
            Some((pool.name.clone(), canary.nodes - canary.under_way))
        });
        Self {
            nodes,
            canaries: canaries.collect(),
            evictions: budgets.iter().map(|budget| budget.disruptions_allowed).collect(),
            cover: model.shapes.iter().map(covers).collect(),
        }
    }

    /// True when all these nodes may go together.
    pub(crate) fn admits(
        &self,
        model: &Model<'_>,
        gone: &[&Candidate<'_>],
        reason: DisruptionReason,
    ) -> bool {
        let mut pools: BTreeMap<&PoolName, i64> = BTreeMap::new();
        for candidate in gone {
            *pools.entry(&candidate.pool.name).or_default() += 1;
        }
        let nodes = pools.iter().all(|(pool, more)| {
            let count = self.nodes.get(*pool).copied().unwrap_or_default();
            let rules = model.input.world.pools.get(*pool).map(|pool| &pool.disruption);
            let allowed = rules.and_then(|rules| rules.allowed(reason, count.total));
            let canaries = self.canaries.get(*pool).filter(|_| reason == DisruptionReason::Drifted);
            allowed.is_none_or(|allowed| count.disturbed + more <= allowed)
                && canaries.is_none_or(|left| more <= left)
        });
        let kept = gone.iter().copied().filter(|candidate| !candidate.overrides(reason));
        nodes && self.admits_evictions(&kept.collect::<Vec<_>>())
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
            for (shape, _) in &candidate.pods {
                for budget in &self.cover[*shape] {
                    self.evictions[*budget] -= 1;
                }
            }
        }
    }

    /// Each covering budget must allow an eviction when the node's turn comes, and none may be
    /// covered twice.
    fn admits_evictions(&self, gone: &[&Candidate<'_>]) -> bool {
        let mut left = self.evictions.clone();
        gone.iter().all(|candidate| {
            let shapes = candidate.pods.iter().map(|(shape, _)| *shape);
            let single = shapes.clone().all(|shape| self.cover[shape].len() <= 1);
            let budgets: BTreeSet<usize> =
                shapes.clone().flat_map(|shape| self.cover[shape].iter().copied()).collect();
            let allowed = budgets.iter().all(|budget| left[*budget] > 0);
            shapes.for_each(|shape| self.cover[shape].iter().for_each(|b| left[*b] -= 1));
            single && allowed
        })
    }
}
