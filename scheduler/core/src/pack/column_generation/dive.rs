//! Diving (Sadykov and others, 2019): whole nodes out of the master's fractions, a part at a time.
//! What is whole is bought, some of the largest fractions are rounded up, the master is solved
//! again for what is left, and the greedy packs the end.
//!
//! Time: a few rounds of column generation for each step; each step buys at least one node.
//!
//! Invariant: nothing is bought beyond what is left or allowed; the programme is solved again after
//! each part, so that what is bought later makes up for what rounding did before.

use crate::pack::column_generation::columns::{GenerationEffort, Generator};
use crate::pack::heuristics::greedy;
use crate::pack::heuristics::task::{self, Solution, Task};
use crate::pack::problem::Packed;
use crate::pack::problem::limits::LimitsLeft;

/// How fractions are rounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dive {
    /// A fraction of at least this much is rounded up, largest first.
    pub(crate) round_up: f64,
    /// Share of the fractional nodes that one step rounds up at most; one at least.
    pub(crate) share: f64,
    /// The greedy packs the rest once the programme buys no more than this many nodes for it.
    pub(crate) tail_nodes: f64,
    /// Work on new patterns after each step.
    pub(crate) generation: GenerationEffort,
}

/// Packs what is left by rounding the programme's optimum step by step.
pub(crate) fn pack(
    task: Task<'_>,
    mut generator: Generator<'_>,
    mut left: Vec<i64>,
    limits_left: &mut LimitsLeft,
    dive: Dive,
) -> Solution {
    let mut packed = Vec::new();
    while !task::is_done(&left) {
        let bought = generator.cover.bought();
        let before = packed.len();
        for (at, times) in &bought {
            let copies = floor(*times + 1e-6);
            packed.extend(take(task, &generator.patterns[*at], copies, &mut left, limits_left));
        }
        let nodes: f64 = bought.iter().map(|(_, times)| times - times.floor()).sum();
        if nodes <= dive.tail_nodes {
            break;
        }
        for at in upwards(&bought, dive) {
            let pattern = trimmed(&generator.patterns[at], &left);
            packed.extend(take(task, &pattern, 1, &mut left, limits_left));
        }
        if packed.len() == before {
            break;
        }
        generator.shrink(&left, limits_left);
        generator.generate(&left, dive.generation);
    }
    let values = mixed(&generator.values(), task.values);
    let by_rows = finish(Task { values: &values, ..task }, &left, limits_left);
    let by_resources = finish(task, &left, limits_left);
    let price = |(solution, _): &(Solution, LimitsLeft)| {
        (solution.left.iter().sum::<i64>(), task.problem.price(&solution.packed))
    };
    let (end, spent) = if price(&by_rows) <= price(&by_resources) { by_rows } else { by_resources };
    *limits_left = spent;
    packed.extend(end.packed);
    Solution { packed, left: end.left }
}

/// Classes that the programme values at nothing still have a price in resources.
fn mixed(values: &[f64], resources: &[f64]) -> Vec<f64> {
    values.iter().zip(resources).map(|(pi, y)| pi.max(y * 1e-3)).collect()
}

fn finish(task: Task<'_>, rest: &[i64], limits_left: &LimitsLeft) -> (Solution, LimitsLeft) {
    let mut limits_left = limits_left.clone();
    let solution = greedy::pack(task, rest.to_vec(), &mut limits_left);
    (solution, limits_left)
}

/// Patterns to buy once more than their whole part: those with the largest fractions.
fn upwards(bought: &[(usize, f64)], dive: Dive) -> Vec<usize> {
    let mut fractions: Vec<(f64, usize)> = bought
        .iter()
        .map(|(at, times)| ((times + 1e-6).fract() - 1e-6, *at))
        .filter(|(fraction, _)| *fraction > 1e-6)
        .collect();
    fractions.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let most = fractions.iter().map(|(fraction, _)| fraction).sum::<f64>() * dive.share;
    let large = fractions.iter().filter(|(fraction, _)| *fraction >= dive.round_up).count();
    let most = usize::try_from(floor(most)).unwrap_or(0).min(large).max(1);
    fractions.into_iter().take(most).map(|(_, at)| at).collect()
}

/// A pattern without the pods that are no longer left.
fn trimmed(pattern: &Packed, left: &[i64]) -> Packed {
    let load = pattern.load.iter().map(|(class, count)| (*class, left[*class].min(*count)));
    Packed { load: load.filter(|(_, count)| *count > 0).collect(), ..pattern.clone() }
}

/// Buys a pattern as often as wanted, left and allowed.
fn take(
    task: Task<'_>,
    pattern: &Packed,
    copies: i64,
    left: &mut [i64],
    limits_left: &mut LimitsLeft,
) -> Option<Packed> {
    let bin = &task.problem.bins[pattern.bin];
    let fits = pattern.load.iter().map(|(class, count)| left[*class] / count).min().unwrap_or(0);
    let copies = copies.min(fits).min(limits_left.copies(bin));
    (copies > 0).then(|| {
        let bought = Packed { copies, ..pattern.clone() };
        task::take(&bought, left);
        limits_left.charge(bin, copies);
        bought
    })
}

/// The integer part of a number of nodes.
#[expect(clippy::cast_possible_truncation, reason = "saturates; counts of nodes are small")]
fn floor(times: f64) -> i64 {
    times.floor() as i64
}
