//! Ways to fill one bin, given what is left of each row and what it is worth.
//!
//! Invariant: a filling fits its bin, obeys the node rules, and takes no more of a row than is left.

use super::pattern::Ranked;
use super::problem::{Load, Problem};
use super::rules::NodeState;
use super::shelf::{Lanes, Shelf};
use super::vector::{self, float};

/// A bin while it is filled.
struct Filling<'a> {
    problem: &'a Problem,
    shelf: &'a Shelf,
    room: Vec<i64>,
    state: NodeState,
    value: f64,
    load: Load,
}

/// Takes as many of each item as fit, in order.
pub(crate) fn in_order(problem: &Problem, shelf: &Shelf, items: &[Ranked]) -> (f64, Load) {
    let mut filling = Filling::new(problem, shelf);
    for item in items {
        let fit = filling.fit(item, 0);
        filling.take(item, fit);
        if fit > 0 {
            filling.load.push((item.row, fit));
        }
    }
    (filling.value, filling.load)
}

/// Fillings that keep the free resources in proportion, once by the sum of the scarce shares that an item
/// takes and once by the largest of them.
pub(crate) fn balanced(problem: &Problem, shelf: &Shelf, items: &[Ranked]) -> [(f64, Load); 2] {
    let balance = |join: fn(Lanes) -> f64| Filling::new(problem, shelf).balance(items, join);
    [balance(|[a, b, c, d]| a + b + (c + d)), balance(|[a, b, c, d]| a.max(b).max(c.max(d)))]
}

impl<'a> Filling<'a> {
    fn new(problem: &'a Problem, shelf: &'a Shelf) -> Self {
        let kind = &problem.bins[shelf.bin];
        let free = shelf.free;
        let state = if free { NodeState::default() } else { problem.starts[kind.start].clone() };
        Self { problem, shelf, room: kind.room.clone(), state, value: 0.0, load: Load::new() }
    }

    /// Most pods of the item that may still be added when some have been taken.
    fn fit(&self, item: &Ranked, taken: i64) -> i64 {
        let spec = &self.problem.rows[item.row];
        let fit = vector::copies(&spec.request, &self.room).min(item.most - taken);
        if self.shelf.free || fit <= 0 || self.problem.rules.is_free(spec.shape) {
            return fit;
        }
        fit.min(self.problem.rules.allowance(spec.shape, &self.state, false))
    }

    fn take(&mut self, item: &Ranked, count: i64) {
        if count <= 0 {
            return;
        }
        let spec = &self.problem.rows[item.row];
        vector::add(&mut self.room, &spec.request, -count);
        self.value += item.value * float(count);
        if !self.shelf.free && !self.problem.rules.is_free(spec.shape) {
            self.problem.rules.record(spec.shape, count, &mut self.state);
        }
    }

    /// Adds half of what fits of the best item, weighs the items anew by what is still free, and so on.
    fn balance(mut self, items: &[Ranked], join: impl Fn(Lanes) -> f64) -> (f64, Load) {
        let all = &self.problem.bins[self.shelf.bin].room;
        let mut open: Vec<(Ranked, i64)> = items.iter().map(|item| (*item, 0)).collect();
        while !open.is_empty() {
            // How much more a share of each resource counts for being scarce by now.
            let scarce = self.shelf.shares(all, &self.room);
            let at = most_worth(&open, scarce, &join);
            let (item, taken) = open[at];
            let fit = self.fit(&item, taken);
            if fit > 0 {
                let count = (fit + 1) / 2;
                self.take(&item, count);
                open[at].1 += count;
                continue;
            }
            if taken > 0 {
                self.load.push((item.row, taken));
            }
            open.swap_remove(at);
        }
        (self.value, self.load)
    }
}

/// The item that is worth most for what it takes of what is scarce.
fn most_worth(open: &[(Ranked, i64)], scarce: Lanes, join: impl Fn(Lanes) -> f64) -> usize {
    let mut best = (f64::NEG_INFINITY, 0);
    for (at, (item, _)) in open.iter().enumerate() {
        let [a, b, c, d] = item.shares;
        let each = join([a * scarce[0], b * scarce[1], c * scarce[2], d * scarce[3]]);
        let score = item.value / each.max(1e-12);
        if score > best.0 {
            best = (score, at);
        }
    }
    best.1
}
