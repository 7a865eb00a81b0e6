//! Limits as exact counters: what pools and reservations still allow.
//!
//! Invariant: no counter ever goes below zero by a charge; a solution that would is not offered.

use crate::pack::problem::vector::{self, Vector};
use crate::pack::problem::{Bin, Packed, Problem};

/// What is left of a set of limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitSet {
    /// Left of each limit; empty means no limit.
    pub(crate) left: Vector,
}

/// All sets of limits while a plan grows.
#[derive(Clone, Debug)]
pub(crate) struct LimitsLeft(Vec<LimitSet>);

impl LimitsLeft {
    /// All limits with nothing spent.
    pub(crate) fn new(problem: &Problem) -> Self {
        Self(problem.limit_sets.clone())
    }

    /// How many bins of this kind may still be bought.
    pub(crate) fn copies(&self, bin: &Bin) -> i64 {
        let pool = vector::copies(&bin.charge, &self.0[bin.limit_set].left);
        let reservation = bin.reservation.map_or(i64::MAX, |index| self.0[index].left[0]);
        pool.min(reservation)
    }

    /// Draws on sets of limits; a negative count gives back.
    pub(crate) fn charge(&mut self, bin: &Bin, copies: i64) {
        vector::add(&mut self.0[bin.limit_set].left, &bin.charge, -copies);
        if let Some(index) = bin.reservation {
            self.0[index].left[0] -= copies;
        }
    }

    /// Draws on sets of limits for a whole solution.
    pub(crate) fn charge_all(&mut self, problem: &Problem, packed: &[Packed]) {
        for entry in packed {
            self.charge(&problem.bins[entry.bin], entry.copies);
        }
    }

    /// True when no limit is exceeded.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.iter().flat_map(|limit_set| &limit_set.left).all(|left| *left >= 0)
    }

    /// What is left.
    pub(crate) fn limit_sets(&self) -> &[LimitSet] {
        &self.0
    }
}
