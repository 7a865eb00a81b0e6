//! What a claim may turn into, and what of that is certain.
//!
//! Invariant: a room is what every possible outcome has, each without the DaemonSets that would run
//! on it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Model;
use crate::offers::candidates::{LaunchQuery, launch_candidates};
use crate::offers::market::{node_labels, owned_labels};
use crate::offers::objective::Objective;
use crate::planted;
use crate::vocabulary::catalogue::{Catalogue, InstanceType, Offering};
use crate::vocabulary::labels::{self, Labels};
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::requirements::requirement::Requirement;
use crate::vocabulary::resources::Resources;
use crate::world::claim::NodeClaim;

/// What is certain of a claim's room: before launch what every candidate has, without the
/// DaemonSets that would run on that one and not on all.
pub(super) fn room_of(
    model: &Model<'_>,
    claim: &NodeClaim,
    possible: &[(&InstanceType, &Offering)],
    offers: &Requirements,
) -> Resources {
    let known = !claim.allocatable.is_zero();
    let certain = |wanted: &Requirements| wanted.cover(offers);
    let open = |wanted: &Requirements| wanted.conflict_with_offer(offers).is_none();
    let open: Vec<usize> = model
        .daemons
        .iter()
        .copied()
        .filter(|daemon| {
            let alternatives = &model.alternatives[*daemon];
            !alternatives.iter().any(certain) && alternatives.iter().any(open)
        })
        .collect();
    let each = possible.iter().map(|(instance, offering)| {
        let own = if known { claim.allocatable.clone() } else { instance.allocatable() };
        let own = own.raised_to(&claim.requests);
        if open.is_empty() || planted::is("S16e") {
            return own;
        }
        let mut labels = claim.labels.clone();
        labels.extend(settled());
        labels.extend(owned_labels(instance, offering));
        let running = model.daemons_on(&labels, &claim.taints).filter(|at| open.contains(at));
        let running = running.map(|daemon| &model.shapes[daemon].requests);
        running.fold(own, |room, requests| room.minus(requests))
    });
    let least = each.reduce(|a, b| a.smaller(&b)).map(|least| least.at_least_zero());
    least.unwrap_or_else(|| claim.allocatable.raised_to(&claim.requests))
}

/// Labels that each node of ours will have once it may take pods.
pub(super) fn settled() -> Labels {
    if planted::is("S16d") {
        return Labels::new();
    }
    [labels::REGISTERED, labels::INITIALIZED].map(|key| (key.to_owned(), "true".to_owned())).into()
}

/// What a claim may turn into: what was launched, or every candidate it still has.
pub(super) fn possible<'c>(
    claim: &NodeClaim,
    catalogue: &'c Catalogue,
    objective: &Objective,
) -> Vec<(&'c InstanceType, &'c Offering)> {
    if let Some(instance) = claim.instance_type.as_ref().and_then(|n| catalogue.types.get(n)) {
        let zone = claim.zone.as_ref();
        let offering = instance.offerings.iter().find(|o| {
            zone.is_none_or(|zone| *zone == o.zone)
                && claim.capacity_type.is_none_or(|kind| kind == o.capacity_type)
                && claim.runs_in(o.reservation_id())
        });
        return offering.map(|offering| (instance, offering)).into_iter().collect();
    }
    let query = LaunchQuery {
        requirements: &claim.requirements,
        requests: &claim.requests,
        zones: None,
        max_price_micro_usd_per_hour: claim.max_price_micro_usd_per_hour,
        objective,
    };
    let candidates = launch_candidates(query, catalogue);
    candidates.iter().filter_map(|candidate| candidate.found(catalogue)).collect()
}

/// Narrows each label to the values that the possible outcomes share among them.
pub(super) fn narrow(offers: &mut Requirements, possible: &[(&InstanceType, &Offering)]) {
    let mut values: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for (instance, offering) in possible {
        for (key, value) in node_labels(instance, offering) {
            let (seen, set) = values.entry(key).or_default();
            *seen += 1;
            set.insert(value);
        }
    }
    for (key, (seen, set)) in values {
        if seen == possible.len() {
            offers.add(key, Requirement::one_of(set));
        }
    }
}
