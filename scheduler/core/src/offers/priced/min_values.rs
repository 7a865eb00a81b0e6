//! Flexibility: keeping as many values of a label open for a launch as `minValues` asks for.
//!
//! Invariant: what fits a share fits enough offers of other values besides, so under the strict
//! policy a node is never filled until too few types can still carry it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::offers::priced::PricedOffers;
use crate::pack::problem::vector::{self, Vector, float};
use crate::question::MinValuesPolicy;
use crate::reason::Obstacle;
use crate::vocabulary::requirements::Requirements;

/// What may be used of an offer so that others remain possible in its place.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// What pods may use; nothing when too few offers are alike.
    pub(crate) room: Vector,
    /// What limits must allow: the most that any of them draws.
    pub(crate) charge: Vector,
}

/// Keys with the number of values that requirements ask to keep open, where that is more than one.
pub(crate) fn demands(requirements: &Requirements) -> impl Iterator<Item = (&str, usize)> {
    let least = requirements.iter().filter_map(|(key, wanted)| Some((key, wanted.min_values?)));
    let least = least.map(|(key, least)| (key, usize::try_from(least).unwrap_or(usize::MAX)));
    least.filter(|(_, least)| *least > 1)
}

/// Demands of the pool that an offer belongs to; none unless the policy is strict.
fn demands_of<'g>(priced: &'g PricedOffers<'_, '_>, pool_offers: usize) -> Vec<(&'g str, usize)> {
    match priced.model().input.min_values {
        MinValuesPolicy::Strict => {
            demands(&priced.model().market.pools[pool_offers].requirements).collect()
        }
        MinValuesPolicy::BestEffort => Vec::new(),
    }
}

/// The share of each offer whose pool asks for flexibility, among the offers that `counts` lets
/// stand in.
pub(crate) fn shares(
    priced: &PricedOffers<'_, '_>,
    counts: impl Fn(usize) -> bool,
) -> Vec<Option<Rc<Share>>> {
    let mut shares = vec![None; priced.all.len()];
    let mut alike: BTreeMap<(usize, usize, usize), Vec<usize>> = BTreeMap::new();
    for (at, offer) in priced.all.iter().enumerate() {
        if !demands_of(priced, offer.pool_offers).is_empty() {
            let like = (offer.pool_offers, offer.flavour, priced.facts[at].start);
            alike.entry(like).or_default().push(at);
        }
    }
    for ((pool_offers, ..), offers) in alike {
        let demands = demands_of(priced, pool_offers);
        let others = demands.iter().map(|(key, least)| Others {
            key,
            least: *least,
            offers: distinct(priced, offers.iter().copied().filter(|at| counts(*at)), key),
        });
        let others: Vec<Others<'_>> = others.collect();
        let mut known: BTreeMap<(&Vector, Vec<Option<&str>>), Rc<Share>> = BTreeMap::new();
        for at in offers {
            let values = demands.iter().map(|(key, _)| priced.label(at, key)).collect();
            let share = known.entry((&priced.facts[at].room, values));
            let share = share.or_insert_with(|| Rc::new(share_of(priced, at, &others)));
            shares[at] = Some(Rc::clone(share));
        }
    }
    shares
}

/// Offers that can stand in for others as far as one demand is concerned.
struct Others<'g> {
    key: &'g str,
    least: usize,
    /// One offer for each value and room.
    offers: Vec<(&'g str, usize)>,
}

/// One offer for each value of a label and each room. Those of reservations stand in for nothing.
fn distinct<'g>(
    priced: &'g PricedOffers<'_, '_>,
    offers: impl Iterator<Item = usize>,
    key: &str,
) -> Vec<(&'g str, usize)> {
    let mut known: BTreeMap<(&str, &Vector), usize> = BTreeMap::new();
    for at in offers.filter(|at| priced.facts[*at].reservation.is_none()) {
        if let Some(value) = priced.label(at, key) {
            known.entry((value, &priced.facts[at].room)).or_insert(at);
        }
    }
    known.into_iter().map(|((value, _), at)| (value, at)).collect()
}

fn share_of(priced: &PricedOffers<'_, '_>, at: usize, others: &[Others<'_>]) -> Share {
    let facts = &priced.facts[at];
    let mut share = Share { room: facts.room.clone(), charge: facts.charge.clone() };
    for Others { key, least, offers } in others {
        // The offer of each value that leaves most of the room.
        let own = priced.label(at, key).map(|value| (value, (1.0, at)));
        let mut best: BTreeMap<&str, (f64, usize)> = own.into_iter().collect();
        for (value, other) in offers {
            let part = part(&facts.room, &priced.facts[*other].room);
            let known = best.entry(value).or_insert((part, *other));
            if part > known.0 {
                *known = (part, *other);
            }
        }
        let mut ranked: Vec<(f64, usize)> = best.into_values().collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        if ranked.len() < *least {
            share.room.fill(0);
            return share;
        }
        for (_, other) in ranked.into_iter().take(*least) {
            let other = &priced.facts[other];
            smaller(&mut share.room, &other.room);
            larger(&mut share.charge, &other.charge);
        }
    }
    share
}

/// A node planned on a reservation may become one without, never one of another reservation.
pub(crate) fn may_replace(priced: &PricedOffers<'_, '_>, other: usize, planned: usize) -> bool {
    let reservation = priced.facts[other].reservation;
    reservation.is_none() || reservation == priced.facts[planned].reservation
}

/// The part of a room that another one covers in its scarcest resource.
fn part(room: &[i64], other: &[i64]) -> f64 {
    let shares = room.iter().zip(other).filter(|(own, _)| **own > 0);
    shares.map(|(own, other)| float(*other.min(own)) / float(*own)).fold(1.0, f64::min)
}

fn smaller(room: &mut [i64], other: &[i64]) {
    room.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).min(*other));
}

fn larger(charge: &mut [i64], other: &[i64]) {
    charge.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

/// The demand of a pool that these offers of it cannot meet.
pub(crate) fn obstacle(
    priced: &PricedOffers<'_, '_>,
    pool_offers: usize,
    offers: impl Iterator<Item = usize> + Clone,
) -> Option<Obstacle> {
    demands_of(priced, pool_offers).into_iter().find_map(|(key, least)| {
        let mut values: BTreeSet<&str> = BTreeSet::new();
        let cheaper = offers.clone().any(|at| {
            values.extend(priced.label(at, key));
            values.len() >= least
        });
        (!cheaper).then(|| Obstacle::MinValues {
            key: key.to_owned(),
            wanted: u32::try_from(least).unwrap_or(u32::MAX),
            reachable: values.len(),
        })
    })
}

/// Pools that cannot keep enough open for a single pod with these answers.
pub(crate) fn closed_to(
    priced: &PricedOffers<'_, '_>,
    request: &[i64],
    admits: impl Fn(usize) -> bool,
) -> Vec<bool> {
    let pools = 0..priced.model().market.pools.len();
    let closed = |pool_offers: usize| {
        let holds = |at: &usize| {
            priced.all[*at].pool_offers == pool_offers
                && vector::fits(request, &priced.facts[*at].room)
                && admits(*at)
        };
        obstacle(priced, pool_offers, (0..priced.all.len()).filter(holds)).is_some()
    };
    pools.map(closed).collect()
}
