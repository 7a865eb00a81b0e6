//! NodeOverlays: what a user knows better than the catalogue about prices and capacity.
//!
//! Invariant: of the overlays in effect the one of largest weight decides each price and each
//! resource; of two with equal weight that meet on a price or a resource, the later by name has no
//! effect at all.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::vocabulary::catalogue::PRICE_MAX;
use crate::vocabulary::ids::OverlayName;
use crate::vocabulary::requirements::Requirements;

/// A NodeOverlay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeOverlay {
    /// Name.
    pub name: OverlayName,
    /// The largest one decides.
    pub weight: i32,
    /// Labels of pool, type and offering that it applies to.
    pub requirements: Requirements,
    /// What becomes of the price; none leaves it as it is.
    pub price: Option<PriceChange>,
    /// Extended resources that the instances have, by name.
    pub capacity: BTreeMap<String, i64>,
}

/// What becomes of a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceChange {
    /// This in its place, in micro-dollars per hour.
    Fixed(i64),
    /// This much more, in micro-dollars per hour; negative for less.
    Added(i64),
    /// This share of it more, in millionths; negative for less.
    AddedPpm(i64),
}

impl PriceChange {
    /// The price after the change; never below zero or over the highest there may be.
    #[must_use]
    pub fn of(self, price_micro_usd_per_hour: i64) -> i64 {
        let price = price_micro_usd_per_hour;
        let changed = match self {
            Self::Fixed(fixed) => fixed,
            Self::Added(more) => price.saturating_add(more),
            Self::AddedPpm(ppm) => {
                let more = i128::from(price) * i128::from(ppm) / 1_000_000;
                i64::try_from(i128::from(price) + more).unwrap_or(i64::MAX)
            }
        };
        changed.clamp(0, PRICE_MAX)
    }
}

impl NodeOverlay {
    /// The order in which overlays have their say.
    #[must_use]
    pub fn rank(&self) -> impl Ord + use<> {
        (Reverse(self.weight), self.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_change_by_value_amount_or_share_and_never_fall_below_zero() {
        let table = [
            (PriceChange::Fixed(7), 7),
            (PriceChange::Added(50), 1_050),
            (PriceChange::Added(-50), 950),
            (PriceChange::Added(-5_000), 0),
            (PriceChange::AddedPpm(100_000), 1_100),
            (PriceChange::AddedPpm(-255_000), 745),
            (PriceChange::AddedPpm(-1_000_000), 0),
            (PriceChange::AddedPpm(i64::MAX), PRICE_MAX),
            (PriceChange::Fixed(i64::MAX), PRICE_MAX),
            (PriceChange::Added(i64::MAX), PRICE_MAX),
        ];
        for (change, expected) in table {
            assert_eq!(change.of(1_000), expected, "{change:?}");
        }
    }
}
