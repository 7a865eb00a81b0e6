//! Dealing: nodes first, chosen so that together they have what is wanted, then pods, largest first, each
//! to the node whose free room it suits best. For many kinds of pods, of which patterns say little.
//!
//! Invariant: each set of rows that the same bins admit is dealt by itself, and node rules and limits hold
//! for what is dealt; work grows with rows times the nodes of a table, and with pods.

use std::collections::{BTreeMap, BinaryHeap};

use crate::pack::column_generation::covering::Cover;
use crate::pack::heuristics::greedy;
use crate::pack::heuristics::max_heap::Next;
use crate::pack::heuristics::task::{Solution, Task};
use crate::pack::problem::item_table::{Lanes, Shelf};
use crate::pack::problem::limits::Ledger;
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, Vector, float};
use crate::pack::problem::{Load, Packed};

/// Shares by which the nodes together exceed what is wanted, tried in this order.
const SLACKS: [f64; 5] = [0.0, 0.004, 0.01, 0.02, 0.04];
/// What a node counts beside its price when nodes are chosen, in micro-dollars per hour: of nodes at the
/// same price for the same room the largest is taken.
const NODE_FEE: f64 = 500.0;
/// Nodes among which a pod may choose. More would cost more time than they save money.
const TABLE_SEATS: usize = 256;
/// Most pods times nodes for which more than one slack is tried.
const WORK_MAX: i64 = 5_000_000;

/// Deals what is left; what suits no node is packed by the greedy. None when a limit is exceeded that way.
pub(crate) fn pack(task: Task<'_>, left: &[i64], ledger: &Ledger) -> Option<(Solution, Ledger)> {
    let problem = task.problem;
    let dealt = |row: &usize| {
        let spec = &problem.rows[*row];
        let follows = problem.rules.needs_company(spec.shape);
        left[*row] > 0 && !follows && !spec.request.is_empty()
    };
    let rows: Vec<usize> = (0..left.len()).filter(dealt).collect();
    let mut ledger = ledger.clone();
    let mut whole = Solution { packed: Vec::new(), left: left.to_vec() };
    for rows in kindred(task, &rows) {
        // Of what is reserved there are few; patterns use it better.
        let sold = |shelf: &&Shelf| {
            problem.admits(shelf.bin, rows[0]) && problem.bins[shelf.bin].reservation.is_none()
        };
        let shelves: Vec<&Shelf> = task.shelves.iter().filter(sold).collect();
        if shelves.is_empty() {
            continue;
        }
        let mut part = vec![0; left.len()];
        rows.iter().for_each(|row| part[*row] = left[*row]);
        let best = Table { task, shelves }.best(&rows, &part, &ledger);
        let Some(solution) = best else { continue };
        rows.iter().for_each(|row| whole.left[*row] = solution.left[*row]);
        ledger.charge_all(problem, &solution.packed);
        whole.packed.extend(solution.packed);
        if !ledger.is_kept() {
            return None;
        }
    }
    Some((whole, ledger))
}

/// Rows by the set of bins that admit them.
fn kindred(task: Task<'_>, rows: &[usize]) -> Vec<Vec<usize>> {
    let mut kindred: BTreeMap<Vec<bool>, Vec<usize>> = BTreeMap::new();
    for row in rows {
        let admits = task.problem.admits.iter().map(|group| group[*row]).collect();
        kindred.entry(admits).or_default().push(*row);
    }
    kindred.into_values().collect()
}

/// Bins for rows that all of them admit.
struct Table<'a> {
    task: Task<'a>,
    shelves: Vec<&'a Shelf>,
}

/// A node while pods are dealt to it.
struct Seat {
    bin: usize,
    room: Vector,
    /// For each lane, one over the bin's room.
    scale: Lanes,
    /// Free share of each lane.
    free: Lanes,
    state: NodeState,
    load: Load,
}

impl Table<'_> {
    /// The cheapest of several deals.
    fn best(&self, rows: &[usize], left: &[i64], ledger: &Ledger) -> Option<Solution> {
        let problem = self.task.problem;
        let mut best: Option<(i64, i64, Solution)> = None;
        for slack in SLACKS {
            let bins = self.nodes(rows, left, slack)?;
            let choice = i64::try_from(bins.len().min(TABLE_SEATS)).unwrap_or(i64::MAX);
            let work = left.iter().sum::<i64>() * choice;
            let solution = self.deal(rows, left, &bins, ledger);
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

    /// Bins that together have a little more than what is wanted for the least money: whole ones of the
    /// fractional optimum, then whatever covers the rest.
    fn nodes(&self, rows: &[usize], left: &[i64], slack: f64) -> Option<Vec<usize>> {
        let problem = self.task.problem;
        // Resources, and as many nodes as the node rules ask for.
        let dims = problem.rows[rows[0]].request.len() + 1;
        let mut wanted = vec![0.0; dims];
        for row in rows {
            let each = wanted.iter_mut().zip(&problem.rows[*row].request);
            each.for_each(|(sum, need)| *sum += float(*need) * float(left[*row]) * (1.0 + slack));
        }
        let pods = rows.iter().map(|row| (problem.rows[*row].shape, left[*row]));
        wanted[dims - 1] = float(problem.rules.nodes_min(pods));
        let mut nodes = Vec::new();
        // Each round covers at least half of what the one before left.
        for _ in 0..12 {
            let shares: Vec<f64> = wanted.iter().map(|w| w.max(1e-9)).collect();
            let mut cover = Cover::new(&vec![1.0; dims], &vec![1e15; dims], &[]);
            for shelf in &self.shelves {
                let bin = &problem.bins[shelf.bin];
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
                let bin = self.shelves[at].bin;
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

    fn deal(&self, rows: &[usize], left: &[i64], bins: &[usize], ledger: &Ledger) -> Solution {
        let problem = self.task.problem;
        let tables = bins.len().div_ceil(TABLE_SEATS).max(1);
        let mut seats: Vec<Vec<Seat>> = (0..tables)
            .map(|table| bins.iter().skip(table).step_by(tables).map(|b| self.seat(*b)).collect())
            .collect();
        let mut order = rows.to_vec();
        // What rules touch first, since room alone does not do for it; then the largest.
        let free = |row: &usize| problem.rules.is_free(problem.rows[*row].shape);
        let size = |row: &usize| self.task.values[*row];
        order
            .sort_by(|a, b| free(a).cmp(&free(b)).then(size(b).total_cmp(&size(a))).then(a.cmp(b)));
        let mut rest = left.to_vec();
        let mut next = 0;
        for row in &order {
            let count = usize::try_from(rest[*row]).unwrap_or(0);
            let (each, extra) = (count / tables, count % tables);
            for turn in 0..tables {
                let count = i64::try_from(each + usize::from(turn < extra)).unwrap_or(i64::MAX);
                rest[*row] -= self.serve(&mut seats[(next + turn) % tables], *row, count);
            }
            // Tables that got one pod more wait longest for the next.
            next = (next + extra) % tables;
        }
        // What found no room at its table is offered everywhere.
        let mut seats: Vec<Seat> = seats.into_iter().flatten().collect();
        for row in order.iter().filter(|row| left[**row] > 0) {
            rest[*row] -= self.serve(&mut seats, *row, rest[*row]);
        }
        let mut packed: Vec<Packed> = Vec::new();
        for mut seat in seats.into_iter().filter(|seat| !seat.load.is_empty()) {
            seat.load.sort_unstable();
            packed.push(Packed { bin: seat.bin, load: seat.load, copies: 1 });
        }
        let mut ledger = ledger.clone();
        ledger.charge_all(problem, &packed);
        let end = greedy::pack(self.task, rest, &mut ledger);
        packed.extend(end.packed);
        crate::pack::heuristics::tail::right_size(problem, &mut packed, &mut ledger);
        Solution { packed, left: end.left }
    }

    /// Deals pods of a row to some seats and says how many: each time to the seat with the most room of
    /// the kind that they take.
    fn serve(&self, seats: &mut [Seat], row: usize, count: i64) -> i64 {
        if count == 0 {
            return 0;
        }
        let spec = &self.task.problem.rows[row];
        let need = self.need(&spec.request);
        let suits = |(at, seat): (usize, &Seat)| Next { rank: seat.score(&need), at };
        let mut queue: BinaryHeap<Next> = seats.iter().enumerate().map(suits).collect();
        // Many equal pods are dealt a few at a time.
        let turns = 2 * i64::try_from(seats.len()).unwrap_or(1);
        let mut rest = count;
        while rest > 0 {
            let Some(Next { at, .. }) = queue.pop() else { break };
            let seat = &mut seats[at];
            let fit = vector::copies(&spec.request, &seat.room).min(self.allowance(seat, row));
            if fit <= 0 {
                // Nor later: pods only take room.
                continue;
            }
            let count = (rest / turns + 1).min(fit).min(rest);
            seat.take(row, &spec.request, count, &self.shelves[0].lanes);
            self.task.problem.rules.record(spec.shape, count, &mut seat.state);
            queue.push(suits((at, seat)));
            rest -= count;
        }
        count - rest
    }

    fn seat(&self, bin: usize) -> Seat {
        let problem = self.task.problem;
        let room = problem.bins[bin].room.clone();
        let state = problem.starts[problem.bins[bin].start].clone();
        let mut scale = Lanes::default();
        for (lane, dim) in self.shelves[0].lanes.iter().enumerate() {
            scale[lane] = 1.0 / float(room[*dim].max(1));
        }
        let free = scale.map(|by| f64::from(u8::from(by > 0.0)));
        Seat { bin, room, scale, free, state, load: Load::new() }
    }

    /// What one pod takes, in the resources that guide.
    fn need(&self, request: &[i64]) -> Lanes {
        let mut need = Lanes::default();
        for (lane, dim) in self.shelves[0].lanes.iter().enumerate() {
            need[lane] = float(request[*dim]);
        }
        need
    }

    /// Most pods of a row that the rules let a seat take.
    fn allowance(&self, seat: &Seat, row: usize) -> i64 {
        let problem = self.task.problem;
        let shape = problem.rows[row].shape;
        if problem.rules.is_free(shape) {
            return i64::MAX;
        }
        problem.rules.allowance(shape, &seat.state, false)
    }
}

impl Seat {
    /// How much is free of what a pod takes, each resource counted by how much of it the pod takes.
    fn score(&self, need: &Lanes) -> f64 {
        let (mut dot, mut size) = (0.0, 1e-12);
        for ((need, scale), free) in need.iter().zip(&self.scale).zip(&self.free) {
            dot += need * scale * free;
            size += need * scale;
        }
        dot / size
    }

    fn take(&mut self, row: usize, request: &[i64], count: i64, lanes: &[usize]) {
        vector::add(&mut self.room, request, -count);
        for (lane, dim) in lanes.iter().enumerate() {
            self.free[lane] -= float(request[*dim] * count) * self.scale[lane];
        }
        // Rows come one after the other, all but a few leftovers.
        match self.load.iter_mut().rev().find(|(known, _)| *known == row) {
            Some((_, sum)) => *sum += count,
            None => self.load.push((row, count)),
        }
    }
}
