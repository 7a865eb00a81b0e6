//! Pools that can make no node at all, whatever the pods, and why.
//!
//! Invariant: only what lasts closes a pool. What is sold out, or over a limit, may be free again
//! at any time and is told to the pods that it concerns.

use std::collections::{BTreeMap, BTreeSet};

use crate::explain::near_miss::{no_offering, no_type};
use crate::offers::market::{Market, PoolOffers};
use crate::offers::priced::min_values;
use crate::question::{MinValuesPolicy, PlanInput};
use crate::reason::Obstacle;
use crate::vocabulary::catalogue::sold;
use crate::vocabulary::ids::PoolName;
use crate::vocabulary::requirements::Requirements;

/// The obstacle of every pool that can make no node.
#[must_use]
pub fn closed_pools(input: &PlanInput) -> BTreeMap<PoolName, Obstacle> {
    let market = Market::open(input, &[]);
    let strict = input.min_values == MinValuesPolicy::Strict;
    let named = |pool_offers: &PoolOffers<'_>| {
        let obstacle =
            obstacle(pool_offers).or_else(|| inflexible(pool_offers).filter(|_| strict))?;
        Some((pool_offers.pool.name.clone(), obstacle))
    };
    market.pools.iter().filter_map(named).collect()
}

/// What `minValues` asks for and all that the pool may buy does not have.
fn inflexible(pool_offers: &PoolOffers<'_>) -> Option<Obstacle> {
    min_values::demands(&pool_offers.requirements).find_map(|(key, least)| {
        let mut values: BTreeSet<&str> = BTreeSet::new();
        for instance in &pool_offers.types {
            for offering in
                instance.offerings.iter().filter(|offering| pool_offers.allows(offering))
            {
                values.extend(sold::label(instance, offering, key));
            }
        }
        (values.len() < least).then(|| Obstacle::MinValues {
            key: key.to_owned(),
            wanted: u32::try_from(least).unwrap_or(u32::MAX),
            reachable: values.len(),
        })
    })
}

fn obstacle(pool_offers: &PoolOffers<'_>) -> Option<Obstacle> {
    if let Some(closed) = pool_offers.closed.as_ref().filter(|why| **why != Obstacle::FixedReplicas)
    {
        return Some(closed.clone());
    }
    if pool_offers.types.is_empty() {
        return Some(no_type(pool_offers, &Requirements::new()));
    }
    let mut offerings = pool_offers.types.iter().flat_map(|instance| &instance.offerings);
    let (nothing, all) = (Requirements::new(), pool_offers.types.iter().copied());
    let none = || no_offering(pool_offers, &nothing, pool_offers.types.len(), all);
    (!offerings.any(|offering| pool_offers.allows(offering))).then(none)
}
