//! Column generation: fractions of patterns first, whole nodes after (Gilmore and Gomory, 1961).
//!
//! Invariant: patterns are feasible nodes, so whatever the programme says, what is bought is valid;
//! rounding leaves a rest that the greedy packs with the programme's own prices.

use super::greedy::{self, Solution, Task};
use super::ledger::Ledger;
use super::lp;
use super::pattern::{self, Pattern, Supply};
use super::problem::Packed;
use super::vector::float;

/// How much work the programme may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Most rounds of solving and pricing.
    pub(crate) rounds: usize,
    /// Most patterns kept.
    pub(crate) patterns: usize,
    /// A round that lowers the price by less than this share is the last.
    pub(crate) gain_min: f64,
}

/// Most pivots of one programme.
const PIVOTS_MAX: usize = 2_000;
/// A pattern must be worth this much more than its price to be worth adding.
const IMPROVEMENT: f64 = 1.0 + 1e-6;

/// Packs what is left by rounding the programme's optimum, starting from known patterns.
pub(crate) fn pack(
    task: Task<'_>,
    left: &[i64],
    known: &[Packed],
    ledger: &mut Ledger,
    bounds: Bounds,
) -> Solution {
    let mut master = Master::new(task, left, known);
    let mut optimum = master.solve();
    for _ in 0..bounds.rounds {
        if master.patterns.len() >= bounds.patterns || master.price(&optimum.point) == 0 {
            break;
        }
        let before = master.worth(&optimum.point);
        optimum = master.solve();
        if master.worth(&optimum.point) > before * (1.0 - bounds.gain_min) {
            break;
        }
    }
    let mut rest = left.to_vec();
    let mut packed = master.round_down(&optimum.duals, &mut rest, ledger);
    // Rows that the programme values at nothing still have a price in resources.
    let values: Vec<f64> =
        optimum.point.iter().zip(task.values).map(|(pi, y)| pi.max(y * 1e-3)).collect();
    let by_rows = finish(Task { values: &values, ..task }, &rest, ledger);
    let by_resources = finish(task, &rest, ledger);
    let price = |(solution, _): &(Solution, Ledger)| {
        (solution.left.iter().sum::<i64>(), task.problem.price(&solution.packed))
    };
    let (end, spent) = if price(&by_rows) <= price(&by_resources) { by_rows } else { by_resources };
    *ledger = spent;
    packed.extend(end.packed);
    Solution { packed, left: end.left }
}

fn finish(task: Task<'_>, rest: &[i64], ledger: &Ledger) -> (Solution, Ledger) {
    let mut ledger = ledger.clone();
    let solution = greedy::pack(task, rest.to_vec(), &mut ledger);
    (solution, ledger)
}

/// The restricted master programme in its dual form: a value for each row such that no known pattern
/// is worth more than its price. The shadow price of a pattern is how often it is bought.
struct Master<'a> {
    task: Task<'a>,
    left: &'a [i64],
    patterns: Vec<Packed>,
}

impl<'a> Master<'a> {
    fn new(task: Task<'a>, left: &'a [i64], known: &[Packed]) -> Self {
        let mut master = Self { task, left, patterns: Vec::new() };
        for packed in known {
            master.add(packed.bin, packed.load.clone());
        }
        for row in 0..left.len() {
            let mut alone = vec![0; left.len()];
            alone[row] = left[row];
            let supply = Supply { left: &alone, values: task.values };
            let fills =
                task.bins.iter().filter_map(|bin| pattern::best(task.problem, *bin, supply));
            if let Some(best) = fills.min_by(|a, b| a.ratio.total_cmp(&b.ratio)) {
                master.add(best.bin, best.load);
            }
        }
        master
    }

    fn add(&mut self, bin: usize, load: Vec<(usize, i64)>) -> bool {
        let pattern = Packed { bin, load, copies: 1 };
        let new = !self.patterns.contains(&pattern);
        if new {
            self.patterns.push(pattern);
        }
        new
    }

    /// Price of the programme's optimum.
    fn worth(&self, values: &[f64]) -> f64 {
        self.left.iter().zip(values).map(|(count, value)| float(*count) * value).sum()
    }

    fn solve(&self) -> lp::Optimum {
        let counts: Vec<f64> = self.left.iter().map(|count| float(*count)).collect();
        let rows: Vec<(f64, Vec<f64>)> = self
            .patterns
            .iter()
            .map(|pattern| {
                let mut coefficients = vec![0.0; counts.len()];
                for (row, count) in &pattern.load {
                    coefficients[*row] = float(*count);
                }
                (float(self.task.problem.bins[pattern.bin].price), coefficients)
            })
            .collect();
        lp::maximise(&counts, &rows, PIVOTS_MAX)
    }

    /// Adds the patterns that the row values show to be worth more than they cost.
    fn price(&mut self, values: &[f64]) -> usize {
        let supply = Supply { left: self.left, values };
        let mut found: Vec<Pattern> = Vec::new();
        for bin in self.task.bins {
            let price = float(self.task.problem.bins[*bin].price);
            let fill = pattern::best(self.task.problem, *bin, supply);
            found.extend(fill.filter(|pattern| pattern.value > price * IMPROVEMENT));
        }
        found.sort_by(|a, b| a.ratio.total_cmp(&b.ratio).then(a.bin.cmp(&b.bin)));
        found.truncate(COLUMNS_EACH_ROUND);
        found.into_iter().filter(|p| self.add(p.bin, p.load.clone())).count()
    }

    fn round_down(&self, times: &[f64], rest: &mut [i64], ledger: &mut Ledger) -> Vec<Packed> {
        let mut packed = Vec::new();
        for (pattern, times) in self.patterns.iter().zip(times) {
            let bin = &self.task.problem.bins[pattern.bin];
            let whole = floor(*times + 1e-6).min(ledger.copies(bin));
            let fits = pattern.load.iter().map(|(row, count)| rest[*row] / count).min();
            let copies = whole.min(fits.unwrap_or(0));
            if copies > 0 {
                let bought = Packed { copies, ..pattern.clone() };
                greedy::take(&bought, rest);
                ledger.charge(bin, copies);
                packed.push(bought);
            }
        }
        packed
    }
}

/// Most patterns added by one round of pricing.
const COLUMNS_EACH_ROUND: usize = 12;

/// The integer part of a number of nodes.
#[expect(clippy::cast_possible_truncation, reason = "saturates; counts of nodes are small")]
fn floor(times: f64) -> i64 {
    times.floor() as i64
}
