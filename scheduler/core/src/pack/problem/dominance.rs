//! Dominance: of each group of bins that admit the same pods, those that no other beats in room for
//! no more money (the skyline, or Pareto front; Boerzsoenyi, Kossmann and Stocker, 2001).
//!
//! Time: bins * front, in order of price.
//!
//! Invariant: within its group, every bin dropped is dominated by one kept, so no solution that
//! ignores limits gets dearer by the pruning.

use std::collections::BTreeMap;

use crate::pack::problem::{Bin, vector};

/// Indexes of the bins worth considering, for each tier, cheapest first.
pub(crate) fn skylines(bins: &[Bin], tiers: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..bins.len()).collect();
    order.sort_by_key(|index| (bins[*index].tier, bins[*index].price, *index));
    let mut kept: Vec<Vec<usize>> = vec![Vec::new(); tiers];
    let mut alike: BTreeMap<(usize, usize, usize), Vec<usize>> = BTreeMap::new();
    for index in order {
        let bin = &bins[index];
        let line = alike.entry((bin.tier, bin.group, bin.start)).or_default();
        // What is sold at one price in several zones follows upon itself: the latest first.
        if !line.iter().rev().any(|other| dominates(&bins[*other], bin)) {
            line.push(index);
            kept[bin.tier].push(index);
        }
    }
    kept
}

/// True when `other`, which is no dearer and admits the same, can stand in for `bin`: one of a pool
/// with limits only for its like, since it may not be had. How much of a limit each of these draws
/// is not looked at: where one binds, the solver looks at every bin again.
fn dominates(other: &Bin, bin: &Bin) -> bool {
    let can_be_had = other.charge.is_empty() || other.limit_set == bin.limit_set;
    can_be_had && other.reservation.is_none() && vector::fits(&bin.room, &other.room)
}
