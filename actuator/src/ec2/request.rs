//! What to ask EC2 for a launch: capacity type by capacity type, cheapest first.
//!
//! Invariant: pure. Every override comes from the plan's closed candidates; a subnet is the one in
//! the candidate's zone with the most free addresses; a client token never changes its meaning.

use std::collections::{BTreeMap, BTreeSet};

use longshore_ec2_data::InstanceType;
use longshore_proto::types::v1::{Candidate, CapacityType};

use crate::catalogue::{OfferingKey, Unavailable};
use crate::cloud::{
    Class, FleetOffer, Instance, TAG_BATCH, TAG_CLAIM, TAG_CLASS, TAG_CLUSTER, TAG_CLUSTER_NAME,
    TAG_LAUNCH, TAG_NAME, TAG_POOL,
};
use crate::ledger::{Failure, LaunchRecord};
use crate::nodeclass::{Resolved, short_name};

/// The next call for a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// How it is bought.
    pub capacity_type: CapacityType,
    /// Offers by what they are launched from, cheapest first.
    pub offers: BTreeMap<Source, Vec<FleetOffer>>,
}

/// What tells the launch templates of a launch from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Image.
    pub image_id: String,
    /// Capacity reservation; empty where it is for none.
    pub reservation_id: String,
}

/// What a call is made from.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    /// The node class.
    pub class: &'a Resolved,
    /// Types by name.
    pub types: &'a BTreeMap<String, InstanceType>,
    /// Offerings that were not to be had lately.
    pub closed: &'a Unavailable,
    /// Subnets that had no address left lately.
    pub full_subnets: &'a BTreeSet<String>,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

/// The next call, or why there is none.
///
/// A call whose answer is not known is made again for the same capacity type and with everything
/// the plan allows, since its token stands for that.
///
/// # Errors
/// When no candidate is left to ask for.
pub fn next_call(record: &LaunchRecord, basis: &Basis<'_>) -> Result<Call, Failure> {
    let candidates = record.launch.as_ref().map_or(&[][..], |launch| &launch.candidates);
    let capacity_types =
        if record.outcome_unknown() { vec![record.asked()] } else { untried(record, candidates) };
    for capacity_type in capacity_types {
        let offers = offers(record, candidates, capacity_type, basis);
        if !offers.is_empty() {
            return Ok(Call { capacity_type, offers });
        }
    }
    Err(exhausted(candidates))
}

/// Capacity types not asked for yet, in the order of their cheapest candidate.
fn untried(record: &LaunchRecord, candidates: &[Candidate]) -> Vec<CapacityType> {
    let mut order = Vec::new();
    for capacity_type in candidates.iter().map(Candidate::capacity_type) {
        let tried = record.refused.contains(&i32::from(capacity_type));
        if !tried && !order.contains(&capacity_type) {
            order.push(capacity_type);
        }
    }
    order
}

fn offers(
    record: &LaunchRecord,
    candidates: &[Candidate],
    capacity_type: CapacityType,
    basis: &Basis<'_>,
) -> BTreeMap<Source, Vec<FleetOffer>> {
    let mut offers: BTreeMap<Source, Vec<FleetOffer>> = BTreeMap::new();
    let wanted = candidates.iter().filter(|c| c.capacity_type() == capacity_type);
    // What is bought is told from its type and zone, so of two reservations the first counts.
    let mut seen = BTreeSet::new();
    let wanted = wanted.filter(|c| seen.insert((&c.instance_type, &c.zone)));
    for (candidate, rank) in wanted.zip(0..) {
        let key = OfferingKey::new(&candidate.instance_type, &candidate.zone, capacity_type);
        if !record.outcome_unknown() && basis.closed.is_closed(&key, basis.now_ms) {
            continue;
        }
        let image = basis
            .types
            .get(&candidate.instance_type)
            .and_then(|facts| basis.class.image_for(facts));
        let subnet = subnet_in(basis, &candidate.zone);
        if let (Some(image), Some(subnet_id)) = (image, subnet) {
            let (image_id, reservation_id) = (image.id.clone(), candidate.reservation_id.clone());
            let source = Source { image_id, reservation_id };
            offers.entry(source).or_default().push(FleetOffer {
                instance_type: candidate.instance_type.clone(),
                zone: candidate.zone.clone(),
                subnet_id,
                rank,
            });
        }
    }
    offers
}

/// The subnet of a zone with the most free addresses; a full one only when there is no other.
fn subnet_in(basis: &Basis<'_>, zone: &str) -> Option<String> {
    let in_zone = basis.class.subnets.iter().filter(|subnet| subnet.zone == zone);
    let best = in_zone.min_by_key(|subnet| {
        let full = basis.full_subnets.contains(&subnet.id);
        (full, std::cmp::Reverse(subnet.free_addresses))
    });
    best.map(|subnet| subnet.id.clone())
}

fn exhausted(candidates: &[Candidate]) -> Failure {
    let shown: BTreeSet<_> = candidates
        .iter()
        .map(|c| format!("{} {} {}", c.instance_type, c.zone, c.capacity_type().as_str_name()))
        .collect();
    let few: Vec<_> = shown.iter().take(3).cloned().collect();
    Failure {
        reason: Class::Capacity.reason().to_owned(),
        message: format!(
            "none of the {} offerings of the plan is to be had at present ({}{}); the next plan \
             takes others, and more types or zones in the NodePool make this rarer",
            shown.len(),
            few.join(", "),
            if shown.len() > few.len() { ", …" } else { "" }
        ),
        retryable: true,
    }
}

/// Tags of everything made for a class: the class's own first, ours win.
#[must_use]
pub fn class_tags(class: &Resolved, pool: &str) -> BTreeMap<String, String> {
    let name = &class.cluster.name;
    let ours = [
        (format!("kubernetes.io/cluster/{name}"), "owned".to_owned()),
        (TAG_CLUSTER_NAME.to_owned(), name.clone()),
        (TAG_POOL.to_owned(), pool.to_owned()),
        (TAG_CLASS.to_owned(), short_name(&class.class).to_owned()),
        (TAG_CLUSTER.to_owned(), class.cluster_id.clone()),
    ];
    class.class.tags.clone().into_iter().chain(ours).collect()
}

/// Tags of a launch's instance. `Name` is the claim's unless the class sets it.
#[must_use]
pub fn instance_tags(class: &Resolved, record: &LaunchRecord) -> BTreeMap<String, String> {
    let pool = record.launch.as_ref().map_or("", |launch| &launch.pool);
    let mut tags = class_tags(class, pool);
    tags.insert(TAG_CLAIM.to_owned(), record.claim().to_owned());
    tags.insert(TAG_LAUNCH.to_owned(), record.launch_id().to_owned());
    tags.entry(TAG_NAME.to_owned()).or_insert_with(|| record.claim().to_owned());
    tags
}

/// Tags of all instances of a call for several launches of a pool.
#[must_use]
pub fn batch_tags(class: &Resolved, pool: &str, batch_id: &str) -> BTreeMap<String, String> {
    let mut tags = class_tags(class, pool);
    tags.insert(TAG_BATCH.to_owned(), batch_id.to_owned());
    tags
}

/// Tags that an instance of such a call gets once it is known whose it is. `Name` is the claim's
/// unless it has one, from its class or from a person.
#[must_use]
pub fn launch_tags(instance: &Instance, record: &LaunchRecord) -> BTreeMap<String, String> {
    let claim = record.claim();
    let mut tags = BTreeMap::from([
        (TAG_LAUNCH.to_owned(), record.launch_id().to_owned()),
        (TAG_CLAIM.to_owned(), claim.to_owned()),
    ]);
    if instance.tag(TAG_NAME).is_empty() {
        tags.insert(TAG_NAME.to_owned(), claim.to_owned());
    }
    tags
}

#[cfg(test)]
mod tests;
