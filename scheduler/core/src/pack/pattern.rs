//! Patterns: good ways to fill one bin with pods of the rows that are left.
//!
//! Invariant: a pattern fits its bin, obeys the node rules, and takes no more of a row than is left.

use std::cmp::Ordering;
use std::ops::Add;

use super::problem::{Load, Problem};
use super::vector::{self, float};

/// How a bin is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Most value for the share of the bin first, shares weighed by what is still free: keeps the
    /// free resources in proportion.
    Balanced,
    /// The same, with the largest of the shares instead of their sum.
    Bottleneck,
    /// Most value for the largest share of the bin first.
    Dense,
    /// Largest pods first.
    Largest,
}

/// All strategies, in the order in which ties are broken.
pub(crate) const STRATEGIES: [Strategy; 4] =
    [Strategy::Balanced, Strategy::Bottleneck, Strategy::Dense, Strategy::Largest];

/// What to fill bins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supply<'a> {
    /// Pods left of each row.
    pub(crate) left: &'a [i64],
    /// Value of one pod of each row.
    pub(crate) values: &'a [f64],
}

/// A filled bin.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// Bin.
    pub(crate) bin: usize,
    /// Pods in it, by row.
    pub(crate) load: Load,
    /// Their value.
    pub(crate) value: f64,
    /// Price of the bin for one unit of value; smaller is better.
    pub(crate) ratio: f64,
}

/// The best pattern for a bin that the strategies find; none when nothing fits.
pub(crate) fn best(problem: &Problem, bin: usize, supply: Supply<'_>) -> Option<Pattern> {
    let patterns = STRATEGIES.iter().filter_map(|s| fill(problem, bin, supply, *s));
    patterns.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
}

/// Fills a bin by one strategy.
pub(crate) fn fill(
    problem: &Problem,
    bin: usize,
    supply: Supply<'_>,
    strategy: Strategy,
) -> Option<Pattern> {
    let mut filling = Filling::new(problem, bin, supply)?;
    match strategy {
        Strategy::Balanced => filling.step_by_step(f64::add),
        Strategy::Bottleneck => filling.step_by_step(f64::max),
        Strategy::Dense => filling.in_order(|f, row| f.density(row)),
        Strategy::Largest => filling.in_order(|f, row| f.share(row)),
    }
    filling.finish()
}

struct Filling<'a> {
    problem: &'a Problem,
    supply: Supply<'a>,
    bin: usize,
    room: Vec<i64>,
    state: super::rules::NodeState,
    /// Rows that fit an empty bin.
    rows: Vec<usize>,
    load: Load,
}

impl<'a> Filling<'a> {
    fn new(problem: &'a Problem, bin: usize, supply: Supply<'a>) -> Option<Self> {
        let kind = &problem.bins[bin];
        let fits = |row: &usize| {
            supply.left[*row] > 0
                && problem.admits[kind.group][*row]
                && vector::fits(&problem.rows[*row].request, &kind.room)
        };
        let rows: Vec<usize> = (0..problem.rows.len()).filter(fits).collect();
        let state = problem.starts[kind.start].clone();
        let room = kind.room.clone();
        (!rows.is_empty()).then(|| Self {
            problem,
            supply,
            bin,
            room,
            state,
            rows,
            load: Vec::new(),
        })
    }

    /// Most pods of the row that may still be added.
    fn fit(&self, row: usize, taken: i64) -> i64 {
        let Row { shape, request } = self.row(row);
        let rules = &self.problem.rules;
        let allowed = if rules.is_free(shape) {
            i64::MAX
        } else {
            rules.allowance(shape, &self.state, false)
        };
        let left = self.supply.left[row] - taken;
        left.min(allowed).min(vector::copies(request, &self.room)).max(0)
    }

    fn row(&self, row: usize) -> Row<'a> {
        let row = &self.problem.rows[row];
        Row { shape: row.shape, request: &row.request }
    }

    fn take(&mut self, row: usize, count: i64) {
        let Row { shape, request } = self.row(row);
        vector::add(&mut self.room, request, -count);
        if !self.problem.rules.is_free(shape) {
            self.problem.rules.record(shape, count, &mut self.state);
        }
        match self.load.iter_mut().find(|(known, _)| *known == row) {
            Some((_, taken)) => *taken += count,
            None => self.load.push((row, count)),
        }
    }

    fn in_order(&mut self, key: impl Fn(&Self, usize) -> f64) {
        let mut order: Vec<(f64, usize)> =
            self.rows.iter().map(|row| (key(self, *row), *row)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, row) in order {
            let count = self.fit(row, 0);
            if count > 0 {
                self.take(row, count);
            }
        }
    }

    /// Adds half of what fits of the best row, weighs the rows anew, and so on.
    fn step_by_step(&mut self, join: fn(f64, f64) -> f64) {
        let mut open: Vec<(usize, i64)> = self.rows.iter().map(|row| (*row, 0)).collect();
        while !open.is_empty() {
            let mut best: Option<(f64, usize)> = None;
            for (at, (row, _)) in open.iter().enumerate() {
                let score = self.supply.values[*row] / self.scarcity(*row, join);
                let better = best.is_none_or(|(top, _)| score.total_cmp(&top) == Ordering::Greater);
                if better {
                    best = Some((score, at));
                }
            }
            let Some((_, at)) = best else { return };
            let (row, taken) = open[at];
            match self.fit(row, taken) {
                0 => drop(open.remove(at)),
                fit => {
                    let count = (fit + 1) / 2;
                    self.take(row, count);
                    open[at].1 += count;
                }
            }
        }
    }

    /// Shares of what is free that one pod takes, joined.
    fn scarcity(&self, row: usize, join: fn(f64, f64) -> f64) -> f64 {
        let request = self.row(row).request;
        let shares =
            request.iter().zip(&self.room).map(|(q, free)| float(*q) / float((*free).max(1)));
        shares.fold(1e-12, join)
    }

    fn share(&self, row: usize) -> f64 {
        let room = &self.problem.bins[self.bin].room;
        let request = self.row(row).request;
        let shares = request.iter().zip(room).map(|(q, all)| float(*q) / float((*all).max(1)));
        shares.fold(1e-12, f64::max)
    }

    fn density(&self, row: usize) -> f64 {
        self.supply.values[row] / self.share(row)
    }

    fn finish(mut self) -> Option<Pattern> {
        if self.load.is_empty() {
            return None;
        }
        self.load.sort_unstable();
        let value: f64 =
            self.load.iter().map(|(row, count)| self.supply.values[*row] * float(*count)).sum();
        let ratio = float(self.problem.bins[self.bin].price) / value;
        Some(Pattern { bin: self.bin, load: self.load, value, ratio })
    }
}

struct Row<'a> {
    shape: usize,
    request: &'a [i64],
}
