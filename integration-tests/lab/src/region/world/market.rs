//! What can be bought: remaining capacity per type, zone and market.
//!
//! Invariant: capacity without an entry is unlimited.

use std::collections::BTreeMap;

use super::super::offer::Offer;

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
