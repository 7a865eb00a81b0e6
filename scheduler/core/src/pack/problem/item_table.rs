//! Bins seen from the rows: which rows fit each, how many of each alone, and what share of the bin one
//! pod takes.
//!
//! Invariant: does not depend on what is left; computed once for a set of bins.

use crate::pack::problem::Problem;
use crate::pack::problem::vector::{self, float};

/// An amount of each resource that guides, as a share of the bin. Rooms are compared exactly; shares only
/// say what to try first, and a bound that leaves a resource out still holds.
pub(crate) type Lanes = [f64; LANES];

/// Most resources that guide.
pub(crate) const LANES: usize = 4;

/// A bin with the rows that fit it.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    /// The bin.
    pub(crate) bin: usize,
    /// Rows of which it holds at least one pod.
    pub(crate) items: Vec<Item>,
    /// Rows of which it has room for one pod, but none while it is empty: node rules want company.
    pub(crate) followers: Vec<usize>,
    /// True when no node rule touches any of them.
    pub(crate) free: bool,
    /// Resources that guide.
    pub(crate) lanes: Vec<usize>,
}

/// A row on a shelf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// The row.
    pub(crate) row: usize,
    /// Most pods of it that the empty bin takes.
    pub(crate) most: i64,
    /// What one pod takes.
    pub(crate) shares: Lanes,
}

impl Shelf {
    /// The bin with its rows.
    pub(crate) fn new(problem: &Problem, bin: usize) -> Self {
        let kind = &problem.bins[bin];
        let state = &problem.starts[kind.start];
        let lanes: Vec<usize> = (0..kind.room.len().min(LANES)).collect();
        let mut shelf = Self { bin, items: Vec::new(), followers: Vec::new(), free: true, lanes };
        for (row, spec) in problem.rows.iter().enumerate() {
            if !problem.admits(bin, row) {
                continue;
            }
            let mut most = vector::copies(&spec.request, &kind.room);
            let ruled = !problem.rules.is_free(spec.shape);
            if ruled && most > 0 {
                most = most.min(problem.rules.allowance(spec.shape, state, false));
                if most <= 0 {
                    shelf.followers.push(row);
                }
            }
            if most > 0 {
                shelf.free &= !ruled;
                let shares = shelf.shares(&spec.request, &kind.room);
                shelf.items.push(Item { row, most, shares });
            }
        }
        shelf
    }

    /// The shelf with only those rows of which something is left.
    pub(crate) fn with(&self, left: &[i64]) -> Self {
        let waits = |row: usize| left[row] > 0;
        Self {
            bin: self.bin,
            items: self.items.iter().filter(|item| waits(item.row)).copied().collect(),
            followers: self.followers.iter().copied().filter(|row| waits(*row)).collect(),
            free: self.free,
            lanes: self.lanes.clone(),
        }
    }

    /// Drops the rows of which nothing is left.
    pub(crate) fn keep(&mut self, left: &[i64]) {
        self.items.retain(|item| left[item.row] > 0);
        self.followers.retain(|row| left[*row] > 0);
    }

    /// True when there is something to pack of it, and something is left of each of its rows.
    pub(crate) fn is_whole(&self, left: &[i64]) -> bool {
        let mut rows = self.items.iter().map(|item| item.row).chain(self.followers.iter().copied());
        !self.is_empty() && rows.all(|row| left[row] > 0)
    }

    /// True when none of its rows can be packed.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.followers.is_empty()
    }

    /// What an amount is of a room, in the resources that guide.
    pub(crate) fn shares(&self, amount: &[i64], room: &[i64]) -> Lanes {
        let mut shares = Lanes::default();
        for (lane, dim) in self.lanes.iter().enumerate() {
            shares[lane] = float(amount[*dim]) / float(room[*dim].max(1));
        }
        shares
    }

    /// Equal weights of the resources that guide.
    pub(crate) fn even(&self) -> Lanes {
        let mut weights = Lanes::default();
        let count = i64::try_from(self.lanes.len()).unwrap_or(i64::MAX);
        (0..self.lanes.len()).for_each(|lane| weights[lane] = 1.0 / float(count));
        weights
    }
}

/// An item of a shelf of which something is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked {
    /// The row.
    pub(crate) row: usize,
    /// Most pods of it that may be taken.
    pub(crate) most: i64,
    /// Value of one pod.
    pub(crate) value: f64,
    /// Weighted share of the bin that one pod takes.
    pub(crate) size: f64,
    /// What one pod takes.
    pub(crate) shares: Lanes,
}
