//! The greedy: buy the pattern with the least price for its value, as often as it fits what is left.
//!
//! Invariant: a pattern's ratio never improves while rows run out, so one computed earlier stays a
//! valid floor and only those that lost a row are computed again. Most bins are never bought: until its
//! floor is the lowest, no pattern of a bin is looked for.

use std::collections::BinaryHeap;

use crate::pack::heuristics::max_heap::Next;
use crate::pack::heuristics::part::Part;
use crate::pack::heuristics::tail;
use crate::pack::heuristics::task::{Solution, Task, is_done, nodes, take};
use crate::pack::knapsack::pattern::{self, Care, Pattern, Supply};
use crate::pack::problem::Packed;
use crate::pack::problem::item_table::{Lanes, Shelf};
use crate::pack::problem::limits::Ledger;
use crate::pack::problem::vector::float;

/// What is known of the best pattern of a bin.
#[derive(Debug)]
enum Offer {
    /// Its ratio is not below this.
    Floor(f64),
    /// The pattern, as long as nothing that it takes has run out.
    Found(Pattern),
}

/// How hard a pattern is looked for.
const CARE: Care = Care { rounds: 2, steps: 0, least: 0.0 };

/// Packs what is left and draws on the ledger.
pub(crate) fn pack(task: Task<'_>, left: Vec<i64>, ledger: &mut Ledger) -> Solution {
    pack_below(task, left, ledger, i64::MAX)
}

/// The same, given up where it becomes clear that the price is not below `limit`: something is left then.
pub(crate) fn pack_below(
    task: Task<'_>,
    left: Vec<i64>,
    ledger: &mut Ledger,
    limit: i64,
) -> Solution {
    let part = Part::of(task.problem, task.shelves, &left);
    pack_part(part.task(task.problem, task.values), left, ledger, limit)
}

fn pack_part(task: Task<'_>, left: Vec<i64>, ledger: &mut Ledger, limit: i64) -> Solution {
    let mut solution = Solution { packed: Vec::new(), left };
    let mut weights: Vec<Lanes> = task.shelves.iter().map(Shelf::even).collect();
    let all = task.shelves.iter().zip(&mut weights);
    let mut offers: Vec<Option<Offer>> =
        all.map(|(shelf, weights)| task.floor(shelf, &solution.left, weights, ledger)).collect();
    let next = |at: usize, offer: &Option<Offer>| {
        offer.as_ref().map(|offer| Next { rank: -offer.ratio(), at })
    };
    let mut queue: BinaryHeap<Next> =
        offers.iter().enumerate().filter_map(|(at, offer)| next(at, offer)).collect();
    let mut best: Option<(i64, Solution)> = None;
    let mut spent = 0;
    while let Some(turn @ Next { at, .. }) = queue.pop() {
        let found = offers[at].as_ref().and_then(Offer::found);
        let bought = found.and_then(|found| task.buy(found, &solution.left, ledger));
        let Some(packed) = bought else {
            let (shelf, weights) = (&task.shelves[at], &mut weights[at]);
            offers[at] = match found {
                // Something that it takes has run out.
                Some(_) => task.floor(shelf, &solution.left, weights, ledger),
                None => task.pattern(shelf, &solution.left, weights, ledger).map(Offer::Found),
            };
            queue.extend(next(at, &offers[at]));
            continue;
        };
        queue.push(turn);
        let known = best.as_ref().map_or(limit, |(price, _)| *price);
        if let Some(ended) = end(task, &solution, ledger, (spent, known)) {
            best = Some(ended);
        }
        if spent >= limit {
            break;
        }
        take(&packed, &mut solution.left);
        ledger.charge_all(task.problem, std::slice::from_ref(&packed));
        spent += task.problem.bins[packed.bin].price * packed.copies;
        solution.packed.push(packed);
    }
    match best {
        Some((price, ended))
            if !is_done(&solution.left)
                || (price, nodes(&ended.packed)) < (spent, nodes(&solution.packed)) =>
        {
            for packed in &solution.packed {
                ledger.charge(&task.problem.bins[packed.bin], -packed.copies);
            }
            ledger.charge_all(task.problem, &ended.packed);
            ended
        }
        _ => solution,
    }
}

/// The solution that ends here by the cheapest one or two nodes for all the rest, with its price, when that
/// is below `limit`.
fn end(
    task: Task<'_>,
    solution: &Solution,
    ledger: &Ledger,
    (spent, limit): (i64, i64),
) -> Option<(i64, Solution)> {
    let ending = tail::finish(task, &solution.left, ledger, limit.saturating_sub(spent))?;
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
        shelf: &Shelf,
        left: &[i64],
        weights: &mut Lanes,
        ledger: &Ledger,
    ) -> Option<Offer> {
        let value = pattern::worth(shelf, self.supply(shelf, left, ledger)?, weights, CARE);
        let price = float(self.problem.bins[shelf.bin].price);
        (value > 0.0).then(|| Offer::Floor(price / value))
    }

    fn pattern(
        &self,
        shelf: &Shelf,
        left: &[i64],
        weights: &mut Lanes,
        ledger: &Ledger,
    ) -> Option<Pattern> {
        pattern::search(self.problem, shelf, self.supply(shelf, left, ledger)?, weights, CARE)
    }

    /// What a bin may be filled with; none when no more of it can be had.
    fn supply<'s>(&'s self, shelf: &Shelf, left: &'s [i64], ledger: &Ledger) -> Option<Supply<'s>> {
        let sold = ledger.copies(&self.problem.bins[shelf.bin]) > 0;
        sold.then_some(Supply { left, values: self.values })
    }

    /// A pattern as often as it can be bought; none when it must be computed again.
    fn buy(
        &self,
        Pattern { bin, load, .. }: &Pattern,
        left: &[i64],
        ledger: &Ledger,
    ) -> Option<Packed> {
        let rows = load.iter().map(|(row, count)| left[*row] / count).min().unwrap_or(0);
        let copies = rows.min(ledger.copies(&self.problem.bins[*bin]));
        (copies > 0).then(|| Packed { bin: *bin, load: load.clone(), copies })
    }
}
