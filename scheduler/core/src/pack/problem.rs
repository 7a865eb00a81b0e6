//! A packing problem: classes of equal pods, bins that can be bought, and who may go where.
//!
//! Invariant: immutable while it is solved; all indexes refer to its own lists.

pub(crate) mod dominance;
pub(crate) mod item_table;
pub(crate) mod limits;
pub(crate) mod rules;
pub(crate) mod vector;

use crate::pack::problem::limits::{LimitSet, LimitsLeft};
use crate::pack::problem::rules::{NodeRules, NodeState};
use crate::pack::problem::vector::Vector;
use crate::vocabulary::resources::total;

/// Equal pods that wait for a place.
#[derive(Clone, Debug)]
pub(crate) struct ItemClass {
    /// Shape of the pods, for node rules.
    pub(crate) shape: usize,
    /// What one of them requests.
    pub(crate) request: Vector,
    /// How many there are.
    pub(crate) count: i64,
}

/// A kind of node that can be bought.
#[derive(Clone, Debug)]
pub(crate) struct Bin {
    /// Price of one, in micro-dollars per hour.
    pub(crate) price: i64,
    /// What pods may use, after DaemonSets.
    pub(crate) room: Vector,
    /// Bins of one group admit the same classes.
    pub(crate) group: usize,
    /// NodePool weight tier; smaller is tried first.
    pub(crate) tier: usize,
    /// LimitSet that it draws on.
    pub(crate) limit_set: usize,
    /// What one of them draws, in the order of the limits of its set.
    pub(crate) charge: Vector,
    /// Reservation whose limit it draws one unit of.
    pub(crate) reservation: Option<usize>,
    /// What it holds of each node rule before any pod: DaemonSets.
    pub(crate) start: usize,
}

/// The problem.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Item classes.
    pub(crate) classes: Vec<ItemClass>,
    /// Bins, in a fixed order.
    pub(crate) bins: Vec<Bin>,
    /// For each group, whether it admits each class.
    pub(crate) admits: Vec<Vec<bool>>,
    /// Limits of pools, then reservations.
    pub(crate) limit_sets: Vec<LimitSet>,
    /// For each set of limits, whether these classes could use it up.
    pub(crate) scarce: Vec<bool>,
    /// Rules about sharing a node.
    pub(crate) rules: NodeRules,
    /// States that bins start with.
    pub(crate) starts: Vec<NodeState>,
    /// For each tier, bins worth considering: no other bin of the group has as much for less.
    pub(crate) skyline: Vec<Vec<usize>>,
}

/// Pods of some classes that share a node.
pub(crate) type Load = Vec<(usize, i64)>;

/// Equal nodes of a solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// Bin they are.
    pub(crate) bin: usize,
    /// Pods on each.
    pub(crate) load: Load,
    /// How many of them; at least 1.
    pub(crate) copies: i64,
}

impl Problem {
    /// True when the bin may hold pods of the class.
    pub(crate) fn admits(&self, bin: usize, class: usize) -> bool {
        self.admits[self.bins[bin].group][class]
    }

    /// True when as many of the bin can be had as anybody could want.
    pub(crate) fn is_ample(&self, bin: usize) -> bool {
        let bin = &self.bins[bin];
        bin.reservation.is_none() && !self.scarce[bin.limit_set]
    }

    /// What a load requests in all.
    pub(crate) fn weight(&self, load: &[(usize, i64)]) -> Vector {
        let mut sum = vec![0; self.bins.first().map_or(0, |bin| bin.room.len())];
        for (class, count) in load {
            crate::pack::problem::vector::add(&mut sum, &self.classes[*class].request, *count);
        }
        sum
    }

    /// Number of each class's pods.
    pub(crate) fn counts(&self) -> Vec<i64> {
        self.classes.iter().map(|class| class.count).collect()
    }

    /// Price of a solution.
    pub(crate) fn price(&self, packed: &[Packed]) -> i64 {
        total(packed.iter().map(|p| self.bins[p.bin].price.saturating_mul(p.copies)))
    }
}

/// For each set of limits, whether as many nodes as there are pods could use it up, each the one
/// that draws most.
pub(crate) fn scarce(bins: &[Bin], classes: &[ItemClass], limit_sets: &[LimitSet]) -> Vec<bool> {
    let pods = classes.iter().map(|class| class.count).fold(0, i64::saturating_add);
    let mut scarce = vec![false; limit_sets.len()];
    for bin in bins {
        let draws = bin.charge.iter().map(|each| each.saturating_mul(pods));
        let runs_out = draws.zip(&limit_sets[bin.limit_set].left).any(|(all, left)| all > *left);
        scarce[bin.limit_set] |= runs_out;
    }
    scarce
}

/// What was bought, what is left, and what the limits still allow.
pub(crate) struct Outcome {
    /// Nodes to buy.
    pub(crate) packed: Vec<Packed>,
    /// Pods of each class without a place.
    pub(crate) left: Vec<i64>,
    /// Limits after buying.
    pub(crate) limits_left: LimitsLeft,
}
