//! What a node of a type and an offering will be labelled with, and whether that meets
//! requirements.
//!
//! Invariant: the one reading of the catalogue's labels. Planner, bound and check all use it: a
//! label that types or offerings decide and this one does not have is absent, whatever else may
//! have it.

use std::collections::{BTreeMap, BTreeSet};

use crate::planted;
use crate::vocabulary::catalogue::{Catalogue, InstanceType, Offering};
use crate::vocabulary::labels::{self, Labels};
use crate::vocabulary::requirements::Requirements;

/// Keys that an offering decides.
pub const OFFERING_KEYS: [&str; 9] = [
    labels::ZONE,
    labels::ZONE_ID,
    labels::CAPACITY_TYPE,
    labels::RESERVATION_ID,
    labels::RESERVATION_TYPE,
    labels::RESERVATION_INTERRUPTIBLE,
    labels::CAPACITY_HALF,
    labels::CAPACITY_QUARTER,
    labels::CAPACITY_EIGHTH,
];

/// Label that a type decides.
#[must_use]
pub fn type_label<'a>(instance: &'a InstanceType, key: &str) -> Option<&'a str> {
    match key {
        labels::INSTANCE_TYPE => Some(instance.name.as_str()),
        _ => instance.labels.get(key).map(String::as_str),
    }
}

/// Label that an offering decides.
#[must_use]
pub fn offering_label<'a>(offering: &'a Offering, key: &str) -> Option<&'a str> {
    match key {
        labels::ZONE => Some(offering.zone.as_str()),
        labels::ZONE_ID => Some(offering.zone_id.as_str()).filter(|id| !id.is_empty()),
        labels::CAPACITY_TYPE => Some(offering.capacity_type.label()),
        labels::RESERVATION_ID => offering.reservation_id().map(|id| id.as_str()),
        labels::RESERVATION_TYPE | labels::RESERVATION_INTERRUPTIBLE => {
            let said = labels::OF_RESERVATIONS.iter().find(|(known, _)| *known == key);
            offering.reservation.as_ref().and(said).map(|(_, value)| *value)
        }
        _ => offering.group.label(key),
    }
}

/// Label that a node of this type and offering carries.
#[must_use]
pub fn label<'a>(instance: &'a InstanceType, offering: &'a Offering, key: &str) -> Option<&'a str> {
    let offered = OFFERING_KEYS.contains(&key).then(|| offering_label(offering, key)).flatten();
    offered.or_else(|| type_label(instance, key))
}

/// Every label that a node of this type and offering carries, by key.
#[must_use]
pub fn node_labels<'a>(
    instance: &'a InstanceType,
    offering: &'a Offering,
) -> BTreeMap<&'a str, &'a str> {
    let mut all: BTreeMap<&str, &str> =
        instance.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    all.insert(labels::INSTANCE_TYPE, instance.name.as_str());
    for key in OFFERING_KEYS {
        if let Some(value) = offering_label(offering, key) {
            all.insert(key, value);
        }
    }
    all
}

/// The same as a node has them.
pub(crate) fn owned_labels(instance: &InstanceType, offering: &Offering) -> Labels {
    let labels = node_labels(instance, offering).into_iter();
    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Keys that types or offerings of a catalogue decide.
#[must_use]
pub fn decided(catalogue: &Catalogue) -> BTreeSet<&str> {
    let keys = catalogue.types.values().flat_map(|t| t.labels.keys().map(String::as_str));
    keys.chain(OFFERING_KEYS).chain([labels::INSTANCE_TYPE]).collect()
}

/// True when the requirements on labels that types or offerings decide are met by this type and
/// offering.
#[must_use]
pub fn meets(
    (instance, offering): (&InstanceType, &Offering),
    decided: &BTreeSet<&str>,
    wanted: &Requirements,
) -> bool {
    wanted.iter().filter(|(key, _)| decided.contains(key)).all(|(key, wanted)| {
        let offered = OFFERING_KEYS.contains(&key);
        let value = if offered { offering_label(offering, key) } else { type_label(instance, key) };
        wanted.allows(value) || planted::is("S16a") && value.is_none()
    })
}
