//! NodePools: what a user allows nodes to be, how many, and when they may be disturbed.
//!
//! Invariant: everything that depends on a clock or a cron schedule has been resolved by the
//! caller.

use std::collections::{BTreeMap, BTreeSet};

use crate::vocabulary::ids::{CatalogueId, PoolName, Zone};
use crate::vocabulary::labels::{Labels, NODE_POOL};
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::requirements::requirement::Requirement;
use crate::vocabulary::taint::Taint;

/// Most nodes that a pool may ask to be kept. More is taken for a slip of the pen, and the pool
/// makes none.
pub const REPLICAS_MAX: i64 = 100_000;

/// A NodePool, or a legacy Provisioner read as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePool {
    /// Name.
    pub name: PoolName,
    /// Larger is tried first.
    pub weight: i32,
    /// Node class its nodes are made from.
    pub node_class: String,
    /// Labels its nodes carry.
    pub labels: Labels,
    /// Annotations its nodes carry.
    pub annotations: BTreeMap<String, String>,
    /// Taints its nodes carry.
    pub taints: Vec<Taint>,
    /// Taints that something removes after start-up.
    pub startup_taints: Vec<Taint>,
    /// What its instances must satisfy.
    pub requirements: Requirements,
    /// Upper limits on the sum of its nodes' capacity by resource name; `nodes` counts nodes.
    pub limits: BTreeMap<String, i64>,
    /// When its nodes may be disrupted.
    pub disruption: DisruptionRules,
    /// Age at which its nodes expire, in milliseconds; none means never.
    pub expire_after_ms: Option<i64>,
    /// Longest drain, in milliseconds; none means as long as it takes.
    pub termination_grace_ms: Option<i64>,
    /// Catalogue its node class buys from.
    pub catalogue: CatalogueId,
    /// Zones its node class has subnets in; none means every zone of the catalogue.
    pub zones: Option<BTreeSet<Zone>>,
    /// How many nodes it keeps, whatever pods want; none for a pool that grows and shrinks with
    /// them.
    pub replicas: Option<i64>,
    /// True when its nodes may hold more pods of a spread over hosts than the spread's skew, as
    /// long as kube-scheduler allows it.
    pub dense_spread: bool,
    /// How far drifted nodes may be replaced while the new ones have not shown that they are any
    /// good; none where budgets alone decide.
    pub canary: Option<Canary>,
    /// Why nothing may be launched for it (node class not ready, pool being deleted ...); none
    /// when it is ready.
    pub not_ready: Option<String>,
}

impl NodePool {
    /// What is certain of its nodes: its requirements, its labels and its name in one.
    #[must_use]
    pub fn offered(&self) -> Requirements {
        let mut offered = self.requirements.and(&Requirements::from_labels(&self.labels));
        offered.add(NODE_POOL, Requirement::equals(self.name.as_str()));
        offered
    }
}

/// The first new nodes of a rollout, which the others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    /// How many there are to be.
    pub nodes: i64,
    /// How many of them are under way: looked at, or about to take over from a node that goes.
    pub under_way: i64,
}

/// Which nodes may be removed to save money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConsolidationPolicy {
    /// Only nodes without pods.
    WhenEmpty,
    /// Also nodes whose pods fit elsewhere or on something cheaper.
    #[default]
    WhenEmptyOrUnderutilized,
}

/// When nodes of a pool may be disrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisruptionRules {
    /// Which nodes.
    pub policy: ConsolidationPolicy,
    /// Quiet time after the last pod event, in milliseconds; none means never.
    pub consolidate_after_ms: Option<i64>,
    /// Budgets, all of which must hold. Empty means no bound.
    pub budgets: Vec<NodeBudget>,
    /// Pods that may still be moved now to save money; none without a bound.
    pub evictions_left: Option<i64>,
}

/// Bounds how many nodes of a pool may be disrupted at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeBudget {
    /// How many.
    pub nodes: BudgetNodes,
    /// Reasons it covers; empty means all.
    pub reasons: BTreeSet<DisruptionReason>,
    /// True while its schedule makes it count, or when it has none.
    pub active: bool,
}

/// Number of nodes in a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetNodes {
    /// A count.
    Count(i64),
    /// A percentage of the pool's nodes, rounded up.
    Percent(i64),
}

/// Why a node is disrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DisruptionReason {
    /// No pod that counts runs on it.
    Empty,
    /// Its pods fit elsewhere or on something cheaper.
    Underutilized,
    /// It no longer matches its pool.
    Drifted,
    /// It has reached its age.
    Expired,
    /// Its instance is about to be taken away.
    Interrupted,
    /// Its pool keeps fewer nodes than there are.
    Excess,
}

impl DisruptionReason {
    /// Its name, as claims and people have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Underutilized => "Underutilized",
            Self::Drifted => "Drifted",
            Self::Expired => "Expired",
            Self::Interrupted => "Interrupted",
            Self::Excess => "Excess",
        }
    }
}

impl BudgetNodes {
    /// Nodes allowed among `total`.
    #[must_use]
    pub fn of(self, total: i64) -> i64 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => percent.saturating_mul(total).saturating_add(99) / 100,
        }
    }
}

impl DisruptionRules {
    /// Nodes that may be disrupted at once for a reason among `total`; none means no bound.
    #[must_use]
    pub fn allowed(&self, reason: DisruptionReason, total: i64) -> Option<i64> {
        let covers = |b: &&NodeBudget| b.reasons.is_empty() || b.reasons.contains(&reason);
        let active = self.budgets.iter().filter(|budget| budget.active);
        active.filter(covers).map(|budget| budget.nodes.of(total)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(nodes: BudgetNodes, reasons: &[DisruptionReason], active: bool) -> NodeBudget {
        NodeBudget { nodes, reasons: reasons.iter().copied().collect(), active }
    }

    #[test]
    fn percentages_round_up_and_the_strictest_active_budget_wins() {
        let empty = [DisruptionReason::Empty];
        let rules = DisruptionRules {
            budgets: vec![
                budget(BudgetNodes::Percent(5), &[], true),
                budget(BudgetNodes::Count(0), &empty, true),
                budget(BudgetNodes::Count(0), &[], false),
            ],
            ..DisruptionRules::default()
        };
        assert_eq!(rules.allowed(DisruptionReason::Underutilized, 10), Some(1));
        assert_eq!(rules.allowed(DisruptionReason::Empty, 10), Some(0));
        assert_eq!(DisruptionRules::default().allowed(DisruptionReason::Empty, 10), None);
    }
}
