//! The whole of packing: tier by tier, several ways, the cheapest that leaves least.
//!
//! Invariant: NodePool weights come first, then the number of pods placed, then the price. Every
//! way starts from the same classes and the best is kept; more effort tries more ways, most often
//! for a lower price.

use crate::pack::column_generation::columns::{GenerationEffort, Generator};
use crate::pack::column_generation::dive::{self, Dive};
use crate::pack::heuristics::affinity;
use crate::pack::heuristics::greedy;
use crate::pack::heuristics::improve::{self, ImproveEffort};
use crate::pack::heuristics::insert::{Nodes, Overflow};
use crate::pack::heuristics::part::{CheaperBins, Part};
use crate::pack::heuristics::task::{self, Solution, Task};
use crate::pack::heuristics::{tail, vector_fit};
use crate::pack::knapsack::pattern::PatternEffort;
use crate::pack::lp::prices;
use crate::pack::problem::item_table::ItemTable;
use crate::pack::problem::limits::LimitsLeft;
use crate::pack::problem::vector::float;
use crate::pack::problem::{Outcome, Problem};
use crate::question::Effort;

/// Largest number of pods that are also packed one by one.
const ONE_BY_ONE_MAX: i64 = 256;
/// Most classes for which patterns are generated; the programme is dense.
const COLUMN_ROWS_MAX: usize = 256;
/// Most bins for which patterns are generated.
const COLUMN_BINS_MAX: usize = 600;

/// How hard an effort tries.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Work on patterns before anything is bought.
    generation: GenerationEffort,
    /// Ways of rounding, each tried.
    dives: &'static [Dive],
    /// Work on the best of them.
    improving: ImproveEffort,
}

const DEFAULT_PATTERN_EFFORT: PatternEffort = PatternEffort { rounds: 4, steps: 100, least: 0.0 };
const MAX_PATTERN_EFFORT: PatternEffort = PatternEffort { rounds: 6, steps: 2_000, least: 0.0 };

/// Work when a plan is due.
const DEFAULT_SEARCH: Search = Search {
    generation: GenerationEffort {
        rounds: 200,
        work: 50_000_000,
        gain_min: 1e-3,
        pattern: DEFAULT_PATTERN_EFFORT,
    },
    dives: &[Dive {
        round_up: 0.5,
        share: 0.01,
        tail_nodes: 1.5,
        generation: GenerationEffort {
            rounds: 4,
            work: 50_000_000,
            gain_min: 1e-3,
            pattern: DEFAULT_PATTERN_EFFORT,
        },
    }],
    improving: ImproveEffort {
        nodes: 6,
        attempts: 60,
        barren: 30,
        work: 1_000_000,
        waste_min: 2e-3,
    },
};

/// Work when quality counts more.
const MAX_SEARCH: Search = Search {
    generation: GenerationEffort {
        rounds: 400,
        work: u64::MAX,
        gain_min: 1e-6,
        pattern: MAX_PATTERN_EFFORT,
    },
    dives: &[
        Dive {
            round_up: 0.5,
            share: 0.1,
            tail_nodes: 3.0,
            generation: GenerationEffort {
                rounds: 20,
                work: u64::MAX,
                gain_min: 1e-4,
                pattern: MAX_PATTERN_EFFORT,
            },
        },
        Dive {
            round_up: 0.8,
            share: 0.05,
            tail_nodes: 6.0,
            generation: GenerationEffort {
                rounds: 20,
                work: u64::MAX,
                gain_min: 1e-4,
                pattern: MAX_PATTERN_EFFORT,
            },
        },
    ],
    improving: ImproveEffort {
        nodes: 10,
        attempts: 2_000,
        barren: 400,
        work: u64::MAX,
        waste_min: 1e-4,
    },
};

/// Most kinds of pods for which patterns are bought one after the other when they can be put by
/// vector fit instead.
const ROWS_WITH_PATTERNS_MAX: i64 = 400;
/// So few kinds of pods that the programme of patterns takes no time.
const KINDS_FEW: i64 = 16;
/// Effort ends where the price exceeds a proved bound by less than this factor.
const CLOSE: f64 = 1.0 + 2e-3;
/// The same when the first good plan will do.
const FAIR: f64 = 1.0 + 1e-2;

/// Packs all classes. `occupied` says which node rules have members on existing nodes.
pub(crate) fn solve(problem: &Problem, effort: Effort, occupied: &[bool]) -> Outcome {
    let mut outcome = Outcome {
        packed: Vec::new(),
        left: problem.counts(),
        limits_left: LimitsLeft::new(problem),
    };
    let mut solver = Solver { problem, effort, occupied: occupied.to_vec() };
    for tier in 0..problem.skyline.len() {
        solver.tier(&problem.skyline[tier], &mut outcome);
        if problem.scarce.contains(&true) {
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

/// Takes away classes that fit no bin, of which there may be many: they must not sway the choice of
/// bins. Pods that may only join others fit no empty bin and stay.
fn set_aside(tables: &[ItemTable], left: &mut [i64]) -> Vec<i64> {
    let mut fits = vec![false; left.len()];
    for table in tables {
        table.items.iter().for_each(|item| fits[item.class] = true);
        table.followers.iter().for_each(|class| fits[*class] = true);
    }
    let take = |(left, fits): (&mut i64, bool)| if fits { 0 } else { std::mem::take(left) };
    left.iter_mut().zip(fits).map(take).collect()
}

struct Solver<'a> {
    problem: &'a Problem,
    effort: Effort,
    occupied: Vec<bool>,
}

/// One way of packing with what it leaves of the limits.
type Attempt = (Solution, LimitsLeft);

impl Solver<'_> {
    fn tier(&mut self, bins: &[usize], outcome: &mut Outcome) {
        if task::is_done(&outcome.left) || bins.is_empty() {
            return;
        }
        let mut cheaper = CheaperBins::new(self.problem, &outcome.left);
        let bins = bins.iter().copied().filter(|bin| cheaper.needs(*bin));
        let tables: Vec<ItemTable> = bins.map(|bin| ItemTable::new(self.problem, bin)).collect();
        let without_offer = set_aside(&tables, &mut outcome.left);
        if !task::is_done(&outcome.left) {
            self.pack(&Part::keep(self.problem, tables, &outcome.left), outcome);
        }
        outcome.left.iter_mut().zip(without_offer).for_each(|(left, more)| *left += more);
    }

    fn pack(&mut self, part: &Part<'_>, outcome: &mut Outcome) {
        let prices = prices::resource_prices(self.problem, &outcome.left, part.bins());
        let values = prices::row_values(self.problem, &prices);
        let task = part.task(self.problem, &values);
        if let Some(seated) = affinity::place(task, outcome, &mut self.occupied) {
            outcome.packed.extend(seated);
        }
        let attempts = self.attempts(task, outcome);
        let best = attempts.into_iter().min_by_key(|(solution, _)| self.score(solution));
        let Some((solution, limits_left)) = best else { return };
        outcome.packed.extend(solution.packed);
        outcome.left = solution.left;
        outcome.limits_left = limits_left;
    }

    /// Packs in several ways. The programme of patterns buys no more of them than there are kinds
    /// of pods: where fewer nodes do, it buys mostly fractions, and is only asked for the best plan
    /// there is.
    fn attempts(&self, task: Task<'_>, outcome: &Outcome) -> Vec<Attempt> {
        let mut values = task.values.to_vec();
        let dealt = vector_fit::pack(task, &outcome.left, &outcome.limits_left);
        let kinds = task::kinds(&outcome.left);
        let cheaper = match self.effort {
            Effort::Greedy => FAIR,
            Effort::Default | Effort::Max => CLOSE,
        };
        let mut attempts: Vec<Attempt> = dealt.into_iter().collect();
        let good = attempts.iter().any(|dealt| self.is_within(cheaper, task, outcome, dealt));
        if !good && (attempts.is_empty() || kinds <= ROWS_WITH_PATTERNS_MAX) {
            attempts.push(
                self.sized(outcome, |left, limits_left| greedy::pack(task, left, limits_left)),
            );
            attempts.sort_by_key(|(solution, _)| self.score(solution));
        }
        let close = self.is_within(CLOSE, task, outcome, &attempts[0]);
        let most = task::nodes(&attempts[0].0.packed).max(KINDS_FEW);
        let repeats = self.effort == Effort::Max || kinds <= most;
        if let Some(search) = self.search(task).filter(|_| repeats && !close)
            && let Some(mut generator) = Generator::new(task, &outcome.left, &outcome.limits_left)
        {
            for packed in &attempts[0].0.packed {
                generator.add(packed.bin, packed.load.clone());
            }
            generator.generate(&outcome.left, search.generation);
            values = generator.values();
            for dive in search.dives {
                let generator = generator.clone();
                attempts.push(self.sized(outcome, |left, limits_left| {
                    dive::pack(task, generator, left, limits_left, *dive)
                }));
            }
        }
        if outcome.left.iter().sum::<i64>() <= ONE_BY_ONE_MAX {
            for habit in [Overflow::Cheapest, Overflow::Grow] {
                attempts.push(self.sized(outcome, |left, limits_left| {
                    self.one_by_one(task, left, habit, limits_left)
                }));
            }
        }
        if let Some(Search { improving, .. }) = self.search(task) {
            attempts.sort_by_key(|(solution, _)| self.score(solution));
            attempts.truncate(1);
            let (solution, limits_left) = &mut attempts[0];
            improve::improve(task, &values, solution, limits_left, improving);
        }
        attempts
    }

    fn search(&self, task: Task<'_>) -> Option<Search> {
        let small =
            task.problem.classes.len() <= COLUMN_ROWS_MAX && task.bins.len() <= COLUMN_BINS_MAX;
        match self.effort {
            Effort::Default if small => Some(DEFAULT_SEARCH),
            Effort::Max if small => Some(MAX_SEARCH),
            Effort::Greedy | Effort::Default | Effort::Max => None,
        }
    }

    /// True when an attempt costs hardly more than its pods are worth at the resource prices, which
    /// nothing can undercut.
    fn is_within(
        &self,
        factor: f64,
        task: Task<'_>,
        outcome: &Outcome,
        (solution, _): &Attempt,
    ) -> bool {
        let worth: f64 = outcome.left.iter().zip(task.values).map(|(n, y)| float(*n) * y).sum();
        let price = float(self.problem.price(&solution.packed));
        self.effort < Effort::Max && task::is_done(&solution.left) && price <= worth * factor
    }

    fn sized(
        &self,
        outcome: &Outcome,
        pack: impl FnOnce(Vec<i64>, &mut LimitsLeft) -> Solution,
    ) -> Attempt {
        let mut limits_left = outcome.limits_left.clone();
        let mut solution = pack(outcome.left.clone(), &mut limits_left);
        tail::right_size(self.problem, &mut solution.packed, &mut limits_left);
        (solution, limits_left)
    }

    /// Largest pods first, each where it adds least.
    fn one_by_one(
        &self,
        task: Task<'_>,
        mut left: Vec<i64>,
        habit: Overflow,
        limits_left: &mut LimitsLeft,
    ) -> Solution {
        let mut order: Vec<usize> = (0..left.len()).filter(|class| left[*class] > 0).collect();
        order.sort_by(|a, b| task.values[*b].total_cmp(&task.values[*a]).then(a.cmp(b)));
        let mut nodes = Nodes::new(self.problem, task.bins, self.occupied.clone());
        for class in order {
            if !self.needs_affinity(class) {
                left[class] = nodes.insert(class, left[class], habit, limits_left);
            }
        }
        nodes.finish(left)
    }

    fn needs_affinity(&self, class: usize) -> bool {
        self.problem.rules.needs_affinity(self.problem.classes[class].shape)
    }

    /// Pods left first, then the price, then the number of nodes.
    fn score(&self, solution: &Solution) -> (i64, i64, i64) {
        let nodes = task::nodes(&solution.packed);
        (solution.left.iter().sum(), self.problem.price(&solution.packed), nodes)
    }
}
