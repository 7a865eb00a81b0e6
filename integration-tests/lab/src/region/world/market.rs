//! What can be bought: remaining capacity per type, zone and market.
//!
//! Invariant: capacity without an entry is unlimited.

use std::collections::BTreeMap;

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

/// EC2's name of a market.
pub const fn market_name(spot: bool) -> &'static str {
    if spot { "spot" } else { "on-demand" }
}

impl Offer {
    /// An offer by its parts.
    pub fn new(instance_type: &str, zone: &str, spot: bool) -> Offer {
        Offer { instance_type: instance_type.to_owned(), zone: zone.to_owned(), spot }
    }
}

/// Capacity left.
#[derive(Clone, Debug, Default)]
pub struct Market {
    capacity: BTreeMap<Offer, u32>,
}

impl Market {
    /// Instances that can still be launched; `None` is unlimited.
    pub fn capacity(&self, offer: &Offer) -> Option<u32> {
        self.capacity.get(offer).copied()
    }

    /// The offers that are limited, with what is left of each.
    pub fn limited(&self) -> impl Iterator<Item = (&Offer, u32)> {
        self.capacity.iter().map(|(offer, left)| (offer, *left))
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
}
