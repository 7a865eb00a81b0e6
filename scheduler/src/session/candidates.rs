//! From a claim to the launch it needs: which offerings may be bought for it now.
//!
//! Invariant: computed from the claim alone, never from the plan that made it, so that any
//! scheduler can go on after another. Nothing above the claim's price ceiling is ever offered;
//! prices are those that the plan saw, overlays included, and whoever buys looks at their order
//! only.

use longshore_core::catalogue::Catalogue;
use longshore_core::offers::{LaunchQuery, Objective, launch_candidates};
use longshore_proto::cluster::v1::RecordLaunchFailure;
use longshore_proto::limits::CANDIDATES_MAX;
use longshore_proto::types::v1;

use super::supply;
use crate::region::RegionState;
use crate::wire;

const _: () = assert!(
    longshore_core::offers::CANDIDATES_MAX <= CANDIDATES_MAX,
    "an actuator takes every list of candidates that a plan makes"
);

/// What to do about a claim that has no instance.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Nothing yet: its node class is not ready.
    Wait,
    /// Launch this.
    Launch(Box<v1::Launch>),
    /// Nothing can be bought for it.
    Impossible(RecordLaunchFailure),
}

/// What is on offer to the pool of a claim.
#[derive(Clone, Copy)]
pub struct Offered<'a> {
    /// The region.
    pub region: &'a RegionState,
    /// The pool's catalogue as overlays make it, when any touches it.
    pub overlaid: Option<&'a Catalogue>,
    /// What plans minimise.
    pub objective: &'a Objective,
}

/// The launch that `claim` needs.
#[must_use]
pub fn request(
    cluster_id: &str,
    claim: &v1::NodeClaim,
    class: Option<&v1::NodeClass>,
    offered: Offered<'_>,
) -> Request {
    let Offered { region, overlaid, objective } = offered;
    let supply = supply::of_class(cluster_id, &claim.node_class, class, region);
    let own = region.catalogues.get(&supply.catalogue).map(AsRef::as_ref);
    let catalogue = own.map(|own| overlaid.unwrap_or(own));
    let (Some(class), Some(catalogue), None) = (class, catalogue, supply.not_ready) else {
        return Request::Wait;
    };
    let read = match wire::node::claim(claim) {
        Ok(read) => read,
        Err(error) => return impossible(claim, "INVALID_CLAIM", error.to_string()),
    };
    let zones = supply.zones.map(|zones| zones.iter().map(|zone| zone.as_str().into()).collect());
    let ceiling = claim.max_price_micro_usd_per_hour;
    let query = LaunchQuery {
        requirements: &read.requirements,
        requests: &read.requests,
        zones: zones.as_ref(),
        max_price_micro_usd_per_hour: (ceiling > 0).then_some(ceiling),
        objective,
    };
    let candidates = launch_candidates(query, catalogue);
    if candidates.is_empty() {
        let message = "nothing that the claim allows can be bought now: every instance type is sold \
                       out, too small or above the price ceiling; allow more types or zones";
        return impossible(claim, "INSUFFICIENT_CAPACITY", message.to_owned());
    }
    Request::Launch(Box::new(v1::Launch {
        launch_id: claim.launch_id.clone(),
        claim: claim.name.clone(),
        pool: claim.pool.clone(),
        node_class: claim.node_class.clone(),
        node_class_hash: class.hash.clone(),
        candidates: candidates.iter().map(wire::plan::candidate).collect(),
        requests: claim.requests.clone(),
        labels: claim.labels.clone(),
        taints: claim.taints.clone(),
        startup_taints: claim.startup_taints.clone(),
        traceparent: claim.traceparent.clone(),
    }))
}

fn impossible(claim: &v1::NodeClaim, reason: &str, message: String) -> Request {
    Request::Impossible(RecordLaunchFailure {
        claim: claim.name.clone(),
        reason: reason.to_owned(),
        message,
        delete: true,
    })
}
