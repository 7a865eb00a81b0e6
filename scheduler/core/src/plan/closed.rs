//! Pools that can make no node at all, whatever the pods, and why.
//!
//! Invariant: only what lasts closes a pool. What is sold out, or over a limit, may be free again at
//! any time and is told to the pods that it concerns.

use std::collections::BTreeMap;

use super::explain::no_type;
use super::market::{Market, Stall};
use super::types::PlanInput;
use crate::reason::Obstacle;
use crate::vocabulary::ids::PoolName;
use crate::vocabulary::requirements::Requirements;

/// The obstacle of every pool that can make no node.
#[must_use]
pub fn closed_pools(input: &PlanInput) -> BTreeMap<PoolName, Obstacle> {
    let market = Market::open(input, &[]);
    let named = |stall: &Stall<'_>| Some((stall.pool.name.clone(), obstacle(stall)?));
    market.stalls.iter().filter_map(named).collect()
}

fn obstacle(stall: &Stall<'_>) -> Option<Obstacle> {
    if let Some(closed) = stall.closed.as_ref().filter(|why| **why != Obstacle::FixedReplicas) {
        return Some(closed.clone());
    }
    if stall.types.is_empty() {
        return Some(no_type(stall, &Requirements::new()));
    }
    let mut offerings = stall.types.iter().flat_map(|instance| &instance.offerings);
    let none = Obstacle::NoOffering { types: stall.types.len() };
    (!offerings.any(|offering| stall.allows(offering))).then_some(none)
}
