//! Parts: what of a task matters for the pods that are left.
//!
//! Invariant: whatever the pods that are left can be packed into at some price, the bins of the part can
//! hold for no more, whatever limits there are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::pack::heuristics::task::Task;
use crate::pack::problem::Problem;
use crate::pack::problem::item_table::Shelf;
use crate::pack::problem::vector::{self, Vector};

/// Bins with the rows that are left.
#[derive(Debug)]
pub(crate) struct Part<'s> {
    bins: Vec<usize>,
    /// The same with the rows that fit them, in the same order.
    pub(crate) shelves: Cow<'s, [Shelf]>,
}

impl<'s> Part<'s> {
    /// The shelves that are worth a look, with the rows that are left. Shelves are many, and large: they are
    /// copied only where something is to be dropped.
    pub(crate) fn of(problem: &Problem, shelves: &'s [Shelf], left: &[i64]) -> Self {
        let mut enough = Enough::new(problem, left);
        let needed: Vec<&Shelf> = shelves.iter().filter(|s| enough.needs(s.bin)).collect();
        if needed.len() == shelves.len() && shelves.iter().all(|shelf| shelf.is_whole(left)) {
            return Self::new(Cow::Borrowed(shelves));
        }
        let with_rows = needed.into_iter().map(|shelf| shelf.with(left));
        Self::new(Cow::Owned(with_rows.filter(|shelf| !shelf.is_empty()).collect()))
    }

    /// The same of shelves that nothing else needs.
    pub(crate) fn keep(problem: &Problem, mut shelves: Vec<Shelf>, left: &[i64]) -> Self {
        let mut enough = Enough::new(problem, left);
        shelves.retain_mut(|shelf| {
            shelf.keep(left);
            enough.needs(shelf.bin) && !shelf.is_empty()
        });
        Self::new(Cow::Owned(shelves))
    }

    fn new(shelves: Cow<'s, [Shelf]>) -> Self {
        Self { bins: shelves.iter().map(|shelf| shelf.bin).collect(), shelves }
    }

    /// Indexes of the bins.
    pub(crate) fn bins(&self) -> &[usize] {
        &self.bins
    }

    /// What a greedy works with on this part, when pods are worth `values`.
    pub(crate) fn task<'a>(&'a self, problem: &'a Problem, values: &'a [f64]) -> Task<'a> {
        Task { problem, bins: &self.bins, shelves: &self.shelves, values }
    }
}

/// Which bins, in order of price, are worth a look: once one has room for everything, a dearer one that admits
/// the same adds nothing.
pub(crate) struct Enough<'a> {
    problem: &'a Problem,
    left: &'a [i64],
    wanted: BTreeMap<usize, Vector>,
    roomy: Vec<(usize, usize)>,
}

impl<'a> Enough<'a> {
    /// For the pods that are left.
    pub(crate) fn new(problem: &'a Problem, left: &'a [i64]) -> Self {
        Self { problem, left, wanted: BTreeMap::new(), roomy: Vec::new() }
    }

    /// Whether the next bin is worth a look.
    pub(crate) fn needs(&mut self, index: usize) -> bool {
        let Self { problem, left, .. } = *self;
        let bin = &problem.bins[index];
        if self.roomy.contains(&(bin.group, bin.start)) {
            return false;
        }
        let all = self.wanted.entry(bin.group).or_insert_with(|| weight(problem, bin.group, left));
        if problem.is_ample(index) && vector::fits(all, &bin.room) {
            self.roomy.push((bin.group, bin.start));
        }
        true
    }
}

/// What all pods request that a group of bins admits.
fn weight(problem: &Problem, group: usize, left: &[i64]) -> Vector {
    let mut sum = vec![0; problem.bins.first().map_or(0, |bin| bin.room.len())];
    let rows = problem.rows.iter().zip(left).enumerate();
    for (_, (row, left)) in rows.filter(|(row, _)| problem.admits[group][*row]) {
        vector::add(&mut sum, &row.request, *left);
    }
    sum
}
