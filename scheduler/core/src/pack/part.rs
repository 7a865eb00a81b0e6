//! Parts: what of a task matters for the pods that are left.
//!
//! Invariant: whatever the pods that are left can be packed into at some price, the bins of the part can
//! hold for no more, whatever limits there are.

use std::collections::BTreeMap;

use super::greedy::Task;
use super::problem::Problem;
use super::shelf::Shelf;
use super::vector::{self, Vector};

/// Bins with the rows that are left.
#[derive(Debug)]
pub(crate) struct Part {
    bins: Vec<usize>,
    /// The same with the rows that fit them, in the same order.
    pub(crate) shelves: Vec<Shelf>,
}

impl Part {
    /// The shelves that are worth a look, with the rows that are left.
    pub(crate) fn of(problem: &Problem, shelves: &[Shelf], left: &[i64]) -> Self {
        let mut enough = Enough::new(problem, left);
        let mut part = Self { bins: Vec::new(), shelves: Vec::new() };
        for shelf in shelves.iter().filter(|shelf| enough.needs(shelf.bin)) {
            let shelf = shelf.with(left);
            if !shelf.items.is_empty() || !shelf.followers.is_empty() {
                part.bins.push(shelf.bin);
                part.shelves.push(shelf);
            }
        }
        part
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
