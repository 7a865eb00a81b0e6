//! Pruning: bins for which another bin of the same group has as much room for no more money.
//!
//! Invariant: within its group, every bin dropped is dominated by one kept, so no solution that
//! ignores limits gets dearer by the pruning.

use super::problem::Bin;
use super::vector;

/// Indexes of the bins worth considering, for each tier, cheapest first.
pub(crate) fn skylines(bins: &[Bin], tiers: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..bins.len()).collect();
    order.sort_by_key(|index| (bins[*index].tier, bins[*index].price, *index));
    let mut kept: Vec<Vec<usize>> = vec![Vec::new(); tiers];
    for index in order {
        let bin = &bins[index];
        let line = &mut kept[bin.tier];
        if !line.iter().any(|other| dominates(&bins[*other], bin)) {
            line.push(index);
        }
    }
    kept
}

/// True when `other`, which is no dearer, can stand in for `bin`. Limits are not looked at: where one
/// binds, the solver looks at every bin again.
fn dominates(other: &Bin, bin: &Bin) -> bool {
    other.group == bin.group
        && other.start == bin.start
        && other.reservation.is_none()
        && vector::fits(&bin.room, &other.room)
}
