//! Pools that can make no node at all, whatever the pods, and why.
//!
//! Invariant: only what lasts closes a pool. What is sold out, or over a limit, may be free again at
//! any time and is told to the pods that it concerns.

use std::collections::{BTreeMap, BTreeSet};

use crate::explain::near_miss::{no_offering, no_type};
use crate::offers::market::{Market, Stall};
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
    let named = |stall: &Stall<'_>| {
        let obstacle = obstacle(stall).or_else(|| inflexible(stall).filter(|_| strict))?;
        Some((stall.pool.name.clone(), obstacle))
    };
    market.stalls.iter().filter_map(named).collect()
}

/// What `minValues` asks for and all that the pool may buy does not have.
fn inflexible(stall: &Stall<'_>) -> Option<Obstacle> {
    min_values::demands(&stall.requirements).find_map(|(key, least)| {
        let mut values: BTreeSet<&str> = BTreeSet::new();
        for instance in &stall.types {
            for offering in instance.offerings.iter().filter(|offering| stall.allows(offering)) {
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

fn obstacle(stall: &Stall<'_>) -> Option<Obstacle> {
    if let Some(closed) = stall.closed.as_ref().filter(|why| **why != Obstacle::FixedReplicas) {
        return Some(closed.clone());
    }
    if stall.types.is_empty() {
        return Some(no_type(stall, &Requirements::new()));
    }
    let mut offerings = stall.types.iter().flat_map(|instance| &instance.offerings);
    let (nothing, all) = (Requirements::new(), stall.types.iter().copied());
    let none = || no_offering(stall, &nothing, stall.types.len(), all);
    (!offerings.any(|offering| stall.allows(offering))).then(none)
}
