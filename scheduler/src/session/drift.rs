//! Drift: which nodes are no longer what their pool and node class ask for, and why.
//!
//! Reasons, their names and their order are Karpenter's.
//!
//! Invariant: only what is known is drift. What cannot be told at present stays as it was said
//! last: a node class that is being resolved, an instance that has not been listed, a node that
//! counts as made from nothing.

use std::collections::BTreeSet;

use longshore_core::labels;
use longshore_core::requirements::Requirements;
use longshore_proto::capacity::v1::{InstanceState, NodeClassResolution};
use longshore_proto::cluster::v1::{Condition, NoteDrift, SetNodeClassStatus};
use longshore_proto::types::v1::{CapacityType, NodeClaim, NodeClass, NodePool};

use crate::wire::requirement;

/// The condition of a claim that says so.
const DRIFTED: &str = "Drifted";
/// Reason of the condition while it is false.
const NOT_DRIFTED: &str = "NotDrifted";
/// The pool's template is another than the node was made from.
const POOL: &str = "NodePoolDrifted";
/// The node is not what the pool's requirements ask for.
const REQUIREMENTS: &str = "RequirementsDrifted";
/// The node class is another than the node was made from.
const CLASS: &str = "NodeClassDrift";
/// The image is none that the node class selects.
const IMAGE: &str = "AMIDrift";
/// The security groups are not those that the node class selects.
const GROUPS: &str = "SecurityGroupDrift";
/// The subnet is none that the node class selects.
const SUBNET: &str = "SubnetDrift";
/// The capacity reservation is none that the node class selects.
const RESERVATION: &str = "CapacityReservationDrift";
/// Condition of a node class whose reservations have been looked up.
const RESERVATIONS_READY: &str = "CapacityReservationsReady";

/// Why a node is no longer what is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Karpenter's name of the reason.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl Drift {
    fn new(reason: &str, message: String) -> Self {
        Self { reason: reason.to_owned(), message }
    }
}

/// What the nodes of a pool and class are measured by.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The pool.
    pub pool: &'a NodePool,
    /// The node class that a claim names; none when there is none of that name.
    pub class: Option<&'a NodeClass>,
    /// What the region has found for it.
    pub found: Option<&'a NodeClassResolution>,
}

impl Wanted<'_> {
    /// What a node that is made now counts as made from; empty while that is not known.
    #[must_use]
    pub fn hash(&self) -> String {
        let class = self.class.map_or("", |class| class.drift_hash.as_str());
        if self.pool.drift_hash.is_empty() || class.is_empty() {
            return String::new();
        }
        format!("{}/{class}", self.pool.drift_hash)
    }

    /// Why the node of a claim is not what is asked for; nothing when it is.
    #[must_use]
    pub fn drift_of(&self, claim: &NodeClaim, instance: Option<&InstanceState>) -> Option<Drift> {
        let said_last = |reasons: &[&str]| {
            let last = claim.drift_reason.as_str();
            reasons.contains(&last).then(|| Drift::new(last, String::new()))
        };
        let (of_pool, of_class) = claim.drift_hash.split_once('/').unwrap_or_default();
        let unmade = self.is_unmade(claim).then(|| said_last(&[POOL, CLASS])).flatten();
        let of_template = is_other(of_pool, &self.pool.drift_hash).then(|| {
            let name = &self.pool.name;
            let what = "labels, annotations, taints, node class or lifetime";
            Drift::new(POOL, format!("the template of pool {name} has changed since: {what}"))
        });
        let made = unmade.or(of_template).or_else(|| self.unmet(claim));
        let made = made.or_else(|| match self.class.filter(|class| !class.drift_hash.is_empty()) {
            None => said_last(&[CLASS]),
            Some(NodeClass { name, drift_hash, .. }) => is_other(of_class, drift_hash)
                .then(|| Drift::new(CLASS, format!("{name} has changed since the node was made"))),
        });
        let listed = instance.filter(|instance| !instance.subnet_id.is_empty());
        made.or_else(|| match self.in_date() {
            None => said_last(&[IMAGE, GROUPS, SUBNET, RESERVATION]),
            Some(found) => of_image(claim, instance, found).or_else(|| match listed {
                None => said_last(&[GROUPS, SUBNET, RESERVATION]),
                Some(listed) => {
                    of_network(claim, listed, found).or_else(|| match self.reservations(found) {
                        None => said_last(&[RESERVATION]),
                        Some(selected) => of_reservation(claim, listed, &selected),
                    })
                }
            }),
        })
    }

    /// True for a node that does not say what it was made from, or in the words of another version;
    /// while its class is not known, its pool alone tells.
    fn is_unmade(&self, claim: &NodeClaim) -> bool {
        let (pool, class) = claim.drift_hash.split_once('/').unwrap_or_default();
        let of_now = self.class.and_then(|class| version(&class.drift_hash));
        version(pool) != version(&self.pool.drift_hash)
            || of_now.is_some() && version(class) != of_now
    }

    /// The first requirement of the pool that the node does not meet.
    fn unmet(&self, claim: &NodeClaim) -> Option<Drift> {
        let wanted = requirement::requirements(&self.pool.requirements).ok()?;
        let mut has = Requirements::from_labels(&claim.labels);
        for (key, own) in requirement::requirements(&claim.requirements).ok()?.iter() {
            if has.get(key).is_none() {
                has.add(key, own.clone());
            }
        }
        let conflict = wanted.conflict_with_offer(&has)?;
        let (pool, key, wanted) = (&self.pool.name, &conflict.key, &conflict.wanted);
        let has = conflict.offered.map_or_else(|| "none".to_owned(), |offered| offered.to_string());
        let message = format!("pool {pool} asks for {key} {wanted}, and the node has {has}");
        Some(Drift::new(REQUIREMENTS, message))
    }

    /// What the region has found for the class as it stands.
    #[must_use]
    pub fn in_date(&self) -> Option<&SetNodeClassStatus> {
        let found = self.found.filter(|found| Some(&found.hash) == self.class.map(|c| &c.hash));
        found?.status.as_ref()
    }

    /// Reservations that the node class selects; nothing while it is not known what those are.
    /// Unlike other lists this one may be empty: a class need not select any, and reservations end.
    fn reservations<'a>(&self, found: &'a SetNodeClassStatus) -> Option<BTreeSet<&'a str>> {
        let selects = self.class.is_some_and(|it| !it.capacity_reservation_terms.is_empty());
        let met = |it: &Condition| it.r#type == RESERVATIONS_READY && it.status == Some(true);
        let is_known = !selects || found.conditions.iter().any(met);
        let selected = found.capacity_reservations.iter().map(|found| found.id.as_str());
        is_known.then(|| selected.collect())
    }
}

/// Version of a hash; none of text that is no hash.
fn version(hash: &str) -> Option<&str> {
    hash.split_once('-').map(|(version, _)| version)
}

/// True when two hashes of one version differ.
fn is_other(made: &str, wanted: &str) -> bool {
    made != wanted && version(made).is_some() && version(made) == version(wanted)
}

/// The image that an instance booted, when its node class selects others. A list of which nothing
/// was found says nothing.
fn of_image(
    claim: &NodeClaim,
    instance: Option<&InstanceState>,
    found: &SetNodeClassStatus,
) -> Option<Drift> {
    let seen = instance.map_or("", |instance| instance.image_id.as_str());
    let image = if claim.image_id.is_empty() { seen } else { &claim.image_id };
    let images: BTreeSet<&str> = found.images.iter().map(|image| image.id.as_str()).collect();
    // A launch template of the user's own names its image itself.
    let told = !image.is_empty() && !images.is_empty() && !images.contains("");
    let other = told && !images.contains(image);
    other.then(|| not_selected(IMAGE, claim, &BTreeSet::from([image]), &images))
}

/// Security groups and subnet of an instance, when its node class selects others.
fn of_network(
    claim: &NodeClaim,
    instance: &InstanceState,
    found: &SetNodeClassStatus,
) -> Option<Drift> {
    let groups: BTreeSet<&str> = found.security_groups.iter().map(|it| it.id.as_str()).collect();
    let has: BTreeSet<&str> = instance.security_group_ids.iter().map(String::as_str).collect();
    if !has.is_empty() && !groups.is_empty() && has != groups {
        return Some(not_selected(GROUPS, claim, &has, &groups));
    }
    let subnets: BTreeSet<&str> = found.subnets.iter().map(|subnet| subnet.id.as_str()).collect();
    let subnet = instance.subnet_id.as_str();
    let other = !subnets.is_empty() && !subnets.contains(subnet);
    other.then(|| not_selected(SUBNET, claim, &BTreeSet::from([subnet]), &subnets))
}

/// The reservation that an instance runs in, when its node class selects others. One that runs on
/// demand by now, as when its reservation was cancelled, is in none, whatever its labels say.
fn of_reservation(
    claim: &NodeClaim,
    instance: &InstanceState,
    selected: &BTreeSet<&str>,
) -> Option<Drift> {
    if instance.capacity_type() != CapacityType::Reserved {
        return None;
    }
    let labelled = claim.labels.get(labels::RESERVATION_ID).map_or("", String::as_str);
    let seen = instance.reservation_id.as_str();
    let id = if seen.is_empty() { labelled } else { seen };
    let other = !id.is_empty() && !selected.contains(id);
    other.then(|| {
        let class = &claim.node_class;
        let message = format!(
            "the node runs in capacity reservation {id}, which {class} does not select or which \
             is no longer active; select it in capacityReservationSelectorTerms to keep the node"
        );
        Drift::new(RESERVATION, message)
    })
}

fn not_selected(
    reason: &str,
    claim: &NodeClaim,
    has: &BTreeSet<&str>,
    selected: &BTreeSet<&str>,
) -> Drift {
    let list = |ids: &BTreeSet<&str>| ids.iter().copied().collect::<Vec<_>>().join(", ");
    let (class, selected, has) = (&claim.node_class, list(selected), list(has));
    Drift::new(reason, format!("{class} selects {selected}; the node has {has}"))
}

/// What is to be written on a claim: what it counts as made from, and whether it has drifted.
/// Nothing when it says so already.
#[must_use]
pub fn note(wanted: Wanted<'_>, claim: &NodeClaim, drift: Option<&Drift>) -> Option<NoteDrift> {
    let adopts = drift.is_none() && wanted.is_unmade(claim);
    let drift_hash = if adopts { wanted.hash() } else { String::new() };
    let reason = drift.map_or("", |drift| drift.reason.as_str());
    let drifted = (reason != claim.drift_reason).then(|| Condition {
        r#type: DRIFTED.to_owned(),
        status: Some(drift.is_some()),
        reason: drift.map_or(NOT_DRIFTED, |drift| &drift.reason).to_owned(),
        message: drift.map_or("", |drift| &drift.message).to_owned(),
    });
    let says = !drift_hash.is_empty() || drifted.is_some();
    says.then(|| NoteDrift { claim: claim.name.clone(), drift_hash, drifted })
}

#[cfg(test)]
mod tests;
