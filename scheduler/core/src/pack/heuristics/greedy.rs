//! The greedy for covering (Chvatal, 1979): buy the pattern with the least price for its value, as
//! often as it fits what is left; lazily (Minoux, 1978): a pattern's ratio never improves while
//! classes run out, so one computed earlier is a floor, and only the bin with the lowest floor is
//! looked at.
//!
//! Time: one pricing problem for each pattern that is bought or has run out, and a heap.
//!
//! Invariant: a pattern's ratio never improves while classes run out, so one computed earlier stays
//! a valid floor and only those that lost a class are computed again. Most bins are never bought:
//! until its floor is the lowest, no pattern of a bin is looked for.

use std::collections::BinaryHeap;

use crate::pack::heuristics::max_heap::HeapEntry;
use crate::pack::heuristics::part::Part;
use crate::pack::heuristics::tail;
use crate::pack::heuristics::task::{Solution, Task, is_done, nodes, take};
use crate::pack::knapsack::pattern::{self, Pattern, PatternEffort, Supply};
use crate::pack::problem::item_table::{ItemTable, Shares};
use crate::pack::problem::limits::LimitsLeft;
use crate::pack::problem::vector::float;
use crate::pack::problem::{Packed, Problem};

/// What is known of the best pattern of a bin.
#[derive(Debug)]
enum Offer {
    /// Its ratio is not below this.
    Floor(f64),
    /// The pattern, as long as nothing that it takes has run out.
    Found(Pattern),
}

/// How hard a pattern is looked for.
const EFFORT: PatternEffort = PatternEffort { rounds: 2, steps: 0, least: 0.0 };

/// Packs what is left and draws on limits.
pub(crate) fn pack(task: Task<'_>, left: Vec<i64>, limits_left: &mut LimitsLeft) -> Solution {
    pack_below(task, left, limits_left, i64::MAX)
}

/// The same, given up where it becomes clear that the price is not below `limit`: something is left
/// then.
pub(crate) fn pack_below(
    task: Task<'_>,
    left: Vec<i64>,
    limits_left: &mut LimitsLeft,
    limit: i64,
) -> Solution {
    let part = Part::of(task.problem, task.tables, &left);
    pack_part(part.task(task.problem, task.values), left, limits_left, limit)
}

fn pack_part(task: Task<'_>, left: Vec<i64>, limits_left: &mut LimitsLeft, limit: i64) -> Solution {
    let mut solution = Solution { packed: Vec::new(), left };
    let mut weights: Vec<Shares> = task.tables.iter().map(ItemTable::even).collect();
    let all = task.tables.iter().zip(&mut weights);
    let mut offers: Vec<Option<Offer>> = all
        .map(|(table, weights)| task.floor(table, &solution.left, weights, limits_left))
        .collect();
    let next = |at: usize, offer: &Option<Offer>| {
        offer.as_ref().map(|offer| HeapEntry { rank: -offer.ratio(), at })
    };
    let mut queue: BinaryHeap<HeapEntry> =
        offers.iter().enumerate().filter_map(|(at, offer)| next(at, offer)).collect();
    let mut best: Option<(i64, Solution)> = None;
    let mut spent = 0;
    while let Some(turn @ HeapEntry { at, .. }) = queue.pop() {
        let found = offers[at].as_ref().and_then(Offer::found);
        let bought = found.and_then(|found| task.buy(found, &solution.left, limits_left));
        let Some(packed) = bought else {
            let (table, weights) = (&task.tables[at], &mut weights[at]);
            offers[at] = match found {
                // Something that it takes has run out.
                Some(_) => task.floor(table, &solution.left, weights, limits_left),
                None => task.pattern(table, &solution.left, weights, limits_left).map(Offer::Found),
            };
            queue.extend(next(at, &offers[at]));
            continue;
        };
        queue.push(turn);
        let known = best.as_ref().map_or(limit, |(price, _)| *price);
        if let Some(ended) = end(task, &solution, limits_left, spent, known) {
            best = Some(ended);
        }
        if spent >= limit {
            break;
        }
        take(&packed, &mut solution.left);
        limits_left.charge_all(task.problem, std::slice::from_ref(&packed));
        spent += task.problem.bins[packed.bin].price * packed.copies;
        solution.packed.push(packed);
    }
    match best {
        Some((price, ended))
            if !is_done(&solution.left)
                || (price, nodes(&ended.packed)) < (spent, nodes(&solution.packed)) =>
        {
            charge_instead(task.problem, limits_left, &solution.packed, &ended.packed);
            ended
        }
        _ => solution,
    }
}

/// Charges limits for some nodes in place of others.
fn charge_instead(
    problem: &Problem,
    limits_left: &mut LimitsLeft,
    of: &[Packed],
    packed: &[Packed],
) {
    for packed in of {
        limits_left.charge(&problem.bins[packed.bin], -packed.copies);
    }
    limits_left.charge_all(problem, packed);
}

/// The solution that ends here by the cheapest one or two nodes for all the rest, with its price,
/// when that is below `limit`.
fn end(
    task: Task<'_>,
    solution: &Solution,
    limits_left: &LimitsLeft,
    spent: i64,
    limit: i64,
) -> Option<(i64, Solution)> {
    let ending = tail::finish(task, &solution.left, limits_left, limit.saturating_sub(spent))?;
    let price = spent + task.problem.price(&ending);
    let packed = solution.packed.iter().cloned().chain(ending).collect();
    Some((price, Solution { packed, left: vec![0; solution.left.len()] }))
}

impl Offer {
    fn ratio(&self) -> f64 {
        match self {
            Self::Floor(ratio) => *ratio,
            Self::Found(pattern) => pattern.ratio,
        }
    }

    fn found(&self) -> Option<&Pattern> {
        match self {
            Self::Floor(_) => None,
            Self::Found(pattern) => Some(pattern),
        }
    }
}

impl Task<'_> {
    fn floor(
        &self,
        table: &ItemTable,
        left: &[i64],
        weights: &mut Shares,
        limits_left: &LimitsLeft,
    ) -> Option<Offer> {
        let value = pattern::worth(table, self.supply(table, left, limits_left)?, weights, EFFORT);
        let price = float(self.problem.bins[table.bin].price);
        (value > 0.0).then(|| Offer::Floor(price / value))
    }

    fn pattern(
        &self,
        table: &ItemTable,
        left: &[i64],
        weights: &mut Shares,
        limits_left: &LimitsLeft,
    ) -> Option<Pattern> {
        pattern::search(
            self.problem,
            table,
            self.supply(table, left, limits_left)?,
            weights,
            EFFORT,
        )
    }

    /// What a bin may be filled with; none when no more of it can be had.
    fn supply<'s>(
        &'s self,
        table: &ItemTable,
        left: &'s [i64],
        limits_left: &LimitsLeft,
    ) -> Option<Supply<'s>> {
        let sold = limits_left.copies(&self.problem.bins[table.bin]) > 0;
        sold.then_some(Supply { left, values: self.values })
    }

    /// A pattern as often as it can be bought; none when it must be computed again.
    fn buy(
        &self,
        Pattern { bin, load, .. }: &Pattern,
        left: &[i64],
        limits_left: &LimitsLeft,
    ) -> Option<Packed> {
        let classes = load.iter().map(|(class, count)| left[*class] / count).min().unwrap_or(0);
        let copies = classes.min(limits_left.copies(&self.problem.bins[*bin]));
        (copies > 0).then(|| Packed { bin: *bin, load: load.clone(), copies })
    }
}
