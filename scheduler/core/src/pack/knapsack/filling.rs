//! Whole fillings of one bin: by density, and by what is scarce at the moment (the effective
//! gradient of Toyoda, 1975: an item is weighed by its share of each resource over what is free of
//! it).
//!
//! Time: n log n by density; by scarcity n for each eighth of a resource that is taken.
//!
//! Invariant: a filling fits its bin, obeys the node rules, and takes no more of a class than is
//! left.

use crate::pack::problem::item_table::Ranked;
use crate::pack::problem::item_table::{ItemTable, Shares};
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, float};
use crate::pack::problem::{Load, Problem};

/// A bin while it is filled.
struct Filling<'a> {
    problem: &'a Problem,
    table: &'a ItemTable,
    room: Vec<i64>,
    state: NodeState,
    value: f64,
    load: Load,
}

/// Takes as many of each item as fit, in order.
pub(crate) fn in_order(problem: &Problem, table: &ItemTable, items: &[Ranked]) -> (f64, Load) {
    let mut filling = Filling::new(problem, table);
    for item in items {
        let fit = filling.fit(item, 0);
        filling.take(item, fit);
        if fit > 0 {
            filling.load.push((item.class, fit));
        }
    }
    (filling.value, filling.load)
}

/// Fillings that keep the free resources in proportion, once by the sum of the scarce shares that
/// an item takes and once by the largest of them.
pub(crate) fn balanced(problem: &Problem, table: &ItemTable, items: &[Ranked]) -> [(f64, Load); 2] {
    let balance = |join: fn(Shares) -> f64| Filling::new(problem, table).balance(items, join);
    [balance(|[a, b, c, d]| a + b + (c + d)), balance(|[a, b, c, d]| a.max(b).max(c.max(d)))]
}

impl<'a> Filling<'a> {
    fn new(problem: &'a Problem, table: &'a ItemTable) -> Self {
        let kind = &problem.bins[table.bin];
        let free = table.free;
        let state = if free { NodeState::default() } else { problem.starts[kind.start].clone() };
        Self { problem, table, room: kind.room.clone(), state, value: 0.0, load: Load::new() }
    }

    /// Most pods of the item that may still be added when some have been taken.
    fn fit(&self, item: &Ranked, taken: i64) -> i64 {
        let spec = &self.problem.classes[item.class];
        let fit = vector::copies(&spec.request, &self.room).min(item.most - taken);
        if self.table.free || fit <= 0 || self.problem.rules.is_free(spec.shape) {
            return fit;
        }
        fit.min(self.problem.rules.allowance(spec.shape, &self.state, false))
    }

    fn take(&mut self, item: &Ranked, count: i64) {
        if count <= 0 {
            return;
        }
        let spec = &self.problem.classes[item.class];
        vector::add(&mut self.room, &spec.request, -count);
        self.value += item.value * float(count);
        if !self.table.free && !self.problem.rules.is_free(spec.shape) {
            self.problem.rules.record(spec.shape, count, &mut self.state);
        }
    }

    /// Adds half of what fits of the items that are worth most for what they take of what is
    /// scarce, until a good part of what was free is taken; weighs the items anew, and so on.
    fn balance(mut self, items: &[Ranked], join: impl Fn(Shares) -> f64) -> (f64, Load) {
        let all = &self.problem.bins[self.table.bin].room;
        let mut open: Vec<Open> =
            items.iter().map(|item| Open { item: *item, taken: 0, score: 0.0 }).collect();
        while !open.is_empty() {
            // How much more a share of each resource counts for being scarce by now.
            let scarce = self.table.shares(all, &self.room);
            for Open { item, score, .. } in &mut open {
                let [a, b, c, d] = item.shares;
                let each = join([a * scarce[0], b * scarce[1], c * scarce[2], d * scarce[3]]);
                *score = item.value / each.max(1e-12);
            }
            let best = |a: &Open, b: &Open| {
                b.score.total_cmp(&a.score).then(a.item.class.cmp(&b.item.class))
            };
            if open.len() > FRONT {
                open.select_nth_unstable_by(FRONT - 1, best);
            }
            let front = open.len().min(FRONT);
            open[..front].sort_unstable_by(best);
            self.take_front(&mut open[..front], &scarce);
            self.load
                .extend(open.iter().filter(|o| o.taken < 0).map(|o| (o.item.class, -1 - o.taken)));
            open.retain(|o| o.taken >= 0);
        }
        self.load.retain(|(_, count)| *count > 0);
        (self.value, self.load)
    }

    /// Takes from the best items until an eighth of what was free of some resource is gone. Items
    /// of which nothing more fits are marked: what was taken of them becomes negative, less one.
    fn take_front(&mut self, front: &mut [Open], scarce: &Shares) {
        let mut used = Shares::default();
        for open in front {
            let fit = self.fit(&open.item, open.taken);
            if fit <= 0 {
                open.taken = -1 - open.taken;
                continue;
            }
            let count = (fit + 1) / 2;
            self.take(&open.item, count);
            open.taken += count;
            for (guide, used) in used.iter_mut().enumerate() {
                *used += open.item.shares[guide] * scarce[guide] * float(count);
            }
            if used.iter().any(|used| *used >= 0.125) {
                return;
            }
        }
    }
}

/// An item that may still be taken.
#[derive(Clone, Copy)]
struct Open {
    item: Ranked,
    taken: i64,
    score: f64,
}

/// Most items that are taken before all are weighed anew.
const FRONT: usize = 32;
