//! Ruin and recreate (Schrimpf and others, 2000): a few wasteful nodes are taken apart and packed
//! anew, again and again. Waste is a node's price less the dual values of its pods.
//!
//! Time: bounded by `ImproveEffort::work`.
//!
//! Invariant: every step leaves a valid solution that is no dearer. The choice of nodes is random
//! but seeded by the problem alone, so equal problems give equal solutions.

use crate::pack::heuristics::greedy;
use crate::pack::heuristics::tail;
use crate::pack::heuristics::task::{self, Solution, Task};
use crate::pack::problem::limits::LimitsLeft;
use crate::pack::problem::vector::float;
use crate::pack::problem::{Packed, Problem};

/// How long to try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImproveEffort {
    /// Most nodes taken apart at once; at least 2.
    pub(crate) nodes: usize,
    /// Most attempts.
    pub(crate) attempts: usize,
    /// Attempts without success after which nothing more is tried.
    pub(crate) barren: usize,
    /// Most work in all: kinds of pods on the nodes that are taken apart, times those nodes, times
    /// bins.
    pub(crate) work: u64,
    /// Share of the price that may be wasted before anything is tried.
    pub(crate) waste_min: f64,
}

/// Share by which values are changed at random, so that attempts differ.
const NOISE: f64 = 0.03;

/// Makes a solution cheaper where it can. `values` are those of one pod of each class at the prices
/// that the programme found; what a node costs beyond the value of its pods is wasted.
pub(crate) fn improve(
    task: Task<'_>,
    values: &[f64],
    solution: &mut Solution,
    limits_left: &mut LimitsLeft,
    effort: ImproveEffort,
) {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut barren, mut work) = (0, 0);
    for attempt in 0..effort.attempts {
        let waste = waste(task.problem, values, &solution.packed);
        let total: f64 = waste.iter().map(|(waste, ..)| waste).sum();
        let price = float(task.problem.price(&solution.packed));
        let done = barren >= effort.barren || total <= price * effort.waste_min;
        if done || work >= effort.work {
            return;
        }
        let size = 2 + attempt % (effort.nodes - 1);
        let chosen = choose(&waste, size, &mut random);
        let noisy: Vec<f64> = values
            .iter()
            .zip(task.values)
            .map(|(value, y)| value.max(y * 1e-3) * (1.0 + NOISE * (random.unit() - 0.5)))
            .collect();
        let noisy = Task { values: &noisy, ..task };
        let loads = chosen.iter().map(|at| solution.packed[*at].load.len());
        work += loads.sum::<usize>() as u64 * (chosen.len() * task.bins.len()) as u64;
        barren = if renew(noisy, &chosen, solution, limits_left) { 0 } else { barren + 1 };
    }
}

/// Waste of each node, most wasteful first: waste, index of the entry, copies.
fn waste(problem: &Problem, values: &[f64], packed: &[Packed]) -> Vec<(f64, usize, i64)> {
    let each = packed.iter().enumerate().map(|(at, entry)| {
        let worth: f64 = entry.load.iter().map(|(class, n)| values[*class] * float(*n)).sum();
        let waste = (float(problem.bins[entry.bin].price) - worth).max(0.0);
        (waste * float(entry.copies), at, entry.copies)
    });
    let mut all: Vec<(f64, usize, i64)> = each.collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    all
}

/// Entries to take one node of each from: wasteful ones more often.
fn choose(waste: &[(f64, usize, i64)], size: usize, random: &mut Random) -> Vec<usize> {
    let mut pool: Vec<(f64, usize, i64)> = waste.to_vec();
    let mut chosen = Vec::new();
    while chosen.len() < size && !pool.is_empty() {
        let total: f64 = pool.iter().map(|(waste, ..)| waste).sum();
        let mut mark = random.unit() * total;
        let last = pool.len() - 1;
        let at = pool.iter().position(|(waste, ..)| {
            mark -= waste;
            mark <= 0.0
        });
        let entry = &mut pool[at.unwrap_or(last)];
        chosen.push(entry.1);
        entry.0 -= entry.0 / float(entry.2.max(1));
        entry.2 -= 1;
        pool.retain(|(_, _, copies)| *copies > 0);
    }
    chosen
}

/// Packs the pods of the chosen nodes anew; true when that is cheaper, and then the solution is
/// changed.
fn renew(
    task: Task<'_>,
    chosen: &[usize],
    solution: &mut Solution,
    limits_left: &mut LimitsLeft,
) -> bool {
    let mut left = vec![0; solution.left.len()];
    let mut after = limits_left.clone();
    let mut old = 0;
    for at in chosen {
        let entry = &solution.packed[*at];
        let bin = &task.problem.bins[entry.bin];
        old += bin.price;
        after.charge(bin, -1);
        entry.load.iter().for_each(|(class, count)| left[*class] += count);
    }
    let mut renewed = greedy::pack_below(task, left, &mut after, old);
    tail::right_size(task.problem, &mut renewed.packed, &mut after);
    if !task::is_done(&renewed.left) || task.problem.price(&renewed.packed) >= old {
        return false;
    }
    for at in chosen {
        solution.packed[*at].copies -= 1;
    }
    solution.packed.retain(|entry| entry.copies > 0);
    solution.packed.extend(renewed.packed);
    *limits_left = after;
    true
}

/// Xorshift.
struct Random(u64);

impl Random {
    /// A number from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
