//! What a claim, or an instance without one, draws on the limits of its pool.
//!
//! Invariant: the one reading of it, for the planner and for the check: hardware as the catalogue
//! states it, and for what is not launched yet the largest that it may still become, on sale now or
//! not.

use std::collections::BTreeMap;

use crate::vocabulary::catalogue::sold;
use crate::vocabulary::catalogue::{Catalogue, InstanceType};
use crate::vocabulary::ids::InstanceTypeName;
use crate::vocabulary::labels::INSTANCE_TYPE;
use crate::vocabulary::resources::{Resources, total};
use crate::world::claim::NodeClaim;
use crate::world::node::Node;

/// The hardware that a claim stands for, given its node when it has one and what its pool buys
/// from.
#[must_use]
pub fn drawn(claim: &NodeClaim, node: Option<&Node>, catalogue: Option<&Catalogue>) -> Resources {
    let label = || node.and_then(|node| node.labels.get(INSTANCE_TYPE)).map(String::as_str);
    let kind = claim.instance_type.as_ref().map(|kind| kind.as_str()).or_else(label);
    if let Some(known) = kind.zip(catalogue).and_then(|(kind, all)| all.types.get(kind)) {
        return known.capacity.clone();
    }
    match node {
        Some(node) if !node.capacity.is_zero() => node.capacity.clone(),
        Some(node) => node.allocatable.larger(&claim.allocatable).larger(&claim.requests),
        None if kind.is_some() => claim.allocatable.larger(&claim.requests),
        None => largest(claim, catalogue),
    }
}

/// What instances without a claim, so many of each type, draw on one limit.
#[must_use]
pub fn unclaimed(
    types: Option<&BTreeMap<InstanceTypeName, i64>>,
    catalogue: &Catalogue,
    limit: &str,
) -> i64 {
    let each = types.into_iter().flatten().map(|(kind, count)| match limit {
        "nodes" => *count,
        // A type that the region does not sell any more is not known either.
        name => catalogue.types.get(kind).map_or(0, |kind| kind.capacity.get(name) * count),
    });
    total(each)
}

/// The largest of each resource among what a claim may be launched as.
fn largest(claim: &NodeClaim, catalogue: Option<&Catalogue>) -> Resources {
    let Some(catalogue) = catalogue else { return claim.requests.clone() };
    let may_be = |kind: &&InstanceType| {
        claim.requests.fits_in(&kind.allocatable())
            && claim.requirements.iter().all(|(key, wanted)| {
                sold::type_label(kind, key).is_none_or(|value| wanted.allows(Some(value)))
            })
    };
    let types = catalogue.types.values().filter(may_be);
    types.fold(claim.requests.clone(), |most, kind| most.larger(&kind.capacity))
}
