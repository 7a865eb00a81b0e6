//! Column generation for cutting stock (Gilmore and Gomory, 1961): the restricted master over the
//! patterns found so far, and the pricing problem of each bin for more.
//!
//! ```text
//! minimise   sum of price[p] * x[p]
//! subject to sum of count[i][p] * x[p] >= left[i]      for each item class i, else a penalty
//!            sum of drawn[l][p] * x[p] <= allowed[l]   for each limit l
//!            x >= 0
//! ```
//!
//! A pattern is added while its reduced cost, the price of its bin and of what it draws on limits
//! less the dual values of its pods, is below zero. Values are smoothed towards the best proved
//! ones (`stability_centre`); bins that were far from promising are priced every few rounds only.
//!
//! Time: bounded by `GenerationEffort`; a round prices each bin once.
//!
//! Invariant: patterns are feasible nodes, so whatever the programme says, what is bought is valid.

use std::collections::BTreeSet;

use crate::pack::column_generation::covering::Cover;
use crate::pack::column_generation::pricing::{self, Alone, Pricing};
use crate::pack::column_generation::stability_centre::Centre;
use crate::pack::heuristics::task::Task;
use crate::pack::knapsack::pattern::{self, Pattern, PatternEffort, Supply};
use crate::pack::problem::item_table::{ItemTable, Shares};
use crate::pack::problem::limits::LimitsLeft;
use crate::pack::problem::vector::float;
use crate::pack::problem::{Bin, Load, Packed, Problem};

/// How much work the programme may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GenerationEffort {
    /// Most rounds of solving and looking for patterns.
    pub(crate) rounds: usize,
    /// Work on the programme, in multiplications, after which no further round begins.
    pub(crate) work: u64,
    /// When a few rounds together lower the price by less than this share, the work ends.
    pub(crate) gain_min: f64,
    /// How hard each bin is searched.
    pub(crate) pattern: PatternEffort,
}

/// Most pivots between two rounds of looking for patterns.
const PIVOTS_MAX: usize = 400;
/// Rounds after which all bins are looked at again, not only those that were promising.
const ROUNDS_EACH_SWEEP: usize = 6;
/// A bin whose best pattern was worth less than this share of its price is not promising.
const PROMISING: f64 = 0.985;
/// Rounds that together must lower the price by enough; single ones may change values only.
const ROUNDS_WITHOUT_GAIN: usize = 10;
/// A pod that stays without a node costs this many times what it would cost on a node of its own
/// kind.
const PENALTY: f64 = 1e3;

/// The programme over the patterns found so far.
#[derive(Clone, Debug)]
pub(crate) struct Generator<'a> {
    problem: &'a Problem,
    tables: Vec<&'a ItemTable>,
    /// What runs out first on each table, as far as searches have shown.
    weights: Vec<Shares>,
    /// What each table's best pattern was worth for its price when it was last looked at.
    worth: Vec<f64>,
    centre: Centre,
    /// Item classes that are rows of the programme.
    classes: Vec<usize>,
    /// The other way round.
    index: Vec<Option<usize>>,
    limits: Limits,
    /// The programme.
    pub(crate) cover: Cover,
    /// A pattern for each of its columns.
    pub(crate) patterns: Vec<Packed>,
    known: BTreeSet<(usize, Load)>,
}

/// Limits of pools and reservations as rows of the programme, each scaled to what is left of it.
#[derive(Clone, Debug)]
struct Limits {
    /// First row of each set of limits.
    first: Vec<usize>,
    left: Vec<i64>,
}

impl<'a> Generator<'a> {
    /// The programme for what is left, with one pattern of each class alone; none when nothing that
    /// is left fits anywhere.
    pub(crate) fn new(task: Task<'a>, left: &[i64], limits_left: &LimitsLeft) -> Option<Self> {
        let problem = task.problem;
        let sold = |table: &&ItemTable| limits_left.copies(&problem.bins[table.bin]) > 0;
        let tables: Vec<&ItemTable> = task.tables.iter().filter(sold).collect();
        let alone = pricing::alone(problem, tables.iter().copied());
        let classes: Vec<usize> =
            (0..left.len()).filter(|class| left[*class] > 0 && alone[*class].is_some()).collect();
        if classes.is_empty() {
            return None;
        }
        let mut index = vec![None; left.len()];
        classes.iter().enumerate().for_each(|(at, class)| index[*class] = Some(at));
        let limits = Limits::of(limits_left);
        let demands: Vec<f64> = classes.iter().map(|class| float(left[*class])).collect();
        let penalties: Vec<f64> = classes
            .iter()
            .filter_map(|class| alone[*class].map(|it| it.each * PENALTY + 1.0))
            .collect();
        let proved = classes.iter().map(|class| float(left[*class]) * task.values[*class]).sum();
        let mut generator = Self {
            problem,
            worth: vec![f64::INFINITY; tables.len()],
            centre: Centre::new(task.values.to_vec(), proved),
            weights: tables.iter().map(|table| table.even()).collect(),
            tables,
            cover: Cover::new(&demands, &penalties, &limits.right()),
            classes,
            index,
            limits,
            patterns: Vec::new(),
            known: BTreeSet::new(),
        };
        for class in generator.classes.clone() {
            if let Some(Alone { bin, most, .. }) = alone[class] {
                generator.add(bin, vec![(class, most.min(left[class]))]);
            }
        }
        Some(generator)
    }

    /// Adds a pattern unless it is known.
    pub(crate) fn add(&mut self, bin: usize, load: Load) -> bool {
        if !self.known.insert((bin, load.clone())) {
            return false;
        }
        let kind = &self.problem.bins[bin];
        let classes =
            load.iter().filter_map(|(class, count)| Some((self.index[*class]?, float(*count))));
        let mut entries: Vec<(usize, f64)> = classes.collect();
        let first = self.classes.len();
        entries.extend(self.limits.draws(kind).map(|(at, share)| (first + at, share)));
        self.cover.add(float(kind.price), entries);
        self.patterns.push(Packed { bin, load, copies: 1 });
        true
    }

    /// Solves, looks for patterns that the values show to be worth more than they cost, and so on.
    pub(crate) fn generate(&mut self, left: &[i64], effort: GenerationEffort) {
        let occupied = self.cover.work();
        self.cover.improve(PIVOTS_MAX);
        let mut prices = [f64::INFINITY; ROUNDS_WITHOUT_GAIN];
        for round in 0..effort.rounds {
            let all = round % ROUNDS_EACH_SWEEP == 0;
            if self.look(left, effort.pattern, all) == 0
                && (all || self.look(left, effort.pattern, true) == 0)
            {
                return;
            }
            self.cover.improve(PIVOTS_MAX);
            let price = self.cover.price();
            let before = &mut prices[round % ROUNDS_WITHOUT_GAIN];
            let spent = self.cover.work() - occupied > effort.work;
            if spent || price > *before * (1.0 - effort.gain_min) {
                return;
            }
            *before = price;
        }
    }

    /// Value of one pod of each class of the problem at the programme's prices.
    pub(crate) fn values(&self) -> Vec<f64> {
        let duals = self.cover.duals();
        self.index.iter().map(|at| at.map_or(0.0, |at| duals[at].max(0.0))).collect()
    }

    /// Sets what is still to be covered and allowed.
    pub(crate) fn shrink(&mut self, left: &[i64], limits_left: &LimitsLeft) {
        let demands: Vec<f64> = self.classes.iter().map(|class| float(left[*class])).collect();
        let limits = self.limits.remaining(limits_left);
        self.cover.demand(&demands, &limits, PIVOTS_MAX);
    }

    /// Looks for patterns, at all bins or at those that were promising.
    fn look(&mut self, left: &[i64], effort: PatternEffort, all: bool) -> usize {
        let own = self.values();
        pricing::round(&mut Look { generator: self, left, effort, all }, &own)
    }

    /// The best pattern of each bin, and the most that any is worth for its price.
    fn sweep(
        &mut self,
        left: &[i64],
        values: &[f64],
        effort: PatternEffort,
        all: bool,
    ) -> (Vec<Packed>, f64) {
        let (mut patterns, mut most) = (Vec::new(), 0.0_f64);
        for at in 0..self.tables.len() {
            if !all && self.worth[at] < PROMISING {
                continue;
            }
            let price = self.price_of(self.tables[at].bin);
            let supply = Supply { left, values };
            let effort = PatternEffort { least: price, ..effort };
            let (table, weights) = (self.tables[at], &mut self.weights[at]);
            let found = pattern::search(self.problem, table, supply, weights, effort);
            let Some(Pattern { bin, load, value, upper, .. }) = found else { continue };
            self.worth[at] = value / price;
            most = most.max(upper / price);
            patterns.push(Packed { bin, load, copies: 1 });
        }
        (patterns, most)
    }

    /// Price of a bin and of what it draws on limits.
    fn price_of(&self, bin: usize) -> f64 {
        let kind = &self.problem.bins[bin];
        let duals = &self.cover.duals()[self.classes.len()..];
        let drawn: f64 = self.limits.draws(kind).map(|(at, share)| duals[at] * share).sum();
        (float(kind.price) - drawn).max(1.0)
    }
}

/// A round of pricing for the pods that are left.
struct Look<'g, 'a> {
    generator: &'g mut Generator<'a>,
    left: &'g [i64],
    effort: PatternEffort,
    /// Whether all bins are looked at, so that what values prove can be said.
    all: bool,
}

impl Pricing for Look<'_, '_> {
    type Filling = Packed;
    const CENTRE_WEIGHT: f64 = 0.4;
    const WORTH_MIN: f64 = 1.0 + 1e-6;

    fn centre(&self) -> &Centre {
        &self.generator.centre
    }

    fn sweep(&mut self, values: &[f64]) -> Vec<Packed> {
        let Self { generator, left, effort, all } = self;
        let (found, most) = generator.sweep(left, values, *effort, *all);
        if *all {
            let classes = generator.classes.iter();
            let worth = classes.map(|class| float(left[*class]) * values[*class]).sum();
            generator.centre.offer(values, worth, most);
        }
        found
    }

    fn worth(&self, packed: &Packed, values: &[f64]) -> f64 {
        let worth: f64 = packed.load.iter().map(|(class, n)| values[*class] * float(*n)).sum();
        worth / self.generator.price_of(packed.bin)
    }

    fn add(&mut self, packed: Packed) -> bool {
        self.generator.add(packed.bin, packed.load)
    }
}

impl Limits {
    fn of(limits_left: &LimitsLeft) -> Self {
        let mut limits = Self { first: Vec::new(), left: Vec::new() };
        for limit_set in limits_left.limit_sets() {
            limits.first.push(limits.left.len());
            limits.left.extend(&limit_set.left);
        }
        limits
    }

    /// Rows that one bin draws on, each with its share of what was left in the beginning.
    fn draws<'b>(&'b self, bin: &'b Bin) -> impl Iterator<Item = (usize, f64)> + 'b {
        let first = self.first[bin.limit_set];
        let pool = bin.charge.iter().enumerate().map(move |(at, amount)| (first + at, *amount));
        let reservation = bin.reservation.map(|limit_set| (self.first[limit_set], 1));
        let all = pool.chain(reservation).filter(|(_, amount)| *amount > 0);
        all.map(|(at, amount)| (at, float(amount) / float(self.left[at].max(1))))
    }

    fn right(&self) -> Vec<f64> {
        self.left.iter().map(|left| f64::from(u8::from(*left > 0))).collect()
    }

    fn remaining(&self, limits_left: &LimitsLeft) -> Vec<f64> {
        let now = limits_left.limit_sets().iter().flat_map(|limit_set| &limit_set.left);
        now.zip(&self.left).map(|(now, before)| float(*now) / float((*before).max(1))).collect()
    }
}
