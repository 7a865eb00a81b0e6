//! The whole of packing: tier by tier, several ways, the cheapest that leaves least.
//!
//! Invariant: NodePool weights come first, then the number of pods placed, then the price. More effort
//! never gives a worse answer, since every way starts from the same rows and the best is kept.

use super::columns::{self, Bounds};
use super::company;
use super::greedy::{self, Solution, Task};
use super::insert::{Habit, Nodes};
use super::ledger::Ledger;
use super::prices;
use super::problem::{Packed, Problem};
use super::tail;
use crate::plan::Effort;

/// Largest number of pods that are also packed one by one.
const ONE_BY_ONE_MAX: i64 = 256;
/// Most rows for which patterns are generated; the programme is dense.
const COLUMN_ROWS_MAX: usize = 256;
/// Most bins for which patterns are generated.
const COLUMN_BINS_MAX: usize = 600;

/// Work on patterns when a plan is due.
const DEFAULT_BOUNDS: Bounds = Bounds { rounds: 24, patterns: 400, gain_min: 5e-4 };
/// Work on patterns when quality counts more.
const MAX_BOUNDS: Bounds = Bounds { rounds: 200, patterns: 2_000, gain_min: 1e-6 };

/// What was bought, what is left, and what the limits still allow.
pub(crate) struct Outcome {
    /// Nodes to buy.
    pub(crate) packed: Vec<Packed>,
    /// Pods of each row without a place.
    pub(crate) left: Vec<i64>,
    /// Limits after buying.
    pub(crate) ledger: Ledger,
}

/// Packs all rows. `begun` says which node rules have members on existing nodes.
pub(crate) fn solve(problem: &Problem, effort: Effort, begun: &[bool]) -> Outcome {
    let mut outcome =
        Outcome { packed: Vec::new(), left: problem.counts(), ledger: Ledger::new(problem) };
    let mut solver = Solver { problem, effort, begun: begun.to_vec() };
    for tier in 0..problem.skyline.len() {
        solver.tier(&problem.skyline[tier], &mut outcome);
        if problem.budgets.iter().any(|budget| !budget.left.is_empty()) {
            // A limit may have ruled out what the skyline kept: look at every bin again.
            let all = all_bins(problem, tier);
            solver.tier(&all, &mut outcome);
        }
    }
    outcome
}

fn all_bins(problem: &Problem, tier: usize) -> Vec<usize> {
    let mut all: Vec<usize> =
        (0..problem.bins.len()).filter(|bin| problem.bins[*bin].tier == tier).collect();
    all.sort_by_key(|bin| (problem.bins[*bin].price, *bin));
    all
}

struct Solver<'a> {
    problem: &'a Problem,
    effort: Effort,
    begun: Vec<bool>,
}

/// One way of packing with what it leaves of the limits.
type Attempt = (Solution, Ledger);

impl Solver<'_> {
    fn tier(&mut self, bins: &[usize], outcome: &mut Outcome) {
        if greedy::is_done(&outcome.left) || bins.is_empty() {
            return;
        }
        let prices = prices::resource_prices(self.problem, &outcome.left, bins);
        let values = prices::row_values(self.problem, &prices);
        let task = Task { problem: self.problem, bins, values: &values };
        if let Some(seated) = company::seat(task, outcome, &mut self.begun) {
            outcome.packed.extend(seated);
        }
        let attempts = self.attempts(task, outcome);
        let best = attempts.into_iter().min_by_key(|(solution, _)| self.score(solution));
        let Some((solution, ledger)) = best else { return };
        outcome.packed.extend(solution.packed);
        outcome.left = solution.left;
        outcome.ledger = ledger;
    }

    fn attempts(&self, task: Task<'_>, outcome: &Outcome) -> Vec<Attempt> {
        let mut attempts =
            vec![self.sized(outcome, |left, ledger| greedy::pack(task, left, ledger))];
        if let Some(bounds) = self.column_bounds(task) {
            let known = attempts[0].0.packed.clone();
            attempts.push(
                self.sized(outcome, |left, ledger| {
                    columns::pack(task, &left, &known, ledger, bounds)
                }),
            );
        }
        if outcome.left.iter().sum::<i64>() <= ONE_BY_ONE_MAX {
            for habit in [Habit::Cheapest, Habit::Grow] {
                attempts.push(
                    self.sized(outcome, |left, ledger| self.one_by_one(task, left, habit, ledger)),
                );
            }
        }
        attempts
    }

    fn column_bounds(&self, task: Task<'_>) -> Option<Bounds> {
        let small =
            task.problem.rows.len() <= COLUMN_ROWS_MAX && task.bins.len() <= COLUMN_BINS_MAX;
        match self.effort {
            Effort::Default if small => Some(DEFAULT_BOUNDS),
            Effort::Max if small => Some(MAX_BOUNDS),
            Effort::Greedy | Effort::Default | Effort::Max => None,
        }
    }

    fn sized(
        &self,
        outcome: &Outcome,
        pack: impl FnOnce(Vec<i64>, &mut Ledger) -> Solution,
    ) -> Attempt {
        let mut ledger = outcome.ledger.clone();
        let mut solution = pack(outcome.left.clone(), &mut ledger);
        tail::right_size(self.problem, &mut solution.packed, &mut ledger);
        (solution, ledger)
    }

    /// Largest pods first, each where it adds least.
    fn one_by_one(
        &self,
        task: Task<'_>,
        mut left: Vec<i64>,
        habit: Habit,
        ledger: &mut Ledger,
    ) -> Solution {
        let mut order: Vec<usize> = (0..left.len()).filter(|row| left[*row] > 0).collect();
        order.sort_by(|a, b| task.values[*b].total_cmp(&task.values[*a]).then(a.cmp(b)));
        let mut nodes = Nodes::new(self.problem, task.bins, self.begun.clone());
        for row in order {
            if !self.needs_company(row) {
                left[row] = nodes.insert(row, left[row], habit, ledger);
            }
        }
        nodes.finish(left)
    }

    fn needs_company(&self, row: usize) -> bool {
        self.problem.rules.needs_company(self.problem.rows[row].shape)
    }

    /// Pods left first, then the price, then the number of nodes.
    fn score(&self, solution: &Solution) -> (i64, i64, i64) {
        let nodes = solution.packed.iter().map(|packed| packed.copies).sum();
        (solution.left.iter().sum(), self.problem.price(&solution.packed), nodes)
    }
}
