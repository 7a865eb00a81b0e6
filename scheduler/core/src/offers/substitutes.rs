//! Substitutes: what else may be bought for a planned node when the cheapest is sold out.
//!
//! Invariant: a substitute carries the same pods, satisfies the same rules, and draws no more on
//! any limit than the planned offer, so limits hold whatever the market gives.

use crate::model::Model;
use crate::offers::choice::{CANDIDATES_MAX, Choices};
use crate::offers::priced::PricedOffers;
use crate::offers::priced::min_values;
use crate::pack::problem::{Packed, Problem, vector};
use crate::question::MinValuesPolicy;

/// A substitute may cost at most this many times what the planned one does; beyond it, waiting for
/// the next plan, which knows what is sold out, is the better answer.
pub(crate) const COST_FACTOR_MAX: i64 = 2;

/// Offers for equal nodes, least cost first; the planned one is among them. None when `minValues`
/// cannot be kept and the policy is strict.
pub(crate) fn offers(
    priced: &PricedOffers<'_, '_>,
    model: &Model<'_>,
    problem: &Problem,
    packed: &Packed,
) -> Option<Vec<usize>> {
    let planned = &problem.bins[packed.bin];
    let weight = problem.weight(&packed.load);
    let here = &priced.all[packed.bin];
    let carries = |at: &usize| {
        let (offer, bin, facts) = (&priced.all[*at], &problem.bins[*at], &priced.facts[*at]);
        offer.pool_offers == here.pool_offers
            && offer.flavour == here.flavour
            && bin.start == planned.start
            && min_values::may_replace(priced, *at, packed.bin)
            && vector::fits(&weight, &facts.room)
            && facts.charge.iter().zip(&planned.charge).all(|(other, most)| other <= most)
            && packed.load.iter().all(|(class, _)| problem.admits[bin.group][*class])
    };
    let demands: Vec<_> =
        min_values::demands(&model.market.pools[here.pool_offers].requirements).collect();
    let most = planned.price.saturating_mul(COST_FACTOR_MAX);
    let fine = |at: &usize| priced.cost(*at) <= most;
    let all = priced.by_cost().iter().copied().filter(carries);
    // Where no demand asks for dearer ones, the first will do.
    let all: Vec<usize> = match demands.is_empty() {
        true => all.take_while(fine).take(CANDIDATES_MAX).collect(),
        false => all.collect(),
    };
    let label = |at: usize, key: &str| priced.label(at, key);
    let choices = Choices { all: &all, label, demands: &demands };
    let (chosen, met) = choices.choose(packed.bin, fine);
    if !met && model.input.min_values == MinValuesPolicy::Strict {
        return None;
    }
    let mut offers: Vec<usize> = chosen.into_iter().collect();
    offers.sort_unstable_by_key(|at| priced.rank(*at));
    Some(offers)
}
