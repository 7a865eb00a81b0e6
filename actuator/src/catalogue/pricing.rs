//! Prices: read from the region where it answers, embedded ones where it does not.
//!
//! Invariant: a price that is not a published one for this type and region says that it is
//! estimated; nothing is sold without a price.

use std::collections::BTreeMap;

use longshore_ec2_data::{Dataset, Region};
use longshore_proto::types::v1::CapacityType;

use crate::cloud::SpotPrice;

/// Region whose prices stand in for a region that the embedded data does not know.
const STAND_IN_REGION: &str = "us-east-1";

/// A price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Millionths of a US dollar for an hour.
    pub micro_usd_per_hour: i64,
    /// True when it is not a published one for this type and region.
    pub estimated: bool,
}

/// Prices of a region.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    embedded: Option<&'static Region>,
    stand_in: bool,
    date: String,
    on_demand: BTreeMap<String, i64>,
    spot: BTreeMap<String, BTreeMap<String, i64>>,
}

impl Prices {
    /// Embedded prices only.
    #[must_use]
    pub fn embedded(region: &str) -> Self {
        let Ok(facts) = Dataset::embedded() else { return Self::default() };
        let own = facts.region(region).ok();
        Self {
            embedded: own.or_else(|| facts.region(STAND_IN_REGION).ok()),
            stand_in: own.is_none(),
            date: facts.date().to_owned(),
            ..Self::default()
        }
    }

    /// Takes over on-demand prices read from the region; types that are not among them keep theirs.
    pub fn set_on_demand(&mut self, prices: BTreeMap<String, i64>) {
        self.on_demand.extend(prices);
    }

    /// Takes over the region's spot prices; what is not among them is not sold any more.
    pub fn set_spot(&mut self, prices: Vec<SpotPrice>) {
        self.spot.clear();
        for price in prices {
            let zones = self.spot.entry(price.instance_type).or_default();
            zones.insert(price.zone, price.micro_usd_per_hour);
        }
    }

    /// Day the prices are from; `live` once the region has answered.
    #[must_use]
    pub fn date(&self) -> String {
        if self.on_demand.is_empty() { self.date.clone() } else { "live".to_owned() }
    }

    /// What an instance costs, by how it is bought, in millionths of a US dollar an hour.
    #[must_use]
    pub fn micro_usd_per_hour(
        &self,
        instance_type: &str,
        zone: &str,
        capacity_type: CapacityType,
    ) -> Option<i64> {
        let price = match capacity_type {
            CapacityType::Spot => self.spot(instance_type, zone),
            CapacityType::Unspecified | CapacityType::OnDemand | CapacityType::Reserved => {
                self.on_demand(instance_type)
            }
        };
        price.map(|price| price.micro_usd_per_hour)
    }

    /// On-demand price of a type.
    #[must_use]
    pub fn on_demand(&self, instance_type: &str) -> Option<Price> {
        if let Some(price) = self.on_demand.get(instance_type) {
            return Some(Price { micro_usd_per_hour: *price, estimated: false });
        }
        self.price_of(self.embedded?.on_demand(instance_type)?)
    }

    /// Spot price of a type in a zone.
    #[must_use]
    pub fn spot(&self, instance_type: &str, zone: &str) -> Option<Price> {
        if !self.spot.is_empty() {
            let price = self.spot.get(instance_type)?.get(zone)?;
            return Some(Price { micro_usd_per_hour: *price, estimated: false });
        }
        // The embedded zones' names are another account's, so this is an estimate in any case.
        let region = self.embedded?;
        let zones = &region.offering(instance_type)?.zones;
        let spot = region.spot(instance_type, zone).or_else(|| zones.iter().find_map(|z| z.spot));
        let price = self.price_of(spot?)?;
        Some(Price { estimated: true, ..price })
    }

    fn price_of(&self, price: longshore_ec2_data::Price) -> Option<Price> {
        Some(Price {
            micro_usd_per_hour: i64::try_from(price.micro_usd_per_hour).ok()?,
            estimated: price.estimated || self.stand_in,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_prices_win_and_the_rest_is_embedded() {
        let mut prices = Prices::embedded("us-east-1");
        let listed = prices.on_demand("m5.large").unwrap();
        assert!(!listed.estimated);
        prices.set_on_demand([("m5.large".to_owned(), 7)].into());
        assert_eq!(prices.on_demand("m5.large").unwrap().micro_usd_per_hour, 7);
        assert!(prices.on_demand("m5.xlarge").is_some());
        assert_eq!(prices.date(), "live");
    }

    #[test]
    fn spot_is_estimated_until_the_region_answers_and_absent_where_it_names_no_price() {
        let mut prices = Prices::embedded("us-east-1");
        assert!(prices.spot("m5.large", "us-east-1a").unwrap().estimated);
        prices.set_spot(vec![SpotPrice {
            instance_type: "m5.large".to_owned(),
            zone: "us-east-1a".to_owned(),
            micro_usd_per_hour: 30_000,
        }]);
        let live = Price { micro_usd_per_hour: 30_000, estimated: false };
        assert_eq!(prices.spot("m5.large", "us-east-1a"), Some(live));
        assert_eq!(prices.spot("m5.large", "us-east-1b"), None);
    }

    #[test]
    fn an_unknown_region_borrows_prices_and_says_so() {
        let prices = Prices::embedded("mars-north-1");
        assert!(prices.on_demand("m5.large").unwrap().estimated);
    }
}
