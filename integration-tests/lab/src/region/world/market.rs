//! What can be bought: remaining capacity and current prices per type, zone and market.
//!
//! Invariant: capacity without an entry is unlimited; prices without an entry are the catalogue's.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// One thing to buy: a type in a zone on a market.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offer {
    /// Type name.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// True for spot, false for on-demand.
    pub spot: bool,
}

impl Offer {
    /// An offer by its parts.
    pub fn new(instance_type: &str, zone: &str, spot: bool) -> Offer {
        Offer { instance_type: instance_type.to_owned(), zone: zone.to_owned(), spot }
    }
}

/// A spot price that began at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceChange {
    /// When it began.
    pub at: Timestamp,
    /// Type name.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// Price from then on.
    pub micro_usd_per_hour: u64,
}

/// Capacity left and price movements.
#[derive(Clone, Debug, Default)]
pub struct Market {
    capacity: BTreeMap<Offer, u32>,
    on_demand: BTreeMap<String, u64>,
    changes: Vec<PriceChange>,
}

impl Market {
    /// Instances that can still be launched; `None` is unlimited.
    pub fn capacity(&self, offer: &Offer) -> Option<u32> {
        self.capacity.get(offer).copied()
    }

    /// Sets what can still be launched; 0 answers `InsufficientInstanceCapacity`.
    pub fn set_capacity(&mut self, offer: Offer, instances: Option<u32>) {
        match instances {
            Some(instances) => self.capacity.insert(offer, instances),
            None => self.capacity.remove(&offer),
        };
    }

    /// Takes one instance out of the capacity.
    pub fn take(&mut self, offer: &Offer) {
        if let Some(left) = self.capacity.get_mut(offer) {
            *left = left.saturating_sub(1);
        }
    }

    /// Returns one instance to the capacity.
    pub fn give_back(&mut self, offer: &Offer) {
        if let Some(left) = self.capacity.get_mut(offer) {
            *left += 1;
        }
    }

    /// Sets an on-demand price.
    pub fn set_on_demand_price(&mut self, instance_type: &str, micro_usd_per_hour: u64) {
        self.on_demand.insert(instance_type.to_owned(), micro_usd_per_hour);
    }

    /// The on-demand price when it differs from the catalogue's.
    pub fn on_demand_price(&self, instance_type: &str) -> Option<u64> {
        self.on_demand.get(instance_type).copied()
    }

    /// Records a new spot price.
    pub fn change_spot_price(&mut self, change: PriceChange) {
        self.changes.push(change);
    }

    /// The newest spot price when it differs from the catalogue's.
    pub fn spot_price(&self, instance_type: &str, zone: &str) -> Option<u64> {
        self.changes_of(instance_type, zone).last().map(|change| change.micro_usd_per_hour)
    }

    /// Changes of one spot price, oldest first.
    pub fn changes_of(
        &self,
        instance_type: &str,
        zone: &str,
    ) -> impl Iterator<Item = &PriceChange> {
        self.changes
            .iter()
            .filter(move |change| change.instance_type == instance_type && change.zone == zone)
    }
}
