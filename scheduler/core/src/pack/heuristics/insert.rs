//! One pod at a time onto nodes that may still grow: for small batches, and for pods that must join
//! others on their node.
//!
//! Invariant: every node stays valid after every pod; growing keeps its tier, so NodePool weights
//! hold.

use crate::pack::heuristics::tail::Fit;
use crate::pack::heuristics::task::Solution;
use crate::pack::problem::limits::LimitsLeft;
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, Vector};
use crate::pack::problem::{Load, Packed, Problem};

/// What to do when no open node has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// Whatever adds least to the price.
    Cheapest,
    /// Grow an open node as long as something larger exists, as a scheduler does that keeps every
    /// type open until launch.
    Grow,
    /// Only what an open node has room for.
    Join,
    /// Always another node.
    Fresh,
}

/// Nodes that are being filled.
pub(crate) struct Nodes<'a> {
    problem: &'a Problem,
    bins: &'a [usize],
    open: Vec<Open>,
    occupied: Vec<bool>,
}

struct Open {
    bin: usize,
    load: Load,
    room: Vector,
    state: NodeState,
}

enum Step {
    Join(usize),
    Grow(usize, usize),
    New(usize),
}

impl<'a> Nodes<'a> {
    /// Starts without nodes. `occupied` says which node rules have members elsewhere.
    pub(crate) fn new(problem: &'a Problem, bins: &'a [usize], occupied: Vec<bool>) -> Self {
        Self { problem, bins, open: Vec::new(), occupied }
    }

    /// Node rules that have members now.
    pub(crate) fn occupied(&self) -> &[bool] {
        &self.occupied
    }

    /// Places as many pods of a class as possible and returns how many remain.
    pub(crate) fn insert(
        &mut self,
        class: usize,
        count: i64,
        overflow: Overflow,
        limits_left: &mut LimitsLeft,
    ) -> i64 {
        for remaining in (1..=count).rev() {
            let Some(step) = self.step(class, overflow, limits_left) else { return remaining };
            let at = self.carry_out(&step, limits_left);
            let shape = self.problem.classes[class].shape;
            let open = &mut self.open[at];
            vector::add(&mut open.room, &self.problem.classes[class].request, -1);
            self.problem.rules.record(shape, 1, &mut open.state);
            self.problem.rules.mark_begun(shape, &mut self.occupied);
            match open.load.iter_mut().find(|(known, _)| *known == class) {
                Some((_, count)) => *count += 1,
                None => open.load.push((class, 1)),
            }
        }
        0
    }

    /// The nodes as a solution, equal ones together.
    pub(crate) fn finish(self, left: Vec<i64>) -> Solution {
        let mut packed: Vec<Packed> = Vec::new();
        for mut open in self.open {
            open.load.sort_unstable();
            match packed.iter_mut().find(|p| p.bin == open.bin && p.load == open.load) {
                Some(equal) => equal.copies += 1,
                None => packed.push(Packed { bin: open.bin, load: open.load, copies: 1 }),
            }
        }
        Solution { packed, left }
    }

    fn step(&self, class: usize, overflow: Overflow, limits_left: &LimitsLeft) -> Option<Step> {
        let first = self.problem.rules.may_begin(self.problem.classes[class].shape, &self.occupied);
        if overflow == Overflow::Fresh {
            return self.cheapest_new(class, first, limits_left).map(Step::New);
        }
        let willing: Vec<usize> =
            (0..self.open.len()).filter(|at| self.is_willing(*at, class, first)).collect();
        let request = &self.problem.classes[class].request;
        let joins = |at: &&usize| {
            let open = &self.open[**at];
            vector::fits(request, &open.room) && self.problem.admits(open.bin, class)
        };
        if let Some(at) = willing.iter().find(joins) {
            return Some(Step::Join(*at));
        }
        if overflow == Overflow::Join {
            return None;
        }
        let grow = willing
            .iter()
            .filter_map(|at| {
                self.larger(*at, class, limits_left).map(|bin| (self.extra(*at, bin), *at, bin))
            })
            .min();
        let new = self.cheapest_new(class, first, limits_left);
        match (grow, new) {
            (Some((extra, at, bin)), Some(new)) => {
                let dearer = extra > self.problem.bins[new].price;
                let buy = overflow == Overflow::Cheapest && dearer;
                Some(if buy { Step::New(new) } else { Step::Grow(at, bin) })
            }
            (Some((_, at, bin)), None) => Some(Step::Grow(at, bin)),
            (None, new) => new.map(Step::New),
        }
    }

    fn is_willing(&self, at: usize, class: usize, first: bool) -> bool {
        let open = &self.open[at];
        let shape = self.problem.classes[class].shape;
        self.problem.rules.allowance(shape, &open.state, first) > 0
    }

    /// The cheapest bin of the node's tier that holds its load and one pod of the class.
    fn larger(&self, at: usize, class: usize, limits_left: &LimitsLeft) -> Option<usize> {
        let open = &self.open[at];
        let current = &self.problem.bins[open.bin];
        let mut load = open.load.clone();
        load.push((class, 1));
        let weight = self.problem.weight(&load);
        let mut after = limits_left.clone();
        after.charge(current, -1);
        let holds = |bin: &usize| {
            let kind = &self.problem.bins[*bin];
            kind.tier == current.tier
                && kind.start == current.start
                && vector::fits(&weight, &kind.room)
                && load.iter().all(|(class, _)| self.problem.admits(*bin, *class))
                && after.copies(kind) > 0
        };
        self.bins.iter().copied().find(holds)
    }

    fn extra(&self, at: usize, bin: usize) -> i64 {
        self.problem.bins[bin].price - self.problem.bins[self.open[at].bin].price
    }

    fn cheapest_new(&self, class: usize, first: bool, limits_left: &LimitsLeft) -> Option<usize> {
        let load = [(class, 1)];
        let shape = self.problem.classes[class].shape;
        let fit = Fit::of(self.problem, &load);
        let begins = |bin: &usize| {
            let kind = &self.problem.bins[*bin];
            let state = &self.problem.starts[kind.start];
            let begins = first && self.problem.rules.allowance(shape, state, true) > 0;
            let room = vector::fits(&self.problem.classes[class].request, &kind.room);
            (fit.holds(kind) || (begins && room && self.problem.admits(*bin, class)))
                && limits_left.copies(kind) > 0
        };
        self.bins.iter().copied().find(begins)
    }

    fn carry_out(&mut self, step: &Step, limits_left: &mut LimitsLeft) -> usize {
        match *step {
            Step::Join(at) => at,
            Step::Grow(at, bin) => {
                let open = &mut self.open[at];
                let (old, new) = (&self.problem.bins[open.bin], &self.problem.bins[bin]);
                limits_left.charge(old, -1);
                limits_left.charge(new, 1);
                vector::add(&mut open.room, &old.room, -1);
                vector::add(&mut open.room, &new.room, 1);
                open.bin = bin;
                at
            }
            Step::New(bin) => {
                limits_left.charge(&self.problem.bins[bin], 1);
                let kind = &self.problem.bins[bin];
                let state = self.problem.starts[kind.start].clone();
                self.open.push(Open { bin, load: Vec::new(), room: kind.room.clone(), state });
                self.open.len() - 1
            }
        }
    }
}
