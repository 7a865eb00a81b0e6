//! Parts: what of a task matters for the pods that are left.
//!
//! Invariant: whatever the pods that are left can be packed into at some price, the bins of the
//! part can hold for no more, whatever limits there are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::pack::heuristics::task::Task;
use crate::pack::problem::Problem;
use crate::pack::problem::item_table::ItemTable;
use crate::pack::problem::vector::{self, Vector};

/// Bins with the classes that are left.
#[derive(Debug)]
pub(crate) struct Part<'s> {
    bins: Vec<usize>,
    /// The same with the classes that fit them, in the same order.
    pub(crate) tables: Cow<'s, [ItemTable]>,
}

impl<'s> Part<'s> {
    /// The tables that are worth a look, with the classes that are left. Tables are many, and
    /// large: they are copied only where something is to be dropped.
    pub(crate) fn of(problem: &Problem, tables: &'s [ItemTable], left: &[i64]) -> Self {
        let mut cheaper = CheaperBins::new(problem, left);
        let needed: Vec<&ItemTable> = tables.iter().filter(|s| cheaper.needs(s.bin)).collect();
        if needed.len() == tables.len() && tables.iter().all(|table| table.is_whole(left)) {
            return Self::new(Cow::Borrowed(tables));
        }
        let with_rows = needed.into_iter().map(|table| table.with(left));
        Self::new(Cow::Owned(with_rows.filter(|table| !table.is_empty()).collect()))
    }

    /// The same of tables that nothing else needs.
    pub(crate) fn keep(problem: &Problem, mut tables: Vec<ItemTable>, left: &[i64]) -> Self {
        let mut cheaper = CheaperBins::new(problem, left);
        tables.retain_mut(|table| {
            table.keep(left);
            cheaper.needs(table.bin) && !table.is_empty()
        });
        Self::new(Cow::Owned(tables))
    }

    fn new(tables: Cow<'s, [ItemTable]>) -> Self {
        Self { bins: tables.iter().map(|table| table.bin).collect(), tables }
    }

    /// Indexes of the bins.
    pub(crate) fn bins(&self) -> &[usize] {
        &self.bins
    }

    /// What a greedy works with on this part, when pods are worth `values`.
    pub(crate) fn task<'a>(&'a self, problem: &'a Problem, values: &'a [f64]) -> Task<'a> {
        Task { problem, bins: &self.bins, tables: &self.tables, values }
    }
}

/// Which bins, in order of price, are worth a look: once one has room for everything, a dearer one
/// that admits the same adds nothing.
pub(crate) struct CheaperBins<'a> {
    problem: &'a Problem,
    left: &'a [i64],
    wanted: BTreeMap<usize, Vector>,
    roomy: Vec<(usize, usize)>,
}

impl<'a> CheaperBins<'a> {
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
    let classes = problem.classes.iter().zip(left).enumerate();
    for (_, (class, left)) in classes.filter(|(class, _)| problem.admits[group][*class]) {
        vector::add(&mut sum, &class.request, *left);
    }
    sum
}
