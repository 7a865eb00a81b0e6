//! What is sold, and what comes nearest to what is not.
//!
//! Invariant: pure; the words are for who gave an order that names something else.

use std::collections::BTreeSet;

use super::super::faults::LaunchFault;
use super::super::offer::{Offer, market_name};
use super::super::world::World;
use super::OrderError;

impl World {
    /// Everything that is sold, on both markets.
    pub(super) fn sold(&self) -> impl Iterator<Item = Offer> {
        self.types.values().flat_map(|facts| {
            facts.zones.iter().flat_map(|(zone, spot_price)| {
                let on_demand = Some(Offer::new(facts.name(), zone, false));
                let spot = spot_price.map(|_| Offer::new(facts.name(), zone, true));
                on_demand.into_iter().chain(spot)
            })
        })
    }

    pub(super) fn ensure_sold(&self, offer: &Offer) -> Result<(), OrderError> {
        let zones = self.types.get(&offer.instance_type).map(|facts| &facts.zones);
        let in_zone = zones.and_then(|zones| zones.get(&offer.zone));
        if in_zone.is_some_and(|spot_price| !offer.spot || spot_price.is_some()) {
            return Ok(());
        }
        Err(self.not_sold(&LaunchFault {
            instance_type: Some(offer.instance_type.clone()),
            zone: Some(offer.zone.clone()),
            spot: Some(offer.spot),
            code: String::new(),
            message: String::new(),
            remaining: None,
        }))
    }

    /// Where the type is sold, when there is such a type; what types there are like it otherwise.
    pub(super) fn not_sold(&self, wanted: &LaunchFault) -> OrderError {
        let parts = [
            wanted.instance_type.clone(),
            wanted.zone.clone(),
            wanted.spot.map(|spot| market_name(spot).to_owned()),
        ];
        let what = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let name = wanted.instance_type.as_deref().unwrap_or_default();
        let sold = match self.types.get(name) {
            Some(facts) => {
                let zone = |(zone, spot): (&String, &Option<u64>)| match spot {
                    Some(_) => format!("{zone} (on-demand, spot)"),
                    None => format!("{zone} (on-demand)"),
                };
                let zones: Vec<String> = facts.zones.iter().map(zone).collect();
                format!("{name} in {}", zones.join(", "))
            }
            None if name.is_empty() => self.zones_sold(),
            None => self.types_like(name),
        };
        OrderError::NotSold { what, sold }
    }

    fn zones_sold(&self) -> String {
        let zones = self.types.values().flat_map(|facts| facts.zones.keys());
        let zones: BTreeSet<&str> = zones.map(String::as_str).collect();
        format!("types in {}", zones.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// Types of the same family, or of which there is one of each family.
    fn types_like(&self, name: &str) -> String {
        let family = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let same = self.types.keys().filter(|known| family(known) == family(name));
        let same: Vec<&str> = same.map(String::as_str).collect();
        if !same.is_empty() {
            return same.join(", ");
        }
        let families: BTreeSet<String> = self.types.keys().map(|known| family(known)).collect();
        let families: Vec<String> = families.into_iter().collect();
        format!("types of the families {}", families.join(", "))
    }
}
