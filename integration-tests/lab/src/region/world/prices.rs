//! Prices: the catalogue's, moved by the weather and by the handle.
//!
//! Invariant: a price is a pure function of seed, offer and time, until the handle sets it; from
//! then on it is what the handle said.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::super::catalogue::TypeFacts;
use super::super::clock::after;
use super::super::config::Weather;

/// Draws that one price is the mean of; more make a smoother curve.
const SMOOTHING: u32 = 4;

/// A moment from which a price holds, and the price in millionths of a dollar an hour.
pub type PricePoint = (Timestamp, u64);

/// Prices of the region.
#[derive(Clone, Debug)]
pub struct Prices {
    seed: u64,
    started: Timestamp,
    weather: Weather,
    on_demand: BTreeMap<String, u64>,
    /// Prices set by hand, per type and zone, oldest first.
    spot: BTreeMap<(String, String), Vec<PricePoint>>,
}

impl Prices {
    /// Prices that begin to move at `started`.
    pub fn new(seed: u64, weather: Weather, started: Timestamp) -> Prices {
        Prices { seed, started, weather, on_demand: BTreeMap::new(), spot: BTreeMap::new() }
    }

    /// Sets an on-demand price.
    pub fn set_on_demand(&mut self, instance_type: &str, micro_usd_per_hour: u64) {
        self.on_demand.insert(instance_type.to_owned(), micro_usd_per_hour);
    }

    /// Sets a spot price from a moment on.
    pub fn set_spot(&mut self, instance_type: &str, zone: &str, point: PricePoint) {
        let key = (instance_type.to_owned(), zone.to_owned());
        self.spot.entry(key).or_default().push(point);
    }

    /// The on-demand price of a type.
    pub fn on_demand(&self, facts: &TypeFacts) -> u64 {
        let listed = facts.price_micro_usd_per_hour;
        self.on_demand.get(facts.name()).copied().unwrap_or(listed)
    }

    /// The spot price of a type in a zone; `None` where it is not sold as spot.
    pub fn spot(&self, facts: &TypeFacts, zone: &str, now: Timestamp) -> Option<u64> {
        self.spot_history(facts, zone, (now, now)).first().map(|(_, price)| *price)
    }

    /// The price in force at the start of a range and every change within it, newest first.
    pub fn spot_history(
        &self,
        facts: &TypeFacts,
        zone: &str,
        (from, to): (Timestamp, Timestamp),
    ) -> Vec<PricePoint> {
        let Some(listed) = facts.zones.get(zone).copied().flatten() else { return Vec::new() };
        let key = (facts.name().to_owned(), zone.to_owned());
        let by_hand = self.spot.get(&key).map(Vec::as_slice).unwrap_or_default();
        let until = by_hand.first().map_or(to, |(first, _)| to.min(*first));
        let curve = self.steps(from, until).map(|step| {
            let share = self.share_permille(&key, step);
            (self.moment(step), listed * share / 1000)
        });
        let mut points: Vec<PricePoint> = curve.chain(by_hand.iter().copied()).collect();
        points.retain(|(at, _)| *at <= to);
        let in_force = points.iter().rposition(|(at, _)| *at <= from).unwrap_or(0);
        points.drain(..in_force);
        points.reverse();
        points
    }

    /// Steps of the curve from the one in force at `from` to the last before `until`; without
    /// weather the price holds from the start.
    fn steps(&self, from: Timestamp, until: Timestamp) -> std::ops::RangeInclusive<u32> {
        let Some(step_ms) = self.weather.price_step_ms else { return 0..=0 };
        let number = |at: Timestamp| {
            let elapsed_ms = at.duration_since(self.started).as_millis().max(0);
            u32::try_from(elapsed_ms / i128::from(step_ms.max(1))).unwrap_or(u32::MAX)
        };
        number(from)..=number(until)
    }

    fn moment(&self, step: u32) -> Timestamp {
        after(self.started, step.saturating_mul(self.weather.price_step_ms.unwrap_or(0)))
    }

    /// Price as a share of the listed one: the mean of draws that neighbouring steps share.
    fn share_permille(&self, (instance_type, zone): &(String, String), step: u32) -> u64 {
        let swing = u64::from(self.weather.price_swing_percent.min(99)) * 10;
        if swing == 0 || self.weather.price_step_ms.is_none() {
            return 1000;
        }
        let draw = |number: u32| {
            let text = format!("{} {instance_type} {zone} {number}", self.seed);
            let digest = Sha256::digest(text);
            u64::from(u16::from_be_bytes([digest[0], digest[1]])) % (2 * swing + 1)
        };
        let total: u64 = (step..step.saturating_add(SMOOTHING)).map(draw).sum();
        1000 - swing + total / u64::from(SMOOTHING)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::catalogue::types_of;
    use super::*;

    fn facts() -> TypeFacts {
        let types = types_of("us-east-1").expect("data");
        types.into_iter().find(|facts| facts.name() == "m5.large").expect("m5.large")
    }

    #[test]
    fn weather_moves_prices_within_its_swing_and_repeats_with_the_seed() {
        let weather =
            Weather { price_step_ms: Some(1000), price_swing_percent: 20, ..Weather::default() };
        let start = Timestamp::UNIX_EPOCH;
        let prices = Prices::new(3, weather, start);
        let facts = facts();
        let listed = facts.zones["us-east-1a"].expect("spot");
        let history = prices.spot_history(&facts, "us-east-1a", (start, after(start, 59_999)));
        assert_eq!(history.len(), 60);
        assert!(
            history.iter().all(|(_, price)| (listed * 8 / 10..=listed * 12 / 10).contains(price))
        );
        assert!(history.windows(2).any(|pair| pair[0].1 != pair[1].1));
        let same = Prices::new(3, weather, start);
        assert_eq!(same.spot_history(&facts, "us-east-1a", (start, after(start, 59_999))), history);
        let now = after(start, 30_500);
        assert_eq!(prices.spot(&facts, "us-east-1a", now), Some(history[29].1));
    }

    #[test]
    fn a_price_set_by_hand_stays() {
        let weather =
            Weather { price_step_ms: Some(1000), price_swing_percent: 20, ..Weather::default() };
        let start = Timestamp::UNIX_EPOCH;
        let mut prices = Prices::new(3, weather, start);
        let facts = facts();
        prices.set_spot("m5.large", "us-east-1a", (after(start, 2500), 7));
        assert_eq!(prices.spot(&facts, "us-east-1a", after(start, 9000)), Some(7));
        let all = prices.spot_history(&facts, "us-east-1a", (start, after(start, 9000)));
        assert_eq!((all.len(), all[0]), (4, (after(start, 2500), 7)));
        assert_eq!(prices.spot(&facts, "nowhere", start), None);
    }
}
