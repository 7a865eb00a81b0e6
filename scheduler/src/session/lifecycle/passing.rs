//! States that must not last: which there are, and what is concluded when one lasts for long.
//!
//! Invariant: named here, measured by [`Sightings`]; a state that is not named in one pass begins
//! anew.

use std::collections::{BTreeMap, BTreeSet};

use longshore_proto::limits::DIRECTIVE_TTL_MS;
use longshore_proto::provider_id::instance_id;
use longshore_proto::types::v1::NodeClaim;

use super::presence::Presence;
use super::{World, orphans};
use crate::session::safety::NAMED;
use crate::session::sightings::Sightings;

/// A node that joined and is not ready for this long keeps no pods waiting any more, in
/// milliseconds.
const UNREADY_PATIENCE_MS: i64 = 5 * 60 * 1000;
/// An instance that the region does not list for this long is told of, in milliseconds.
pub(super) const UNKNOWN_PATIENCE_MS: i64 = 5 * 60 * 1000;
/// How long a claim's mark and its node's taint may say different things, in milliseconds: longer
/// than an order to the watcher lives.
pub(super) const ASTRAY_PATIENCE_MS: i64 = 30 * 1000;
const _: () = assert!(ASTRAY_PATIENCE_MS > DIRECTIVE_TTL_MS as i64);

/// States that must not last, for [`Sightings`] to measure; empty while the region is out of reach.
#[must_use]
pub fn passing(world: &World<'_>) -> BTreeSet<String> {
    if !world.region.synced {
        return BTreeSet::new();
    }
    let of_claims = world.claims.values().filter_map(|claim| world.passing_state(claim));
    let unknown = world.claims.values().filter(|claim| world.presence(claim) == Presence::Unknown);
    let unknown = unknown.map(|claim| format!("unknown/{}", claim.name));
    let astray = world.claims.values().filter(|claim| world.is_astray(claim));
    let astray = astray.map(|claim| format!("astray/{}", claim.name));
    let ailing = world.claims.values().filter(|claim| world.ailment(claim).is_some());
    let ailing = ailing.map(|claim| format!("ailing/{}", claim.name));
    let astray = astray.chain(ailing);
    of_claims.chain(unknown).chain(astray).chain(world.unclaimed().map(orphans::key)).collect()
}

/// Claims of whose instances nothing has been known for long: somebody should hear of it.
#[must_use]
pub fn unknown(
    claims: &BTreeMap<String, NodeClaim>,
    sightings: &Sightings,
    session_ms: i64,
) -> BTreeSet<String> {
    let late = |name: &str| sightings.lasted_ms(&format!("unknown/{name}"), session_ms);
    let names = claims.keys().filter(|name| late(name) > UNKNOWN_PATIENCE_MS);
    names.take(NAMED).cloned().collect()
}

/// Instances whose nodes have not been ready for too long to keep pods waiting for them.
#[must_use]
pub fn given_up(
    claims: &BTreeMap<String, NodeClaim>,
    sightings: &Sightings,
    session_ms: i64,
) -> BTreeSet<String> {
    let late = |name: &str| sightings.lasted_ms(&format!("unready/{name}"), session_ms);
    let starting = claims.values().filter(|claim| claim.initialize_time.is_none());
    let given_up = starting.filter(|claim| late(&claim.name) > UNREADY_PATIENCE_MS);
    given_up.map(|claim| instance_id(&claim.provider_id).to_owned()).collect()
}

impl World<'_> {
    /// True when one of claim and node is marked to go and the other is not: an order that failed
    /// half-way, or the taint of another autoscaler that has stopped.
    fn is_astray(&self, claim: &NodeClaim) -> bool {
        let in_service = !claim.deleting && claim.register_time.is_some();
        let marked = !claim.disruption_reason.is_empty();
        in_service && self.node(claim).is_some_and(|node| node.disrupted != marked)
    }

    /// The state of a claim that must not last, if it is in one.
    fn passing_state(&self, claim: &NodeClaim) -> Option<String> {
        let state = if claim.deleting {
            return None;
        } else if claim.provider_id.is_empty() {
            "launching"
        } else if !claim.disruption_reason.is_empty() {
            "disrupted"
        } else if claim.register_time.is_none() {
            "registering"
        } else if claim.initialize_time.is_none() && self.node(claim).is_some_and(|n| !n.ready) {
            "unready"
        } else {
            return None;
        };
        Some(format!("{state}/{}", claim.name))
    }
}
