//! The pricing problem exactly: branch and bound, depth first, most copies first, within a number
//! of steps (after Horowitz and Sahni, 1974, with the surrogate's fractional filling as the bound).
//!
//! Time: at most `steps` nodes, each n for n items.
//!
//! Invariant: when it is complete, no pattern of the bin that takes free items only is worth more.

use crate::pack::problem::item_table::Ranked;
use crate::pack::problem::vector::{self, float};
use crate::pack::problem::{Load, Problem};

/// Depth-first search: items in order of density, most copies first, cut off where the weighted
/// size that is left cannot bring more than the best known.
pub(crate) struct Exact<'a> {
    problem: &'a Problem,
    items: &'a [Ranked],
    steps: usize,
    room: Vec<i64>,
    counts: Vec<i64>,
    value: f64,
    /// Value of the best pattern known.
    pub(crate) best_value: f64,
    /// A pattern that is better than what was known before.
    pub(crate) best: Option<(f64, Load)>,
    /// True when nothing was left out for lack of steps.
    pub(crate) complete: bool,
}

/// Differences below this share are none.
const SAME: f64 = 1.0 + 1e-9;

impl<'a> Exact<'a> {
    /// A search for something worth more than `known`.
    pub(crate) fn new(
        problem: &'a Problem,
        bin: usize,
        items: &'a [Ranked],
        known: f64,
        steps: usize,
    ) -> Self {
        Self {
            problem,
            items,
            steps,
            room: problem.bins[bin].room.clone(),
            counts: vec![0; items.len()],
            value: 0.0,
            best_value: known * SAME,
            best: None,
            complete: true,
        }
    }

    /// Searches.
    pub(crate) fn run(mut self) -> Self {
        self.visit(0, 1.0);
        self
    }

    fn visit(&mut self, at: usize, free: f64) {
        if self.value > self.best_value {
            self.best_value = self.value * SAME;
            self.best = Some((self.value, self.load()));
        }
        if self.value + self.potential(at, free) <= self.best_value {
            return;
        }
        if self.steps == 0 {
            self.complete = false;
            return;
        }
        self.steps -= 1;
        let item = self.items[at];
        let request = &self.problem.classes[item.class].request;
        let most = vector::copies(request, &self.room).min(item.most);
        for count in (0..=most).rev() {
            vector::add(&mut self.room, request, -count);
            let before = self.value;
            self.value += item.value * float(count);
            self.counts[at] = count;
            self.visit(at + 1, free - item.size * float(count));
            self.value = before;
            vector::add(&mut self.room, request, count);
        }
        self.counts[at] = 0;
    }

    /// The most that items from `at` on can add: a fractional filling.
    fn potential(&self, at: usize, mut free: f64) -> f64 {
        let mut value = 0.0;
        for item in &self.items[at..] {
            let count = float(item.most).min(free.max(0.0) / item.size);
            value += count * item.value;
            free -= count * item.size;
            if free <= 1e-12 {
                break;
            }
        }
        value
    }

    fn load(&self) -> Load {
        let taken = self.counts.iter().zip(self.items).filter(|(count, _)| **count > 0);
        taken.map(|(count, item)| (item.class, *count)).collect()
    }
}
