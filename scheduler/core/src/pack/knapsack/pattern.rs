//! The pricing problem: the filling of one bin that is worth most at the dual values of the master.
//!
//! ```text
//! maximise   sum of value[i] * a[i]
//! subject to sum of request[i] * a[i] <= room,  0 <= a[i] <= left[i],  a whole,  node rules
//! ```
//!
//! A knapsack of several dimensions, bounded. Its surrogate weighs the dimensions into one (Glover,
//! 1968; Gavish and Pirkul, 1985): what the fractional knapsack (Dantzig, 1957) is worth then, no
//! pattern exceeds. The weights follow what the fractional filling overuses, by multiplicative
//! weights (Arora, Hazan and Kale, 2012); good whole fillings come from the same order.
//!
//! Time: rounds * n log n for n item classes that fit, and the exact search's steps.
//!
//! Invariant: a pattern fits its bin, obeys the node rules, and takes no more of a class than is
//! left. The upper bound that comes with it holds for every pattern of the bin.

use crate::pack::knapsack::exact::Exact;
use crate::pack::knapsack::{filling, fraction};
use crate::pack::problem::item_table::{Item, ItemTable, Ranked, Shares};
use crate::pack::problem::vector::float;
use crate::pack::problem::{Load, Problem};

/// What to fill bins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supply<'a> {
    /// Pods left of each class.
    pub(crate) left: &'a [i64],
    /// Value of one pod of each class.
    pub(crate) values: &'a [f64],
}

/// A filled bin.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// Bin.
    pub(crate) bin: usize,
    /// Pods in it, by class.
    pub(crate) load: Load,
    /// Their value.
    pub(crate) value: f64,
    /// Price of the bin for one unit of value; smaller is better.
    pub(crate) ratio: f64,
    /// No pattern of the bin is worth more than this.
    pub(crate) upper: f64,
}

/// How hard to look for a pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternEffort {
    /// Times the weights of the resources are adapted to what runs out; at least 1.
    pub(crate) rounds: usize,
    /// Steps of the exact search; 0 for none.
    pub(crate) steps: usize,
    /// Where no pattern can be worth more than this, the first found will do.
    pub(crate) least: f64,
}

/// The best pattern that is found; none when nothing that is left fits. `weights` are a guess of
/// what runs out, and are adapted: a good start for the next search of the table.
pub(crate) fn search(
    problem: &Problem,
    table: &ItemTable,
    supply: Supply<'_>,
    weights: &mut Shares,
    effort: PatternEffort,
) -> Option<Pattern> {
    let mut best: (f64, Load) = (0.0, Load::new());
    let mut upper = f64::INFINITY;
    let mut items = Vec::new();
    for round in 0..effort.rounds {
        items = rank(table, supply, weights);
        keep(&mut best, filling::in_order(problem, table, &items));
        let FractionalFilling { value, usage } = relax(&items);
        upper = upper.min(value);
        if !adapt(weights, table.guides.len(), &usage, round) {
            break;
        }
    }
    if upper > effort.least && !items.is_empty() {
        for filled in filling::balanced(problem, table, &items) {
            keep(&mut best, filled);
        }
        if effort.steps > 0 && table.free && upper > best.0 * (1.0 + 1e-6) {
            let exact = Exact::new(problem, table.bin, &items, best.0, effort.steps).run();
            if exact.complete {
                upper = exact.best_value.min(upper);
            }
            if let Some(found) = exact.best {
                keep(&mut best, found);
            }
        }
    }
    let (value, mut load) = best;
    if load.is_empty() {
        return None;
    }
    load.sort_unstable();
    let ratio = float(problem.bins[table.bin].price) / value;
    Some(Pattern { bin: table.bin, load, value, ratio, upper: upper.max(value) })
}

/// The most that anything in a bin can be worth.
#[derive(Clone, Debug)]
pub(crate) struct UpperBound {
    /// No pattern is worth more.
    pub(crate) value: f64,
    /// What is worth that much: pods by class, possibly fractions of them. Nothing where the value
    /// is not above what was asked for.
    pub(crate) load: Vec<(usize, f64)>,
}

/// Bounds what a bin can hold: exactly when a search of the given steps shows it, else by
/// fractions. Node rules are left out. A value that is not above `effort.least` is not made
/// tighter.
pub(crate) fn upper(
    problem: &Problem,
    table: &ItemTable,
    supply: Supply<'_>,
    weights: &mut Shares,
    effort: PatternEffort,
) -> UpperBound {
    let (lowest, items) = relaxed(table, supply, weights, effort);
    let none = |value: f64| UpperBound { value, load: Vec::new() };
    let Some(items) = items else { return none(lowest) };
    let (divided, proof) = divide(&items, table.guides.len());
    if divided.value <= effort.least {
        return none(divided.value);
    }
    *weights = proof;
    let items = rank(table, supply, weights);
    let exact = Exact::new(problem, table.bin, &items, effort.least, effort.steps).run();
    match exact.best {
        _ if !exact.complete => divided,
        None => none(effort.least),
        Some((value, load)) => {
            UpperBound { value, load: load.iter().map(|(class, n)| (*class, float(*n))).collect() }
        }
    }
}

/// The best filling in fractions, and the weights that show that it is.
fn divide(items: &[Ranked], guides: usize) -> (UpperBound, Shares) {
    let item = |Ranked { value, most, shares, .. }: &Ranked| fraction::Item {
        value: *value,
        most: float(*most),
        shares: *shares,
    };
    let filling = fraction::best(&items.iter().map(item).collect::<Vec<_>>(), guides);
    let load = items.iter().map(|item| item.class).zip(filling.amounts);
    let load = load.filter(|(_, amount)| *amount > 1e-9).collect();
    (UpperBound { value: filling.value, load }, filling.weights)
}

/// Upper bound on the value of any pattern of the table, by its fractional relaxation; 0 where
/// nothing that is left fits. Far less work than a pattern.
pub(crate) fn worth(
    table: &ItemTable,
    supply: Supply<'_>,
    weights: &mut Shares,
    effort: PatternEffort,
) -> f64 {
    relaxed(table, supply, weights, effort).0
}

/// The least value of fractional fillings under adapted weights, and the items when it may still be
/// too high.
fn relaxed(
    table: &ItemTable,
    supply: Supply<'_>,
    weights: &mut Shares,
    effort: PatternEffort,
) -> (f64, Option<Vec<Ranked>>) {
    let mut lowest = f64::INFINITY;
    let mut items = Vec::new();
    for round in 0..effort.rounds {
        items = rank(table, supply, weights);
        let FractionalFilling { value, usage } = relax(&items);
        lowest = lowest.min(value);
        if lowest <= effort.least {
            return (lowest, None);
        }
        if !adapt(weights, table.guides.len(), &usage, round) {
            break;
        }
    }
    (lowest, Some(items))
}

/// Several ways to fill the bin of a table.
pub(crate) fn fillings(problem: &Problem, table: &ItemTable, supply: Supply<'_>) -> Vec<Load> {
    let items = rank(table, supply, &table.even());
    let balanced = filling::balanced(problem, table, &items).into_iter();
    let all = balanced.chain([filling::in_order(problem, table, &items)]);
    all.map(|(_, load)| load).filter(|load| !load.is_empty()).collect()
}

fn keep(best: &mut (f64, Load), found: (f64, Load)) {
    if found.0 > best.0 {
        *best = found;
    }
}

/// What is left of a table's items, most value for weighted size first.
fn rank(table: &ItemTable, supply: Supply<'_>, weights: &Shares) -> Vec<Ranked> {
    let mut items: Vec<Ranked> = Vec::with_capacity(table.items.len());
    for Item { class, most, shares } in &table.items {
        let most = (*most).min(supply.left[*class]);
        let value = supply.values[*class];
        if most > 0 && value > 0.0 {
            let [a, b, c, d] = *shares;
            let size = a * weights[0] + b * weights[1] + (c * weights[2] + d * weights[3]);
            items.push(Ranked {
                class: *class,
                most,
                value,
                size: size.max(1e-12),
                shares: *shares,
            });
        }
    }
    let density = |item: &Ranked| item.value / item.size;
    items.sort_unstable_by(|a, b| density(b).total_cmp(&density(a)).then(a.class.cmp(&b.class)));
    items
}

/// The best fractional filling under one weighted size.
struct FractionalFilling {
    /// Its value, which no pattern exceeds.
    value: f64,
    /// How much of each resource it takes.
    usage: Shares,
}

fn relax(items: &[Ranked]) -> FractionalFilling {
    let mut free = 1.0;
    let mut relaxed = FractionalFilling { value: 0.0, usage: Shares::default() };
    for item in items {
        let count = float(item.most).min(free / item.size);
        relaxed.value += count * item.value;
        free -= count * item.size;
        let each = relaxed.usage.iter_mut().zip(&item.shares);
        each.for_each(|(sum, share)| *sum += count * share);
        if free <= 1e-12 {
            break;
        }
    }
    relaxed
}

/// One multiplicative-weights step on the surrogate weights: resources that the filling overruns
/// weigh more, others less. False when the filling fits as it is.
fn adapt(weights: &mut Shares, guides: usize, usage: &Shares, round: usize) -> bool {
    if usage.iter().all(|used| *used <= 1.0 + 1e-9) {
        return false;
    }
    let round = float(i64::try_from(round).unwrap_or(i64::MAX));
    let step = 1.0 / (1.0 + 0.5 * round);
    for (weight, used) in weights.iter_mut().zip(usage).take(guides) {
        // Never quite nothing, or the weight could not come back.
        *weight = (*weight * (step * (used - 1.0)).exp()).max(1e-6);
    }
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    true
}
