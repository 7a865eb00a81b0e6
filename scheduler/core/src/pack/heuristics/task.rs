//! What heuristics work with, and what they leave.
//!
//! Invariant: plain values; whoever buys draws on the limits itself.

use crate::pack::problem::item_table::ItemTable;
use crate::pack::problem::{Packed, Problem};

/// A solution and what it leaves.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// Nodes to buy.
    pub(crate) packed: Vec<Packed>,
    /// Pods of each class without a place.
    pub(crate) left: Vec<i64>,
}

/// What a greedy works with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task<'a> {
    /// The problem.
    pub(crate) problem: &'a Problem,
    /// Bins to choose from.
    pub(crate) bins: &'a [usize],
    /// The same with the classes that fit them, in the same order.
    pub(crate) tables: &'a [ItemTable],
    /// Value of one pod of each class.
    pub(crate) values: &'a [f64],
}

/// Number of nodes.
pub(crate) fn nodes(packed: &[Packed]) -> i64 {
    packed.iter().map(|packed| packed.copies).sum()
}

/// Subtracts the pods of equal nodes from what is left.
pub(crate) fn take(packed: &Packed, left: &mut [i64]) {
    for (class, count) in &packed.load {
        left[*class] -= count * packed.copies;
    }
}

/// Classes of which something is left.
pub(crate) fn kinds(left: &[i64]) -> i64 {
    i64::try_from(left.iter().filter(|count| **count > 0).count()).unwrap_or(i64::MAX)
}

/// True when nothing is left.
pub(crate) fn is_done(left: &[i64]) -> bool {
    left.iter().all(|count| *count == 0)
}
