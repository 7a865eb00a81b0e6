//! Placing: rows onto hosts first, then onto new nodes, then once more without preferences.
//!
//! Invariant: every wanted pod ends on a host, on a new node or among the unplaced, exactly once.

pub(crate) mod buffers;
pub(crate) mod existing;
pub(crate) mod one_by_one;
pub(crate) mod priority;
pub(crate) mod repair;
pub(crate) mod retry;
pub(crate) mod sequence;
pub(crate) mod state;

use std::rc::Rc;

use crate::model::Model;
use crate::offers::market::Offer;
use crate::offers::priced::Goods;
use crate::offers::priced::min_values::{self, Share};
use crate::pack::problem::dominance::skylines;
use crate::pack::problem::{Bin, Packed, Problem, Row, scarce};
use crate::pack::solve;
use crate::place::state::{OnHost, Scene};
use crate::question::Effort;
use crate::reason::Obstacle;
use crate::topology::affinity_cycles;
use crate::topology::preferences::Wishes;
use crate::topology::split_shapes::{Allotter, Given, Refused, RowSpec};

/// Where everything goes.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// Pods on hosts.
    pub(crate) hosts: Vec<OnHost>,
    /// Nodes to buy.
    pub(crate) nodes: Vec<Bought>,
    /// Pods without a place.
    pub(crate) unplaced: Vec<Refused>,
}

/// Equal nodes to buy.
#[derive(Clone, Debug)]
pub(crate) struct Bought {
    /// Offers that can carry the load, cheapest first; the first is what the plan counts on.
    pub(crate) offers: Vec<usize>,
    /// Pods on each, by shape.
    pub(crate) load: Vec<(usize, i64)>,
    /// How many nodes.
    pub(crate) copies: i64,
    /// The pods on each by the domains that they have been counted in.
    pub(crate) counted: Vec<Counted>,
}

/// Pods of one shape that have been counted in the same domains.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    /// Their shape.
    pub(crate) shape: usize,
    /// The domains.
    pub(crate) given: Given,
    /// How many.
    pub(crate) count: i64,
}

impl Placed {
    /// Adds what was placed, and what was not, after this.
    pub(crate) fn add(&mut self, later: Self) {
        self.hosts.extend(later.hosts);
        self.nodes.extend(later.nodes);
        self.unplaced.extend(later.unplaced);
    }

    /// Pods without a place, by shape.
    pub(crate) fn left(&self, shapes: usize) -> Vec<i64> {
        let mut left = vec![0; shapes];
        self.unplaced.iter().for_each(|refused| left[refused.shape] += refused.count);
        left
    }

    /// Adds the pods on new nodes to counts by shape.
    pub(crate) fn count_launched(&self, launched: &mut [i64]) {
        for node in &self.nodes {
            for (shape, count) in &node.load {
                launched[*shape] += count * node.copies;
            }
        }
    }
}

/// Places a number of pods of each shape.
pub(crate) struct Placer<'g, 'm, 'a> {
    /// The world.
    pub(crate) model: &'m Model<'a>,
    /// What can be bought.
    pub(crate) goods: &'g Goods<'m, 'a>,
    /// How hard to try.
    pub(crate) effort: Effort,
    /// Whether nodes may be bought.
    pub(crate) buy: bool,
}

impl Placer<'_, '_, '_> {
    /// Places all that is wanted, priorities aside; these wishes are given up one kind after the other by
    /// pods that find no place.
    pub(crate) fn together(&self, scene: &mut Scene, wanted: &[i64], wishes: Wishes) -> Placed {
        let mut placed = Placed::default();
        self.add(scene, wanted, wishes, &mut placed);
        placed
    }

    /// Places more, after what has been placed already.
    pub(crate) fn add(
        &self,
        scene: &mut Scene,
        wanted: &[i64],
        wishes: Wishes,
        placed: &mut Placed,
    ) {
        self.pass(scene, wanted, wishes, placed);
        let mut given_up = wishes;
        while let Some(wishes) = given_up.next() {
            let mut again = vec![0; wanted.len()];
            placed.unplaced.retain(|refused| {
                let wished = given_up.any(self.model, refused.shape);
                again[refused.shape] += if wished { refused.count } else { 0 };
                !wished
            });
            if again.iter().any(|count| *count > 0) {
                self.pass(scene, &again, wishes, placed);
            }
            given_up = wishes;
        }
    }

    fn pass(&self, scene: &mut Scene, wanted: &[i64], wishes: Wishes, placed: &mut Placed) {
        let Self { model, goods, buy, .. } = *self;
        let wanted = &without_circles(model, scene, wanted, placed);
        let Scene { topology, rooms, open, .. } = scene;
        let rooms = rooms.iter().zip(open).map(|(room, open)| open.then_some(room)).collect();
        let mut allotter =
            Allotter { model, goods, topology, rooms, wanted, wishes, buy, may_begin: false };
        let (mut rows, refused) = allotter.allot();
        placed.unplaced.extend(refused);
        let offers = if self.buy { goods.offers.as_slice() } else { &[] };
        let mut problem = self.problem(&rows, scene, offers);
        self.fill_hosts(scene, &mut rows, &problem, placed);
        for (row, spec) in problem.rows.iter_mut().zip(&rows) {
            row.count = spec.count;
        }
        let left = self.buy_nodes(scene, &mut problem, &rows, placed);
        for (row, count) in rows.iter().zip(left).filter(|(_, count)| *count > 0) {
            scene.uncount(row.shape, &row.given, count);
            let company = model.topology.node_rules.needs_company(row.shape);
            let alone = Obstacle::lonely();
            let obstacle = if company { alone } else { Obstacle::NoPoolAdmits };
            placed.unplaced.push(Refused { shape: row.shape, count, obstacle });
        }
        repair::to_rules(model, goods, scene, placed);
    }

    /// Buys nodes for what hosts have no room for, and returns how many pods of each row are left. Rows
    /// that together would leave `minValues` unmet are packed once more, each by itself.
    fn buy_nodes(
        &self,
        scene: &mut Scene,
        problem: &mut Problem,
        rows: &[RowSpec],
        placed: &mut Placed,
    ) -> Vec<i64> {
        let (mut left, inflexible) = self.buy_all(scene, (problem, rows), placed);
        for row in (0..rows.len()).filter(|row| inflexible[*row] > 0) {
            let answers = self.goods.ask_all(rows[row].shape, &rows[row].alternatives);
            let counts = |offer| self.goods.admits(&answers, offer);
            self.keep_flexible(problem, &min_values::shares(self.goods, counts));
            problem.rows.iter_mut().for_each(|row| row.count = 0);
            problem.rows[row].count = inflexible[row];
            problem.budgets.clone_from(&scene.budgets);
            let (rest, refused) = self.buy_all(scene, (problem, rows), placed);
            left[row] += rest[row] + refused[row];
        }
        left
    }

    /// Packs a problem and buys its nodes; returns what is left, and what would have lain on nodes for
    /// which too few types remained.
    fn buy_all(
        &self,
        scene: &mut Scene,
        (problem, rows): (&Problem, &[RowSpec]),
        placed: &mut Placed,
    ) -> (Vec<i64>, Vec<i64>) {
        let mut outcome = solve::solve(problem, self.effort, &scene.begun);
        let mut inflexible = vec![0; problem.rows.len()];
        for packed in &outcome.packed {
            let Some(bought) = self.bought((problem, rows), packed) else {
                packed.load.iter().for_each(|(row, n)| inflexible[*row] += n * packed.copies);
                outcome.ledger.charge(&problem.bins[packed.bin], -packed.copies);
                continue;
            };
            placed.nodes.push(bought);
            for (row, _) in &packed.load {
                let shape = problem.rows[*row].shape;
                self.model.topology.node_rules.mark_begun(shape, &mut scene.begun);
            }
        }
        scene.budgets = outcome.ledger.budgets().to_vec();
        (outcome.left, inflexible)
    }

    /// Makes bins no larger than `minValues` lets them be used.
    fn keep_flexible(&self, problem: &mut Problem, shares: &[Option<Rc<Share>>]) {
        if shares.iter().all(Option::is_none) || problem.bins.is_empty() {
            return;
        }
        for (bin, share) in problem.bins.iter_mut().zip(shares) {
            if let Some(share) = share {
                (bin.room, bin.charge) = (share.room.clone(), share.charge.clone());
            }
        }
        problem.skyline = skylines(&problem.bins, self.model.market.tiers);
        problem.scarce = scarce(&problem.bins, &problem.rows, &problem.budgets);
    }

    /// Bins of all offers, and for each group of them whether it admits each row.
    fn bins(&self, rows: &[RowSpec], offers: &[Offer<'_>]) -> (Vec<Bin>, Vec<Vec<bool>>) {
        let Self { model, goods, .. } = *self;
        // Many rows ask the same of a node: each question is put to each offer once.
        let mut questions = indexmap::IndexMap::new();
        let ask = |row: &RowSpec| {
            let answers = goods.ask_all(row.shape, &row.alternatives);
            let admits = |offer| goods.admits(&answers, offer);
            let closed = min_values::closed_to(goods, &model.requests[row.shape], admits);
            let same: Vec<_> = answers.iter().map(Rc::as_ptr).collect();
            questions.insert_full((same, closed), answers).0
        };
        let asked: Vec<usize> = rows.iter().map(ask).collect();
        let mut groups = indexmap::IndexSet::new();
        let bin = |(at, offer): (usize, &Offer<'_>)| {
            let all = questions.iter();
            let admits =
                all.map(|((_, shut), answers)| !shut[offer.stall] && goods.admits(answers, at));
            let admits: Vec<bool> = admits.collect();
            let facts = &goods.facts[at];
            Bin {
                price: goods.cost(at),
                room: facts.room.clone(),
                group: groups.insert_full(admits).0,
                tier: model.market.stalls[offer.stall].tier,
                budget: offer.stall,
                charge: facts.charge.clone(),
                reservation: facts.reservation,
                start: facts.start,
            }
        };
        let bins = offers.iter().enumerate().map(bin).collect();
        let by_row = |group: &Vec<bool>| asked.iter().map(|at| group[*at]).collect();
        (bins, groups.iter().map(by_row).collect())
    }

    pub(super) fn problem(&self, rows: &[RowSpec], scene: &Scene, offers: &[Offer<'_>]) -> Problem {
        let Self { model, goods, .. } = *self;
        let (bins, admits) = self.bins(rows, offers);
        let row = |spec: &RowSpec| Row {
            shape: spec.shape,
            request: model.requests[spec.shape].clone(),
            count: spec.count,
        };
        let rows: Vec<Row> = rows.iter().map(row).collect();
        let mut problem = Problem {
            scarce: scarce(&bins, &rows, &scene.budgets),
            rows,
            skyline: skylines(&bins, model.market.tiers),
            bins,
            admits,
            budgets: scene.budgets.clone(),
            rules: model.topology.node_rules.clone(),
            starts: goods.starts.clone(),
        };
        self.keep_flexible(&mut problem, &goods.flexible);
        problem
    }

    /// The nodes as they are launched; none when too few types would remain for them.
    pub(super) fn bought(
        &self,
        (problem, rows): (&Problem, &[RowSpec]),
        packed: &Packed,
    ) -> Option<Bought> {
        let offers = crate::offers::substitutes::offers(self.goods, self.model, problem, packed)?;
        let shape = |row: usize| problem.rows[row].shape;
        let mut load: Vec<(usize, i64)> = Vec::new();
        for (row, count) in &packed.load {
            match load.iter_mut().find(|(known, _)| *known == shape(*row)) {
                Some((_, sum)) => *sum += count,
                None => load.push((shape(*row), *count)),
            }
        }
        load.sort_unstable();
        let counted = packed.load.iter().map(|(row, count)| Counted {
            shape: shape(*row),
            given: rows[*row].given.clone(),
            count: *count,
        });
        Some(Bought { offers, load, copies: packed.copies, counted: counted.collect() })
    }
}

/// What is wanted without pods that wait for each other; those are refused.
pub(super) fn without_circles(
    model: &Model<'_>,
    scene: &Scene,
    wanted: &[i64],
    placed: &mut Placed,
) -> Vec<i64> {
    let hopeless = affinity_cycles::hopeless(model, &scene.topology, wanted, &scene.begun);
    let mut rest = wanted.to_vec();
    for (shape, obstacle) in hopeless.into_iter().enumerate() {
        let Some(obstacle) = obstacle else { continue };
        let count = std::mem::take(&mut rest[shape]);
        placed.unplaced.push(Refused { shape, count, obstacle });
    }
    rest
}
