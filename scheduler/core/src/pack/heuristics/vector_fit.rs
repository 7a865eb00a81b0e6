//! Vector bin packing by the dot product (Panigrahy, Talwar, Uyeda and Wieder, 2011): nodes first,
//! chosen so that together they have what is wanted, then pods, largest first, each to the node
//! whose free room it suits best. For many kinds of pods, of which patterns say little.
//!
//! Time: pods * log of the nodes of a batch, and classes * nodes to begin with, for each slack
//! tried.
//!
//! Invariant: each set of classes that the same bins admit is fitted by itself, and node rules and
//! limits hold for what is fitted.

use std::collections::{BTreeMap, BinaryHeap};

use crate::pack::column_generation::covering::Cover;
use crate::pack::heuristics::greedy;
use crate::pack::heuristics::max_heap::HeapEntry;
use crate::pack::heuristics::task::{Solution, Task};
use crate::pack::problem::item_table::{ItemTable, Shares};
use crate::pack::problem::limits::LimitsLeft;
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, Vector, float};
use crate::pack::problem::{Load, Packed};

/// Shares by which the nodes together exceed what is wanted, tried in this order.
const SLACKS: [f64; 5] = [0.0, 0.004, 0.01, 0.02, 0.04];
/// What a node counts beside its price when nodes are chosen, in micro-dollars per hour: of nodes
/// at the same price for the same room the largest is taken.
const NODE_FEE: f64 = 500.0;
/// Nodes among which a pod may choose. More would cost more time than they save money.
const BATCH_BINS: usize = 256;
/// Most pods times nodes for which more than one slack is tried.
const WORK_MAX: i64 = 5_000_000;

/// Fits what is left; what suits no node is packed by the greedy. None when a limit is exceeded
/// that way.
pub(crate) fn pack(
    task: Task<'_>,
    left: &[i64],
    limits_left: &LimitsLeft,
) -> Option<(Solution, LimitsLeft)> {
    let problem = task.problem;
    let fitted = |class: &usize| {
        let spec = &problem.classes[*class];
        let follows = problem.rules.needs_affinity(spec.shape);
        left[*class] > 0 && !follows && !spec.request.is_empty()
    };
    let classes: Vec<usize> = (0..left.len()).filter(fitted).collect();
    let mut limits_left = limits_left.clone();
    let mut whole = Solution { packed: Vec::new(), left: left.to_vec() };
    for classes in alike(task, &classes) {
        // Of what is reserved there are few; patterns use it better.
        let sold = |table: &&ItemTable| {
            problem.admits(table.bin, classes[0]) && problem.bins[table.bin].reservation.is_none()
        };
        let tables: Vec<&ItemTable> = task.tables.iter().filter(sold).collect();
        if tables.is_empty() {
            continue;
        }
        let mut part = vec![0; left.len()];
        classes.iter().for_each(|class| part[*class] = left[*class]);
        let best = Table { task, tables }.best(&classes, &part, &limits_left);
        let Some(solution) = best else { continue };
        classes.iter().for_each(|class| whole.left[*class] = solution.left[*class]);
        limits_left.charge_all(problem, &solution.packed);
        whole.packed.extend(solution.packed);
        if !limits_left.is_kept() {
            return None;
        }
    }
    Some((whole, limits_left))
}

/// Classes by the set of bins that admit them.
fn alike(task: Task<'_>, classes: &[usize]) -> Vec<Vec<usize>> {
    let mut alike: BTreeMap<Vec<bool>, Vec<usize>> = BTreeMap::new();
    for class in classes {
        let admits = task.problem.admits.iter().map(|group| group[*class]).collect();
        alike.entry(admits).or_default().push(*class);
    }
    alike.into_values().collect()
}

/// Bins for classes that all of them admit.
struct Table<'a> {
    task: Task<'a>,
    tables: Vec<&'a ItemTable>,
}

/// A node while pods are fitted to it.
struct OpenBin {
    bin: usize,
    room: Vector,
    /// For each guiding resource, one over the bin's room.
    scale: Shares,
    /// Free share of each guiding resource.
    free: Shares,
    state: NodeState,
    load: Load,
}

impl Table<'_> {
    /// The cheapest of several deals.
    fn best(&self, classes: &[usize], left: &[i64], limits_left: &LimitsLeft) -> Option<Solution> {
        let problem = self.task.problem;
        let mut best: Option<(i64, i64, Solution)> = None;
        for slack in SLACKS {
            let bins = self.nodes(classes, left, slack)?;
            let choice = i64::try_from(bins.len().min(BATCH_BINS)).unwrap_or(i64::MAX);
            let work = left.iter().sum::<i64>() * choice;
            let solution = self.fit_batch(classes, left, &bins, limits_left);
            let (missing, price) = (solution.left.iter().sum(), problem.price(&solution.packed));
            if best.as_ref().is_none_or(|(m, p, _)| (missing, price) < (*m, *p)) {
                best = Some((missing, price, solution));
            }
            if work > WORK_MAX {
                break;
            }
        }
        best.map(|(.., solution)| solution)
    }

    /// Bins that together have a little more than what is wanted for the least money: whole ones of
    /// the fractional optimum, then whatever covers the rest.
    fn nodes(&self, classes: &[usize], left: &[i64], slack: f64) -> Option<Vec<usize>> {
        let problem = self.task.problem;
        // Resources, and as many nodes as the node rules ask for.
        let dims = problem.classes[classes[0]].request.len() + 1;
        let mut wanted = vec![0.0; dims];
        for class in classes {
            let each = wanted.iter_mut().zip(&problem.classes[*class].request);
            each.for_each(|(sum, need)| *sum += float(*need) * float(left[*class]) * (1.0 + slack));
        }
        let pods = classes.iter().map(|class| (problem.classes[*class].shape, left[*class]));
        wanted[dims - 1] = float(problem.rules.nodes_min(pods));
        let mut nodes = Vec::new();
        // Each round covers at least half of what the one before left.
        for _ in 0..12 {
            let shares: Vec<f64> = wanted.iter().map(|w| w.max(1e-9)).collect();
            let mut cover = Cover::new(&vec![1.0; dims], &vec![1e15; dims], &[]);
            for table in &self.tables {
                let bin = &problem.bins[table.bin];
                let room = bin.room.iter().map(|have| float(*have)).chain([1.0]);
                // What is larger than the rest counts as the rest.
                let each = room.zip(&shares).enumerate();
                let entries = each.map(|(dim, (have, all))| (dim, (have / all).min(1.0)));
                cover.add(float(bin.price) + NODE_FEE, entries.collect());
            }
            cover.improve(100);
            let bought = cover.bought();
            let (at, times) = *bought.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            let mut whole: Vec<(usize, f64)> =
                bought.iter().map(|(at, times)| (*at, (times + 1e-6).floor())).collect();
            if whole.iter().all(|(_, times)| *times < 1.0) {
                whole = vec![(at, times.ceil())];
            }
            for (at, times) in whole {
                let bin = self.tables[at].bin;
                let room = &problem.bins[bin].room;
                let mut copies = times;
                while copies >= 1.0 {
                    nodes.push(bin);
                    wanted.iter_mut().zip(room).for_each(|(want, have)| *want -= float(*have));
                    wanted[dims - 1] -= 1.0;
                    copies -= 1.0;
                }
            }
            if wanted.iter().all(|want| *want <= 1e-6) {
                break;
            }
        }
        Some(nodes)
    }

    fn fit_batch(
        &self,
        classes: &[usize],
        left: &[i64],
        bins: &[usize],
        limits_left: &LimitsLeft,
    ) -> Solution {
        let problem = self.task.problem;
        let batches = bins.len().div_ceil(BATCH_BINS).max(1);
        let mut open_bins: Vec<Vec<OpenBin>> = (0..batches)
            .map(|batch| bins.iter().skip(batch).step_by(batches).map(|b| self.open(*b)).collect())
            .collect();
        let mut order = classes.to_vec();
        // What rules touch first, since room alone does not do for it; then the largest.
        let free = |class: &usize| problem.rules.is_free(problem.classes[*class].shape);
        let size = |class: &usize| self.task.values[*class];
        order
            .sort_by(|a, b| free(a).cmp(&free(b)).then(size(b).total_cmp(&size(a))).then(a.cmp(b)));
        let mut rest = left.to_vec();
        let mut next = 0;
        for class in &order {
            let count = usize::try_from(rest[*class]).unwrap_or(0);
            let (each, extra) = (count / batches, count % batches);
            for turn in 0..batches {
                let count = i64::try_from(each + usize::from(turn < extra)).unwrap_or(i64::MAX);
                rest[*class] -=
                    self.fit_pods(&mut open_bins[(next + turn) % batches], *class, count);
            }
            // Tables that got one pod more wait longest for the next.
            next = (next + extra) % batches;
        }
        // What found no room at its batch is offered everywhere.
        let mut open_bins: Vec<OpenBin> = open_bins.into_iter().flatten().collect();
        for class in order.iter().filter(|class| left[**class] > 0) {
            rest[*class] -= self.fit_pods(&mut open_bins, *class, rest[*class]);
        }
        let mut packed: Vec<Packed> = Vec::new();
        for mut open in open_bins.into_iter().filter(|open| !open.load.is_empty()) {
            open.load.sort_unstable();
            packed.push(Packed { bin: open.bin, load: open.load, copies: 1 });
        }
        let mut limits_left = limits_left.clone();
        limits_left.charge_all(problem, &packed);
        let end = greedy::pack(self.task, rest, &mut limits_left);
        packed.extend(end.packed);
        crate::pack::heuristics::tail::right_size(problem, &mut packed, &mut limits_left);
        Solution { packed, left: end.left }
    }

    /// Puts pods of a class to some open bins and says how many: each time to the one with the most
    /// room of the kind that they take.
    fn fit_pods(&self, open_bins: &mut [OpenBin], class: usize, count: i64) -> i64 {
        if count == 0 {
            return 0;
        }
        let spec = &self.task.problem.classes[class];
        let need = self.need(&spec.request);
        let suits = |(at, open): (usize, &OpenBin)| HeapEntry { rank: open.score(&need), at };
        let mut queue: BinaryHeap<HeapEntry> = open_bins.iter().enumerate().map(suits).collect();
        // Many equal pods are fitted a few at a time.
        let turns = 2 * i64::try_from(open_bins.len()).unwrap_or(1);
        let mut rest = count;
        while rest > 0 {
            let Some(HeapEntry { at, .. }) = queue.pop() else { break };
            let open = &mut open_bins[at];
            let fit = vector::copies(&spec.request, &open.room).min(self.allowance(open, class));
            if fit <= 0 {
                // Nor later: pods only take room.
                continue;
            }
            let count = (rest / turns + 1).min(fit).min(rest);
            open.take(class, &spec.request, count, &self.tables[0].guides);
            self.task.problem.rules.record(spec.shape, count, &mut open.state);
            queue.push(suits((at, open)));
            rest -= count;
        }
        count - rest
    }

    fn open(&self, bin: usize) -> OpenBin {
        let problem = self.task.problem;
        let room = problem.bins[bin].room.clone();
        let state = problem.starts[problem.bins[bin].start].clone();
        let mut scale = Shares::default();
        for (guide, dim) in self.tables[0].guides.iter().enumerate() {
            scale[guide] = 1.0 / float(room[*dim].max(1));
        }
        let free = scale.map(|by| f64::from(u8::from(by > 0.0)));
        OpenBin { bin, room, scale, free, state, load: Load::new() }
    }

    /// What one pod takes, in the resources that guide.
    fn need(&self, request: &[i64]) -> Shares {
        let mut need = Shares::default();
        for (guide, dim) in self.tables[0].guides.iter().enumerate() {
            need[guide] = float(request[*dim]);
        }
        need
    }

    /// Most pods of a class that the rules let an open bin take.
    fn allowance(&self, open: &OpenBin, class: usize) -> i64 {
        let problem = self.task.problem;
        let shape = problem.classes[class].shape;
        if problem.rules.is_free(shape) {
            return i64::MAX;
        }
        problem.rules.allowance(shape, &open.state, false)
    }
}

impl OpenBin {
    /// How much is free of what a pod takes, each resource counted by how much of it the pod takes.
    fn score(&self, need: &Shares) -> f64 {
        let (mut dot, mut size) = (0.0, 1e-12);
        for ((need, scale), free) in need.iter().zip(&self.scale).zip(&self.free) {
            dot += need * scale * free;
            size += need * scale;
        }
        dot / size
    }

    fn take(&mut self, class: usize, request: &[i64], count: i64, guides: &[usize]) {
        vector::add(&mut self.room, request, -count);
        for (guide, dim) in guides.iter().enumerate() {
            self.free[guide] -= float(request[*dim] * count) * self.scale[guide];
        }
        // Classes come one after the other, all but a few leftovers.
        match self.load.iter_mut().rev().find(|(known, _)| *known == class) {
            Some((_, sum)) => *sum += count,
            None => self.load.push((class, count)),
        }
    }
}
