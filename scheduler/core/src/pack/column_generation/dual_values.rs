//! Dual values that say as much as possible about what the pods must cost: the dual of the
//! configuration programme (Gilmore and Gomory, 1961), with fractions where whole pods are too
//! hard.
//!
//! ```text
//! maximise   sum of count[i] * value[i]
//! subject to sum of value[i] * a[i] <= price[b]   for each filling a of each bin b,  value >= 0
//! ```
//!
//! Values that break a constraint by a factor f prove 1/f of what they say (Farley, 1990), so every
//! round yields a bound, and the best is kept.
//!
//! Time: bounded by `ImproveEffort`; a round bounds what each bin holds once.
//!
//! Invariant: guidance only. The bound that is reported is rounded down from these values and
//! checked in integers by `certificate`.

use crate::pack::column_generation::covering::Cover;
use crate::pack::column_generation::pricing::{self, Pricing};
use crate::pack::column_generation::stability_centre::Centre;
use crate::pack::heuristics::part::Part;
use crate::pack::knapsack::pattern::{self, PatternEffort, Supply, UpperBound};
use crate::pack::lp::prices;
use crate::pack::problem::item_table::{ItemTable, Shares};
use crate::pack::problem::vector::float;
use crate::pack::problem::{Load, Problem};

/// How much work the values are worth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImproveEffort {
    /// Most rounds of solving and of looking for rooms that are too cheap.
    pub(crate) rounds: usize,
    /// Work on the programme, in multiplications, after which no further round begins.
    pub(crate) work: u64,
    /// What all classes are known to cost, in micro-dollars per hour: values that say no more are
    /// worthless.
    pub(crate) above: i64,
    /// Rounds after which it ends when they have said no more than that.
    pub(crate) barren: usize,
    /// Steps of the exact search of one bin.
    pub(crate) steps: usize,
    /// Ends when no values can say more than this share above the best known.
    pub(crate) gain_min: f64,
}

/// Most pivots between two rounds.
const PIVOTS_MAX: usize = 400;
/// Share by which values must say more than is known to be worth a proof of their own.
const GAIN_LEAST: f64 = 5e-4;

/// Values of one pod of each class, none of whose rooms is worth more than it costs as far as was
/// found; none when some class fits nowhere or they say no more than is known. The problem has no
/// limits. `known` are nodes with their prices that together hold every pod: values can say no more
/// than they cost.
pub(crate) fn of_rows(
    problem: &Problem,
    known: impl IntoIterator<Item = (i64, Load)>,
    effort: ImproveEffort,
) -> Option<Vec<f64>> {
    let bins = problem.skyline.first()?;
    let counts = problem.counts();
    let resources = prices::resource_prices(problem, &counts, bins);
    let values = prices::row_values(problem, &resources);
    let worth = worth(&counts, &values);
    let all: Vec<ItemTable> = bins.iter().map(|bin| ItemTable::new(problem, *bin)).collect();
    let tables = Part::keep(problem, all, &counts).tables.into_owned();
    let demands: Vec<f64> = counts.iter().map(|count| float(*count)).collect();
    let mut cover = Cover::new(&demands, &penalties(problem, &tables)?, &[]);
    for (class, alone) in pricing::alone(problem, &tables).into_iter().enumerate() {
        let Some(alone) = alone else { continue };
        cover.add(float(problem.bins[alone.bin].price), vec![(class, float(alone.most))]);
    }
    for (price, load) in known {
        cover.add(float(price), load.iter().map(|(class, n)| (*class, float(*n))).collect());
    }
    let mut search = Search {
        problem,
        weights: tables.iter().map(ItemTable::even).collect(),
        tables,
        centre: Centre::new(values, worth),
        counts,
        cover,
        steps: effort.steps,
    };
    let cheaper = float(effort.above) * (1.0 + GAIN_LEAST) + 1.0;
    let says_more = |centre: &Centre| centre.proved() >= cheaper;
    for round in 0..effort.rounds {
        search.cover.improve(PIVOTS_MAX);
        // No values say more than the programme costs.
        let useful = cheaper.max(search.centre.proved() * (1.0 + effort.gain_min));
        let done = search.cover.price() <= useful;
        let barren = round >= effort.barren && !says_more(&search.centre);
        let worked = search.cover.work() > effort.work;
        if done || barren || worked || search.look() == 0 {
            break;
        }
    }
    says_more(&search.centre).then(|| search.centre.into_values())
}

struct Search<'a> {
    problem: &'a Problem,
    tables: Vec<ItemTable>,
    weights: Vec<Shares>,
    counts: Vec<i64>,
    centre: Centre,
    cover: Cover,
    /// Steps of the exact search of one bin.
    steps: usize,
}

impl Search<'_> {
    /// Looks at all rooms, and adds what is too cheap.
    fn look(&mut self) -> usize {
        let own: Vec<f64> = self.cover.duals().iter().map(|value| value.max(0.0)).collect();
        pricing::round(self, &own)
    }
}

impl Pricing for Search<'_> {
    /// Price of a bin, and what it can hold at most.
    type Filling = (f64, UpperBound);
    const CENTRE_WEIGHT: f64 = 0.5;
    const WORTH_MIN: f64 = 1.0 + 1e-7;

    fn centre(&self) -> &Centre {
        &self.centre
    }

    fn sweep(&mut self, values: &[f64]) -> Vec<Self::Filling> {
        let mut most = 1e-12_f64;
        let mut fillings = Vec::new();
        for (table, weights) in self.tables.iter().zip(&mut self.weights) {
            let price = float(self.problem.bins[table.bin].price).max(1.0);
            let supply = Supply { left: &self.counts, values };
            let effort = PatternEffort { rounds: 1, steps: self.steps, least: price };
            let upper = pattern::upper(self.problem, table, supply, weights, effort);
            most = most.max(upper.value / price);
            fillings.push((price, upper));
        }
        self.centre.offer(values, worth(&self.counts, values), most);
        fillings
    }

    fn worth(&self, (price, upper): &Self::Filling, values: &[f64]) -> f64 {
        let worth: f64 = upper.load.iter().map(|(class, count)| values[*class] * count).sum();
        worth / price
    }

    fn add(&mut self, (price, upper): Self::Filling) -> bool {
        self.cover.add(price, upper.load);
        true
    }
}

/// What all classes are worth.
fn worth(counts: &[i64], values: &[f64]) -> f64 {
    counts.iter().zip(values).map(|(n, value)| float(*n) * value).sum()
}

/// What leaving a pod of each class out costs: much more than any node of its own.
fn penalties(problem: &Problem, tables: &[ItemTable]) -> Option<Vec<f64>> {
    let dearest = |class: usize| {
        let fitting = tables.iter().filter(|s| s.items.iter().any(|item| item.class == class));
        fitting.map(|table| float(problem.bins[table.bin].price) * 10.0 + 1.0).reduce(f64::max)
    };
    (0..problem.classes.len()).map(dearest).collect()
}
