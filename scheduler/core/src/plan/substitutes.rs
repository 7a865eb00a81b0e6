//! Substitutes: what else may be bought for a planned node when the cheapest is sold out.
//!
//! Invariant: a substitute carries the same pods, satisfies the same rules, and draws no more on any
//! limit than the planned offer, so limits hold whatever the market gives.

use std::collections::BTreeSet;

use super::candidates::CANDIDATES_MAX;
use super::goods::Goods;
use super::model::Model;
use crate::pack::problem::{Packed, Problem};
use crate::pack::vector;

/// A substitute may cost at most this many times the planned price; beyond it, waiting for the next
/// plan, which knows what is sold out, is the better answer.
pub(crate) const PRICE_FACTOR_MAX: i64 = 2;

/// Offers for equal nodes, cheapest first; the planned one is among them.
pub(crate) fn offers(
    goods: &Goods<'_, '_>,
    model: &Model<'_>,
    problem: &Problem,
    packed: &Packed,
) -> Vec<usize> {
    let planned = &problem.bins[packed.bin];
    let weight = problem.weight(&packed.load);
    let here = &goods.offers[packed.bin];
    let carries = |at: &usize| {
        let (offer, bin) = (&goods.offers[*at], &problem.bins[*at]);
        offer.stall == here.stall
            && offer.flavour == here.flavour
            && bin.start == planned.start
            && bin.reservation == planned.reservation
            && vector::fits(&weight, &bin.room)
            && bin.charge.iter().zip(&planned.charge).all(|(other, most)| other <= most)
            && packed.load.iter().all(|(row, _)| problem.admits[bin.group][*row])
    };
    let mut all: Vec<usize> = (0..goods.offers.len()).filter(carries).collect();
    all.sort_by_key(|at| order(goods, model, *at));
    let mut chosen = BTreeSet::from([packed.bin]);
    keep_min_values(goods, model, &all, &mut chosen);
    let most = planned.price.saturating_mul(PRICE_FACTOR_MAX);
    for at in all.iter().filter(|at| goods.price(**at) <= most) {
        if chosen.len() >= CANDIDATES_MAX {
            break;
        }
        chosen.insert(*at);
    }
    let mut offers: Vec<usize> = chosen.into_iter().collect();
    offers.sort_by_key(|at| order(goods, model, *at));
    offers
}

/// Price first, then names, so that equal offers have one order.
fn order<'g>(goods: &'g Goods<'_, '_>, model: &'g Model<'_>, at: usize) -> impl Ord + use<'g> {
    let offer = &goods.offers[at];
    let instance = model.market.stalls[offer.stall].types[offer.kind];
    (
        goods.price(at),
        instance.name.clone(),
        offer.offering.zone.clone(),
        offer.offering.capacity_type,
    )
}

/// Keeps enough distinct values open for each requirement with `minValues`, as far as there are any.
fn keep_min_values(
    goods: &Goods<'_, '_>,
    model: &Model<'_>,
    all: &[usize],
    chosen: &mut BTreeSet<usize>,
) {
    let Some(stall) = all.first().map(|at| goods.offers[*at].stall) else { return };
    for (key, requirement) in model.market.stalls[stall].pool.requirements.iter() {
        let Some(least) = requirement.min_values else { continue };
        let least = usize::try_from(least).unwrap_or(usize::MAX);
        let mut values: BTreeSet<&str> =
            chosen.iter().filter_map(|at| goods.label(*at, key)).collect();
        for at in all {
            if values.len() >= least || chosen.len() >= CANDIDATES_MAX {
                break;
            }
            if goods.label(*at, key).is_some_and(|value| values.insert(value)) {
                chosen.insert(*at);
            }
        }
    }
}
