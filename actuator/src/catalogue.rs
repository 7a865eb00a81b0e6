//! The catalogue of a node class: which types its zones sell, what their nodes hold, and prices.
//!
//! Invariant: pure. A catalogue lists only what the class can launch: types with an image, zones
//! with a subnet; classes that amount to the same share one catalogue.

mod changes;
mod pricing;
mod settings;
mod unavailable;

use std::collections::{BTreeMap, BTreeSet};

use longshore_ec2_data::{InstanceType as Facts, NodeSettings, labels, overhead};
use longshore_proto::types::v1::{CapacityType, Catalogue, InstanceType, Offering, Resources};
use prost::Message;
use sha2::{Digest, Sha256};

use crate::cloud::{CapacityReservation, Listing};
use crate::nodeclass::Resolved;

pub use changes::offering_changes;
pub use pricing::{Price, Prices};
pub use settings::node_settings;
pub use unavailable::{CLOSED_MS, OfferingKey, Unavailable};

/// Hexadecimal digits of a catalogue id.
const ID_DIGITS: usize = 24;
/// The price on demand over the one that counts in a reservation: the dearest type of all counts
/// for less there than the cheapest on the spot market.
const PRICE_OVER_TRACE: i64 = 100_000;

/// What a region sells, and for how much.
#[derive(Clone, Debug, Default)]
pub struct MarketView {
    /// Types and zones.
    pub listing: Listing,
    /// Prices.
    pub prices: Prices,
}

/// The catalogue of a class.
#[must_use]
pub fn build(
    view: &MarketView,
    class: &Resolved,
    closed: &Unavailable,
    now_ms: i64,
    region: &str,
) -> Catalogue {
    let settings = node_settings(class);
    let zones = class.zones();
    let sold = sold_in(&view.listing, &zones);
    let types = view
        .listing
        .types
        .values()
        .filter(|facts| class.image_for(facts).is_some())
        .filter_map(|facts| {
            let zones_of_type = sold.get(&*facts.name)?;
            let sale = Sale { facts, zones: zones_of_type, zone_ids: &zones };
            let mut offerings = offerings(&sale, view, closed, now_ms);
            offerings.extend(reserved(&sale, view, class, |key| !closed.is_closed(key, now_ms)));
            (!offerings.is_empty()).then(|| instance_type(facts, &settings, offerings, region))
        })
        .collect();
    let mut catalogue = Catalogue { types, price_date: view.prices.date(), ..Catalogue::default() };
    catalogue.catalogue_id = content_id(&catalogue);
    catalogue
}

struct Sale<'a> {
    facts: &'a Facts,
    zones: &'a BTreeSet<&'a str>,
    zone_ids: &'a BTreeMap<&'a str, &'a str>,
}

impl Sale<'_> {
    fn zone_id(&self, zone: &str) -> String {
        self.zone_ids.get(zone).map_or(String::new(), |id| (*id).to_owned())
    }
}

/// Zones with a subnet that sell each type.
fn sold_in<'a>(
    listing: &'a Listing,
    zones: &BTreeMap<&str, &str>,
) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut sold: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for entry in listing.zones.iter().filter(|entry| zones.contains_key(entry.zone.as_str())) {
        sold.entry(&entry.instance_type).or_default().insert(&entry.zone);
    }
    sold
}

fn offerings(
    sale: &Sale<'_>,
    view: &MarketView,
    closed: &Unavailable,
    now_ms: i64,
) -> Vec<Offering> {
    let name = &*sale.facts.name;
    let mut found = Vec::with_capacity(sale.zones.len() * 2);
    for zone in sale.zones {
        let on_demand = view.prices.on_demand(name).map(|p| (CapacityType::OnDemand, p));
        let spot = view.prices.spot(name, zone).filter(|_| sale.facts.spot);
        let spot = spot.map(|price| (CapacityType::Spot, price));
        for (capacity_type, price) in on_demand.into_iter().chain(spot) {
            let key = OfferingKey::new(name, zone, capacity_type);
            found.push(Offering {
                zone: (*zone).to_owned(),
                zone_id: sale.zone_id(zone),
                capacity_type: capacity_type.into(),
                price_micro_usd_per_hour: price.micro_usd_per_hour,
                price_estimated: price.estimated,
                available: !closed.is_closed(&key, now_ms),
                ..Offering::default()
            });
        }
    }
    found
}

/// What there is of a type in the class's reservations. It is paid for, whether it is used or not;
/// the price is a trace of the one on demand, so that of two types the smaller is used.
fn reserved(
    sale: &Sale<'_>,
    view: &MarketView,
    class: &Resolved,
    is_open: impl Fn(&OfferingKey) -> bool,
) -> Vec<Offering> {
    let name = &*sale.facts.name;
    let here = class
        .reservations
        .iter()
        .filter(|found| found.instance_type == name && sale.zones.contains(found.zone.as_str()));
    let offering = |found: &CapacityReservation| Offering {
        zone: found.zone.clone(),
        zone_id: sale.zone_id(&found.zone),
        capacity_type: CapacityType::Reserved.into(),
        price_micro_usd_per_hour: view
            .prices
            .on_demand(name)
            .map_or(0, |price| price.micro_usd_per_hour / PRICE_OVER_TRACE)
            .max(1),
        available: is_open(&OfferingKey::new(name, &found.zone, CapacityType::Reserved)),
        reservation_id: found.id.clone(),
        reservation_count: found.available.max(0),
        ..Offering::default()
    };
    here.map(offering).collect()
}

fn instance_type(
    facts: &Facts,
    settings: &NodeSettings,
    offerings: Vec<Offering>,
    region: &str,
) -> InstanceType {
    let capacity = longshore_ec2_data::capacity(facts, settings);
    let kept = overhead(facts, settings).total();
    let mut labels: BTreeMap<_, _> =
        labels::of_type(facts).into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    labels.insert("kubernetes.io/os".to_owned(), "linux".to_owned());
    labels.insert("topology.kubernetes.io/region".to_owned(), region.to_owned());
    let extended = capacity.extended.iter().map(|(name, n)| ((*name).to_owned(), signed(*n)));
    InstanceType {
        name: facts.name.to_string(),
        labels,
        capacity: Some(Resources {
            cpu_millis: signed(capacity.cpu_millis),
            memory_bytes: signed(capacity.memory_bytes),
            ephemeral_storage_bytes: signed(capacity.ephemeral_storage_bytes),
            pods: signed(capacity.pods),
            extended: extended.collect(),
        }),
        overhead: Some(Resources {
            cpu_millis: signed(kept.cpu_millis),
            memory_bytes: signed(kept.memory_bytes),
            ephemeral_storage_bytes: signed(kept.ephemeral_storage_bytes),
            ..Resources::default()
        }),
        offerings,
    }
}

/// No machine has more than 2^63 of anything.
fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// Hash of everything but prices, availability and what is left in reservations.
fn content_id(catalogue: &Catalogue) -> String {
    let mut hash = Sha256::new();
    for found in &catalogue.types {
        let mut lasting = found.clone();
        for offering in &mut lasting.offerings {
            offering.price_micro_usd_per_hour = 0;
            offering.price_estimated = false;
            offering.available = false;
            offering.reservation_count = 0;
        }
        hash.update(lasting.encode_length_delimited_to_vec());
    }
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    digits.chars().take(ID_DIGITS).collect()
}

#[cfg(test)]
mod tests;
