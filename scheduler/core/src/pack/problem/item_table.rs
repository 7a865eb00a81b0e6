//! Bins seen from the classes: which classes fit each, how many of each alone, and what share of
//! the bin one pod takes.
//!
//! Invariant: does not depend on what is left; computed once for a set of bins.

use crate::pack::problem::Problem;
use crate::pack::problem::vector::{self, float};

/// An amount of each resource that guides, as a share of the bin. Rooms are compared exactly;
/// shares only say what to try first, and a bound that leaves a resource out still holds.
pub(crate) type Shares = [f64; SHARES_MAX];

/// Most resources that guide.
pub(crate) const SHARES_MAX: usize = 4;

/// A bin with the classes that fit it.
#[derive(Clone, Debug)]
pub(crate) struct ItemTable {
    /// The bin.
    pub(crate) bin: usize,
    /// Classes of which it holds at least one pod.
    pub(crate) items: Vec<Item>,
    /// Classes of which it has room for one pod, but none while it is empty: node rules want
    /// company.
    pub(crate) followers: Vec<usize>,
    /// True when no node rule touches any of them.
    pub(crate) free: bool,
    /// Resources that guide.
    pub(crate) guides: Vec<usize>,
}

/// A class on a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// The class.
    pub(crate) class: usize,
    /// Most pods of it that the empty bin takes.
    pub(crate) most: i64,
    /// What one pod takes.
    pub(crate) shares: Shares,
}

impl ItemTable {
    /// The bin with its classes.
    pub(crate) fn new(problem: &Problem, bin: usize) -> Self {
        let kind = &problem.bins[bin];
        let state = &problem.starts[kind.start];
        let guides: Vec<usize> = (0..kind.room.len().min(SHARES_MAX)).collect();
        let mut table = Self { bin, items: Vec::new(), followers: Vec::new(), free: true, guides };
        for (class, spec) in problem.classes.iter().enumerate() {
            if !problem.admits(bin, class) {
                continue;
            }
            let mut most = vector::copies(&spec.request, &kind.room);
            let ruled = !problem.rules.is_free(spec.shape);
            if ruled && most > 0 {
                most = most.min(problem.rules.allowance(spec.shape, state, false));
                if most <= 0 {
                    table.followers.push(class);
                }
            }
            if most > 0 {
                table.free &= !ruled;
                let shares = table.shares(&spec.request, &kind.room);
                table.items.push(Item { class, most, shares });
            }
        }
        table
    }

    /// The table with only those classes of which something is left.
    pub(crate) fn with(&self, left: &[i64]) -> Self {
        let waits = |class: usize| left[class] > 0;
        Self {
            bin: self.bin,
            items: self.items.iter().filter(|item| waits(item.class)).copied().collect(),
            followers: self.followers.iter().copied().filter(|class| waits(*class)).collect(),
            free: self.free,
            guides: self.guides.clone(),
        }
    }

    /// Drops the classes of which nothing is left.
    pub(crate) fn keep(&mut self, left: &[i64]) {
        self.items.retain(|item| left[item.class] > 0);
        self.followers.retain(|class| left[*class] > 0);
    }

    /// True when there is something to pack of it, and something is left of each of its classes.
    pub(crate) fn is_whole(&self, left: &[i64]) -> bool {
        let mut classes =
            self.items.iter().map(|item| item.class).chain(self.followers.iter().copied());
        !self.is_empty() && classes.all(|class| left[class] > 0)
    }

    /// True when none of its classes can be packed.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.followers.is_empty()
    }

    /// What an amount is of a room, in the resources that guide.
    pub(crate) fn shares(&self, amount: &[i64], room: &[i64]) -> Shares {
        let mut shares = Shares::default();
        for (guide, dim) in self.guides.iter().enumerate() {
            shares[guide] = float(amount[*dim]) / float(room[*dim].max(1));
        }
        shares
    }

    /// Equal weights of the resources that guide.
    pub(crate) fn even(&self) -> Shares {
        let mut weights = Shares::default();
        let count = i64::try_from(self.guides.len()).unwrap_or(i64::MAX);
        (0..self.guides.len()).for_each(|guide| weights[guide] = 1.0 / float(count));
        weights
    }
}

/// An item of a table of which something is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked {
    /// The class.
    pub(crate) class: usize,
    /// Most pods of it that may be taken.
    pub(crate) most: i64,
    /// Value of one pod.
    pub(crate) value: f64,
    /// Weighted share of the bin that one pod takes.
    pub(crate) size: f64,
    /// What one pod takes.
    pub(crate) shares: Shares,
}
