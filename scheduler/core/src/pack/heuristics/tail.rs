//! The end of a packing: all that is left on the cheapest node or pair of nodes, and each node as
//! small as its load allows. Pairs are cut off by what the first could hold at most (the fractional
//! knapsack) and by price.
//!
//! Time: bins * log bins for one node; for pairs at most bins * bins, mostly cut off.
//!
//! Invariant: never makes a solution dearer and never moves a pod to a node that refuses it.

use crate::pack::heuristics::task::{Task, take};
use crate::pack::knapsack::pattern::{self, PatternEffort, Supply};
use crate::pack::problem::item_table::ItemTable;
use crate::pack::problem::limits::LimitsLeft;
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, float};
use crate::pack::problem::{Load, Packed, Problem};

/// How hard it is looked at what a bin could hold.
const GLANCE: PatternEffort = PatternEffort { rounds: 1, steps: 0, least: 0.0 };

/// All that is left on the cheapest one or two nodes for less than `limit`; none when there are
/// none.
pub(crate) fn finish(
    task: Task<'_>,
    left: &[i64],
    limits_left: &LimitsLeft,
    limit: i64,
) -> Option<Vec<Packed>> {
    let load = load_of(left);
    let pods = load.iter().map(|(class, count)| (task.problem.classes[*class].shape, *count));
    if load.is_empty() || task.problem.rules.nodes_min(pods) > 2 {
        return None;
    }
    // Two nodes hold at most twice the largest room: a cheap test that most steps fail.
    let whole = Fit::of(task.problem, &load);
    let weight = whole.weight.clone();
    let kinds = || task.bins.iter().map(|bin| &task.problem.bins[*bin]);
    if !kinds().any(|bin| holds_rest(&weight, &bin.room, &bin.room)) {
        return None;
    }
    let single = whole.cheapest(task.bins, limits_left, limit).map(|bin| (bin, load));
    let mut best: Option<Vec<Packed>> = single.map(|(bin, load)| vec![one(bin, load)]);
    let worth: f64 = left.iter().zip(task.values).map(|(n, value)| float(*n) * value).sum();
    for table in task.tables {
        let limit = best.as_ref().map_or(limit, |best| task.problem.price(best));
        let first = &task.problem.bins[table.bin];
        // What the first leaves costs about what it is worth, whatever holds it.
        let supply = Supply { left, values: task.values };
        let most = pattern::worth(table, supply, &mut table.even(), GLANCE);
        if float(first.price) + worth - most >= float(limit) {
            continue;
        }
        let mut seconds = kinds().take_while(|second| first.price + second.price < limit);
        if seconds.any(|second| holds_rest(&weight, &first.room, &second.room))
            && let Some(pair) = pair(task, table, left, limits_left, limit)
        {
            best = Some(pair);
        }
    }
    best
}

/// This bin and the cheapest for what it leaves, for less than `limit`.
fn pair(
    task: Task<'_>,
    table: &ItemTable,
    left: &[i64],
    limits_left: &LimitsLeft,
    limit: i64,
) -> Option<Vec<Packed>> {
    let kind = &task.problem.bins[table.bin];
    if limits_left.copies(kind) == 0 {
        return None;
    }
    let mut rest_limit = limit.saturating_sub(kind.price);
    let mut best = None;
    for mut first in pattern::fillings(task.problem, table, Supply { left, values: task.values }) {
        first.sort_unstable();
        let first = one(table.bin, first);
        let mut rest = left.to_vec();
        take(&first, &mut rest);
        let rest = load_of(&rest);
        let mut after = limits_left.clone();
        after.charge(kind, 1);
        let fit = Fit::of(task.problem, &rest);
        if let Some(second) = fit.cheapest(task.bins, &after, rest_limit) {
            rest_limit = task.problem.bins[second].price;
            best = Some(vec![first, one(second, rest)]);
        }
    }
    best
}

/// Moves every node to the cheapest bin of its tier that holds its load.
pub(crate) fn right_size(problem: &Problem, packed: &mut [Packed], limits_left: &mut LimitsLeft) {
    for entry in packed {
        let current = &problem.bins[entry.bin];
        let fit = Fit::of(problem, &entry.load);
        let line = &problem.skyline[current.tier];
        let holds = |bin: &&usize| {
            let bin = &problem.bins[**bin];
            bin.price < current.price && fit.holds(bin)
        };
        let smaller = line.iter().filter(holds).find(|bin| {
            limits_left.charge(current, -entry.copies);
            let cheaper = limits_left.copies(&problem.bins[**bin]) >= entry.copies;
            limits_left.charge(current, entry.copies);
            cheaper
        });
        if let Some(bin) = smaller {
            limits_left.charge(current, -entry.copies);
            limits_left.charge(&problem.bins[*bin], entry.copies);
            entry.bin = *bin;
        }
    }
}

/// What it takes to hold a load.
pub(crate) struct Fit<'a> {
    problem: &'a Problem,
    load: &'a [(usize, i64)],
    weight: vector::Vector,
    /// For each state that bins start with, whether the node rules let the load share a node.
    allowed: Vec<bool>,
}

impl<'a> Fit<'a> {
    /// For a load.
    pub(crate) fn of(problem: &'a Problem, load: &'a [(usize, i64)]) -> Self {
        let ruled =
            load.iter().any(|(class, _)| !problem.rules.is_free(problem.classes[*class].shape));
        let starts = problem.starts.iter();
        let allowed = starts.map(|start| !ruled || rules_allow(problem, load, start)).collect();
        Self { problem, load, weight: problem.weight(load), allowed }
    }

    /// The first, which is the cheapest, of the bins that holds the load for less than `limit`.
    pub(crate) fn cheapest(
        &self,
        bins: &[usize],
        limits_left: &LimitsLeft,
        limit: i64,
    ) -> Option<usize> {
        let kinds = bins.iter().map(|index| (*index, &self.problem.bins[*index]));
        kinds
            .take_while(|(_, bin)| bin.price < limit)
            .find(|(_, bin)| self.holds(bin) && limits_left.copies(bin) > 0)
            .map(|(index, _)| index)
    }

    /// True when the bin holds the load.
    pub(crate) fn holds(&self, bin: &crate::pack::problem::Bin) -> bool {
        vector::fits(&self.weight, &bin.room)
            && self.load.iter().all(|(class, _)| self.problem.admits[bin.group][*class])
            && self.allowed[bin.start]
    }
}

/// True when two rooms together have what is needed, whoever may share them.
fn holds_rest(weight: &[i64], first: &[i64], second: &[i64]) -> bool {
    let rooms = first.iter().zip(second);
    weight.iter().zip(rooms).all(|(need, (one, other))| *need <= one.saturating_add(*other))
}

/// True when pods of a load may share a node that starts with a state.
fn rules_allow(problem: &Problem, load: &[(usize, i64)], start: &NodeState) -> bool {
    let mut state = start.clone();
    load.iter().all(|(class, count)| {
        let shape = problem.classes[*class].shape;
        let allowed = problem.rules.allowance(shape, &state, false) >= *count;
        problem.rules.record(shape, *count, &mut state);
        allowed
    })
}

fn one(bin: usize, load: Load) -> Packed {
    Packed { bin, load, copies: 1 }
}

fn load_of(left: &[i64]) -> Load {
    left.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect()
}
