//! Placing: classes onto existing nodes first, then onto new nodes, then once more without
//! preferences.
//!
//! Invariant: every wanted pod ends on an existing node, on a new node or among the unplaced,
//! exactly once.

pub(crate) mod buffers;
pub(crate) mod existing;
pub(crate) mod one_by_one;
pub(crate) mod priority;
pub(crate) mod repair;
pub(crate) mod retry;
pub(crate) mod sequence;
pub(crate) mod state;

use std::rc::Rc;

use crate::answer::steps::Counts;
use crate::model::Model;
use crate::offers::market::Offer;
use crate::offers::priced::PricedOffers;
use crate::offers::priced::min_values::{self, Share};
use crate::pack::problem::dominance::skylines;
use crate::pack::problem::{Bin, ItemClass, Packed, Problem, scarce};
use crate::pack::solve;
use crate::place::state::{OnExisting, PlanState};
use crate::question::Effort;
use crate::reason::Obstacle;
use crate::topology::affinity_cycles;
use crate::topology::preferences::Preferences;
use crate::topology::split_shapes::{Assigned, ClassSpec, Refused, TopologySplitter};

/// Where everything goes.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// Pods on existing nodes.
    pub(crate) existing_nodes: Vec<OnExisting>,
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
    pub(crate) assigned: Assigned,
    /// How many.
    pub(crate) count: i64,
}

impl Placed {
    /// Adds what was placed, and what was not, after this.
    pub(crate) fn add(&mut self, later: Self) {
        self.existing_nodes.extend(later.existing_nodes);
        self.nodes.extend(later.nodes);
        self.unplaced.extend(later.unplaced);
    }

    /// Pods without a place, by shape.
    pub(crate) fn left(&self, shapes: usize) -> Vec<i64> {
        let mut left = vec![0; shapes];
        self.unplaced.iter().for_each(|refused| left[refused.shape] += refused.count);
        left
    }

    /// Pods on new nodes, by shape.
    pub(crate) fn launched(&self, model: &Model<'_>) -> Vec<i64> {
        let mut launched = vec![0; model.shapes.len()];
        self.count_launched(&mut launched);
        launched
    }

    /// How many pods are where.
    pub(crate) fn counts(&self) -> Counts {
        let pods = |node: &Bought| node.load.iter().map(|(_, count)| count).sum::<i64>();
        Counts {
            on_existing: self.existing_nodes.iter().map(|there| there.count).sum(),
            on_new: self.nodes.iter().map(|node| pods(node) * node.copies).sum(),
            new_nodes: self.nodes.iter().map(|node| node.copies).sum(),
            unplaced: self.unplaced.iter().map(|refused| refused.count).sum(),
        }
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
    pub(crate) priced: &'g PricedOffers<'m, 'a>,
    /// How hard to try.
    pub(crate) effort: Effort,
    /// Whether nodes may be bought.
    pub(crate) buy: bool,
}

impl Placer<'_, '_, '_> {
    /// Places all that is wanted, priorities aside; these preferences are given up one kind after
    /// the other by pods that find no place.
    pub(crate) fn together(
        &self,
        state: &mut PlanState,
        wanted: &[i64],
        preferences: Preferences,
    ) -> Placed {
        let mut placed = Placed::default();
        self.add(state, wanted, preferences, &mut placed);
        placed
    }

    /// Places more, after what has been placed already.
    pub(crate) fn add(
        &self,
        state: &mut PlanState,
        wanted: &[i64],
        preferences: Preferences,
        placed: &mut Placed,
    ) {
        self.pass(state, wanted, preferences, placed);
        let mut given_up = preferences;
        while let Some(preferences) = given_up.next() {
            let mut again = vec![0; wanted.len()];
            placed.unplaced.retain(|refused| {
                let wished = given_up.any(self.model, refused.shape);
                again[refused.shape] += if wished { refused.count } else { 0 };
                !wished
            });
            if again.iter().any(|count| *count > 0) {
                self.pass(state, &again, preferences, placed);
            }
            given_up = preferences;
        }
    }

    fn pass(
        &self,
        state: &mut PlanState,
        wanted: &[i64],
        preferences: Preferences,
        placed: &mut Placed,
    ) {
        let Self { model, priced, buy, .. } = *self;
        let wanted = &without_cycles(model, state, wanted, placed);
        let PlanState { topology, rooms, open, .. } = state;
        let rooms = rooms.iter().zip(open).map(|(room, open)| open.then_some(room)).collect();
        let mut allotter = TopologySplitter {
            model,
            priced,
            topology,
            rooms,
            wanted,
            preferences,
            buy,
            may_begin: false,
        };
        let (mut classes, refused) = allotter.split_all();
        placed.unplaced.extend(refused);
        let offers = if self.buy { priced.all.as_slice() } else { &[] };
        let mut problem = self.problem(&classes, state, offers);
        self.fill_existing(state, &mut classes, &problem, placed);
        for (class, spec) in problem.classes.iter_mut().zip(&classes) {
            class.count = spec.count;
        }
        let left = self.buy_nodes(state, &mut problem, &classes, placed);
        for (class, count) in classes.iter().zip(left).filter(|(_, count)| *count > 0) {
            state.uncount(class.shape, &class.assigned, count);
            let company = model.topology.node_rules.needs_affinity(class.shape);
            let alone = Obstacle::lonely();
            let obstacle = if company { alone } else { Obstacle::NoPoolAdmits };
            placed.unplaced.push(Refused { shape: class.shape, count, obstacle });
        }
        repair::to_rules(model, priced, state, placed);
    }

    /// Buys nodes for what existing nodes have no room for, and returns how many pods of each class
    /// are left. Rows that together would leave `minValues` unmet are packed once more, each by
    /// itself.
    fn buy_nodes(
        &self,
        state: &mut PlanState,
        problem: &mut Problem,
        classes: &[ClassSpec],
        placed: &mut Placed,
    ) -> Vec<i64> {
        let (mut left, inflexible) = self.buy_all(state, problem, classes, placed);
        for class in (0..classes.len()).filter(|class| inflexible[*class] > 0) {
            let answers = self.priced.ask_all(classes[class].shape, &classes[class].alternatives);
            let counts = |offer| self.priced.admits(&answers, offer);
            self.keep_flexible(problem, &min_values::shares(self.priced, counts));
            problem.classes.iter_mut().for_each(|class| class.count = 0);
            problem.classes[class].count = inflexible[class];
            problem.limit_sets.clone_from(&state.limit_sets);
            let (rest, refused) = self.buy_all(state, problem, classes, placed);
            left[class] += rest[class] + refused[class];
        }
        left
    }

    /// Packs a problem and buys its nodes; returns what is left, and what would have lain on nodes
    /// for which too few types remained.
    fn buy_all(
        &self,
        state: &mut PlanState,
        problem: &Problem,
        classes: &[ClassSpec],
        placed: &mut Placed,
    ) -> (Vec<i64>, Vec<i64>) {
        let mut outcome = solve::solve(problem, self.effort, &state.occupied);
        let mut inflexible = vec![0; problem.classes.len()];
        for packed in &outcome.packed {
            let Some(bought) = self.bought(problem, classes, packed) else {
                packed.load.iter().for_each(|(class, n)| inflexible[*class] += n * packed.copies);
                outcome.limits_left.charge(&problem.bins[packed.bin], -packed.copies);
                continue;
            };
            placed.nodes.push(bought);
            for (class, _) in &packed.load {
                let shape = problem.classes[*class].shape;
                self.model.topology.node_rules.mark_begun(shape, &mut state.occupied);
            }
        }
        state.limit_sets = outcome.limits_left.limit_sets().to_vec();
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
        problem.scarce = scarce(&problem.bins, &problem.classes, &problem.limit_sets);
    }

    /// Bins of all offers, and for each group of them whether it admits each class.
    fn bins(&self, classes: &[ClassSpec], offers: &[Offer<'_>]) -> (Vec<Bin>, Vec<Vec<bool>>) {
        let Self { model, priced, .. } = *self;
        // Many classes ask the same of a node: each question is put to each offer once.
        let mut questions = indexmap::IndexMap::new();
        let ask = |class: &ClassSpec| {
            let answers = priced.ask_all(class.shape, &class.alternatives);
            let admits = |offer| priced.admits(&answers, offer);
            let closed = min_values::closed_to(priced, &model.requests[class.shape], admits);
            let same: Vec<_> = answers.iter().map(Rc::as_ptr).collect();
            questions.insert_full((same, closed), answers).0
        };
        let asked: Vec<usize> = classes.iter().map(ask).collect();
        let mut groups = indexmap::IndexSet::new();
        let bin = |(at, offer): (usize, &Offer<'_>)| {
            let all = questions.iter();
            let admits = all
                .map(|((_, shut), answers)| !shut[offer.pool_offers] && priced.admits(answers, at));
            let admits: Vec<bool> = admits.collect();
            let facts = &priced.facts[at];
            Bin {
                price: priced.cost(at),
                room: facts.room.clone(),
                group: groups.insert_full(admits).0,
                tier: model.market.pools[offer.pool_offers].tier,
                limit_set: offer.pool_offers,
                charge: facts.charge.clone(),
                reservation: facts.reservation,
                start: facts.start,
            }
        };
        let bins = offers.iter().enumerate().map(bin).collect();
        let by_row = |group: &Vec<bool>| asked.iter().map(|at| group[*at]).collect();
        (bins, groups.iter().map(by_row).collect())
    }

    pub(super) fn problem(
        &self,
        classes: &[ClassSpec],
        state: &PlanState,
        offers: &[Offer<'_>],
    ) -> Problem {
        let Self { model, priced, .. } = *self;
        let (bins, admits) = self.bins(classes, offers);
        let class = |spec: &ClassSpec| ItemClass {
            shape: spec.shape,
            request: model.requests[spec.shape].clone(),
            count: spec.count,
        };
        let classes: Vec<ItemClass> = classes.iter().map(class).collect();
        let mut problem = Problem {
            scarce: scarce(&bins, &classes, &state.limit_sets),
            classes,
            skyline: skylines(&bins, model.market.tiers),
            bins,
            admits,
            limit_sets: state.limit_sets.clone(),
            rules: model.topology.node_rules.clone(),
            starts: priced.starts.clone(),
        };
        self.keep_flexible(&mut problem, &priced.flexible);
        problem
    }

    /// The nodes as they are launched; none when too few types would remain for them.
    pub(super) fn bought(
        &self,
        problem: &Problem,
        classes: &[ClassSpec],
        packed: &Packed,
    ) -> Option<Bought> {
        let offers = crate::offers::substitutes::offers(self.priced, self.model, problem, packed)?;
        let shape = |class: usize| problem.classes[class].shape;
        let mut load: Vec<(usize, i64)> = Vec::new();
        for (class, count) in &packed.load {
            match load.iter_mut().find(|(known, _)| *known == shape(*class)) {
                Some((_, sum)) => *sum += count,
                None => load.push((shape(*class), *count)),
            }
        }
        load.sort_unstable();
        let counted = packed.load.iter().map(|(class, count)| Counted {
            shape: shape(*class),
            assigned: classes[*class].assigned.clone(),
            count: *count,
        });
        Some(Bought { offers, load, copies: packed.copies, counted: counted.collect() })
    }
}

/// What is wanted without pods that wait for each other; those are refused.
pub(super) fn without_cycles(
    model: &Model<'_>,
    state: &PlanState,
    wanted: &[i64],
    placed: &mut Placed,
) -> Vec<i64> {
    let without_offer =
        affinity_cycles::without_offer(model, &state.topology, wanted, &state.occupied);
    let mut rest = wanted.to_vec();
    for (shape, obstacle) in without_offer.into_iter().enumerate() {
        let Some(obstacle) = obstacle else { continue };
        let count = std::mem::take(&mut rest[shape]);
        placed.unplaced.push(Refused { shape, count, obstacle });
    }
    rest
}
