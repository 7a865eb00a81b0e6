//! What a replacement is weighed by.
//!
//! Invariant: what pays saves something even at the dearest offering that is left on each list. One
//! that buys nothing is held to what is asked of a node that is emptied onto others: it is the same
//! move.

use std::collections::{BTreeMap, BTreeSet};

use crate::disrupt::candidate::Candidate;
use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::offers::priced::min_values;
use crate::pack::problem::vector::float;
use crate::place::{Bought, Placed};
use crate::vocabulary::catalogue::CapacityType;
use crate::vocabulary::ids::PoolName;

/// A spot node is replaced by spot nodes when the launch may choose among this many types, so that
/// what is launched lies inside the list and is not replaced again at once; or else when that saves
/// half its cost, which cannot happen to the same pods many times over.
const SPOT_TYPES_MIN: usize = 15;
/// A replacement saves at least one part in so many of what goes. Less is not worth moving pods
/// for, however long they have rested: it would mostly be fees, and prices of spot change by more
/// within the hour.
const SAVING_SHARE: i64 = 50;

/// What is at stake in a pool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stakes {
    /// What its nodes cost, in micro-dollars per hour.
    pub(super) cost: f64,
    /// What moving all of their pods would cost, in pods of average standing.
    moves: f64,
}

impl Stakes {
    /// The part of what the pool costs that the pods of some of its nodes are of its pods, in
    /// micro-dollars per hour.
    pub(super) fn share(&self, nodes: &[&Candidate<'_>]) -> f64 {
        let moved: f64 = nodes.iter().map(|candidate| candidate.move_cost).sum();
        self.cost * moved / self.moves.max(1.0)
    }
}

/// What is at stake in each pool.
pub(super) fn stakes(model: &Model<'_>, all: &[Candidate<'_>]) -> BTreeMap<PoolName, Stakes> {
    let mut stakes: BTreeMap<PoolName, Stakes> = BTreeMap::new();
    for candidate in all {
        let of_pool = stakes.entry(candidate.pool.name.clone()).or_default();
        of_pool.cost += float(model.existing_nodes[candidate.existing].cost.unwrap_or(0));
        of_pool.moves += candidate.move_cost;
    }
    stakes
}

/// Nodes that may be replaced together.
pub(super) struct Exchange<'c, 'a> {
    /// Those that go.
    pub(super) gone: Vec<&'c Candidate<'a>>,
    /// Those of them that would be left without it: all, or fewer when others could be emptied onto
    /// these.
    pub(super) stay: Vec<&'c Candidate<'a>>,
    /// One that is left with it, and would be emptied without it.
    pub(super) kept: Option<&'c Candidate<'a>>,
}

impl<'c, 'a> Exchange<'c, 'a> {
    /// All would be left.
    pub(super) fn of(gone: Vec<&'c Candidate<'a>>) -> Self {
        Self { stay: gone.clone(), gone, kept: None }
    }

    /// True when some would go for nothing without it: pods come to new nodes then and to the one
    /// that is kept, which cost less than those that would be left.
    pub(super) fn empties(&self) -> bool {
        self.stay.len() < self.gone.len() + usize::from(self.kept.is_some())
    }
}

/// What a replacement is weighed by.
pub(super) struct Scales<'c, 'a> {
    /// What goes for it, and what would stay without it.
    pub(super) exchange: &'c Exchange<'c, 'a>,
    /// What those cost that would stay, in micro-dollars per hour.
    pub(super) cost: i64,
    /// What all that go cost, in micro-dollars per hour.
    pub(super) freed: i64,
    /// What the one costs that is kept, in micro-dollars per hour.
    pub(super) kept: i64,
    /// What is to be saved of that unless their pods have waited as long as any, in micro-dollars
    /// per hour.
    pub(super) least: f64,
    /// True when each of those that would stay may be emptied onto others.
    pub(super) may_empty: bool,
    /// True when it is one spot node that goes.
    pub(super) single_spot: bool,
}

impl Scales<'_, '_> {
    /// True when what would be bought is worth it: fewer nodes, or as many as it takes to save a
    /// half. Drops offers that would eat the saving.
    pub(super) fn pays(&self, priced: &PricedOffers<'_, '_>, placed: &mut Placed) -> bool {
        let nodes: i64 = placed.nodes.iter().map(|node| node.copies).sum();
        let bought = planned_cost(priced, placed);
        let left = bought + self.kept;
        let saving = self.cost - left;
        let halves = 2 * left <= self.cost;
        let fair = float(self.freed - bought) >= self.least;
        let Exchange { gone, stay, .. } = self.exchange;
        let fewer = usize::try_from(nodes).is_ok_and(|nodes| nodes < gone.len().max(2));
        (halves || fewer && !self.exchange.empties())
            && (nodes > 0 || self.may_empty)
            && saving.saturating_mul(SAVING_SHARE) >= self.cost
            && stay.iter().all(|candidate| self.has_paid(candidate, saving))
            && (fair || stay.iter().all(|candidate| candidate.has_paid_anything()))
            && keep_cheaper(priced, placed, self.cost - self.kept)
            && (!self.single_spot || halves || has_spot_choice(priced, placed))
    }

    /// Beside pods that are moved at once, those that have not been moved yet do not wait: they
    /// would be where the others came to, and none of them moved again for long.
    fn has_paid(&self, candidate: &Candidate<'_>, saving: i64) -> bool {
        candidate.has_paid(saving, self.cost)
            || (self.exchange.empties() && !candidate.has_been_moved())
    }
}

/// Existing nodes in place of which a node with the same load would be bought that costs no less.
pub(super) fn bought_again(
    priced: &PricedOffers<'_, '_>,
    placed: &Placed,
    model: &Model<'_>,
    gone: &[&Candidate<'_>],
) -> BTreeSet<usize> {
    let mut bought: Vec<(BTreeMap<usize, i64>, i64, i64)> = Vec::new();
    for node in &placed.nodes {
        let mut load = BTreeMap::new();
        node.load.iter().for_each(|(shape, count)| *load.entry(*shape).or_default() += count);
        bought.push((load, priced.cost(node.offers[0]), node.copies));
    }
    let mut again = BTreeSet::new();
    for candidate in gone {
        let Some(cost) = model.existing_nodes[candidate.existing].cost else { continue };
        let load = candidate.load();
        let same = bought
            .iter_mut()
            .find(|(other, price, left)| *left > 0 && *other == load && *price >= cost);
        if let Some((_, _, left)) = same {
            *left -= 1;
            again.insert(candidate.existing);
        }
    }
    again
}

/// What the replacement costs at its planned offers, in micro-dollars per hour.
fn planned_cost(priced: &PricedOffers<'_, '_>, placed: &Placed) -> i64 {
    placed.nodes.iter().map(|node| priced.cost(node.offers[0]) * node.copies).sum()
}

/// Drops offers that would eat the saving. Each node may exceed its planned cost by its share of
/// it. True when something is saved and what remains is as flexible as `minValues` asks for.
fn keep_cheaper(priced: &PricedOffers<'_, '_>, placed: &mut Placed, cost: i64) -> bool {
    let total = planned_cost(priced, placed);
    if total >= cost {
        return false;
    }
    for node in &mut placed.nodes {
        let share =
            i128::from(priced.cost(node.offers[0])) * i128::from(cost) / i128::from(total.max(1));
        let limit = i64::try_from(share).unwrap_or(i64::MAX);
        let first = node.offers[0];
        node.offers.retain(|offer| *offer == first || priced.cost(*offer) < limit);
    }
    let flexible = |node: &Bought| {
        let offers = node.offers.iter().copied();
        min_values::obstacle(priced, priced.all[node.offers[0]].pool_offers, offers).is_none()
    };
    placed.nodes.iter().all(flexible)
}

/// True when no node would be spot, or each may be one of enough types.
fn has_spot_choice(priced: &PricedOffers<'_, '_>, placed: &Placed) -> bool {
    placed.nodes.iter().all(|node| {
        let spot = |at: &&usize| priced.all[**at].offering.capacity_type == CapacityType::Spot;
        let types: BTreeSet<usize> =
            node.offers.iter().filter(spot).map(|at| priced.all[*at].kind).collect();
        types.is_empty() || types.len() >= SPOT_TYPES_MIN
    })
}
