//! What a plan minimises: what nodes are paid for, and what else they cost.
//!
//! Invariant: with the default weights the cost of every offering is its price. Prices stay what
//! people pay; costs only decide.

use std::collections::BTreeMap;

use crate::vocabulary::catalogue::{CapacityType, InstanceType, Offering};

/// Millionths of a dollar, and hours of which interruptions are counted.
const MILLION: i128 = 1_000_000;
/// Performance of a family that is as others, in percent.
const AS_OTHERS: i64 = 100;

/// Weights of what a node costs; all off by default. Units, formula and sources:
/// `docs/design/0008-objective.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objective {
    /// What each node costs besides its price, in micro-dollars per hour: licences, agents,
    /// addresses.
    pub node_fee_micro_usd_per_hour: i64,
    /// What one interruption costs, in micro-dollars: work done twice, and the time that two nodes
    /// are paid for one.
    pub interruption_cost_micro_usd: i64,
    /// Interruptions of a spot instance in a million hours, where its offering does not say its
    /// own.
    pub spot_interruptions_per_million_hours: i64,
    /// Performance of a unit of a family's capacity, in percent of that of others; 100 for a family
    /// that is not named.
    pub family_performance_percent: BTreeMap<String, i64>,
}

impl Objective {
    /// What an hour of an offering costs, in micro-dollars: price, fee and expected interruptions,
    /// by the performance of the family; rounded up, once.
    ///
    /// cost = (price + fee + interruption cost × interruptions per hour) × 100 / performance
    #[must_use]
    pub fn cost(&self, instance: &InstanceType, offering: &Offering) -> i64 {
        let paid = i128::from(offering.price_micro_usd_per_hour)
            + i128::from(self.node_fee_micro_usd_per_hour);
        let interruptions = i128::from(self.interruption_cost_micro_usd)
            * i128::from(self.interruptions_per_million_hours(offering));
        let weighed = (paid * MILLION + interruptions) * i128::from(AS_OTHERS);
        let unit = MILLION * i128::from(self.performance_percent(instance));
        i64::try_from((weighed + unit - 1).div_euclid(unit)).unwrap_or(i64::MAX)
    }

    /// What an offering says itself, else the default for spot; nothing else is interrupted.
    fn interruptions_per_million_hours(&self, offering: &Offering) -> i64 {
        let default = match offering.capacity_type {
            CapacityType::Spot => self.spot_interruptions_per_million_hours,
            CapacityType::Reserved | CapacityType::OnDemand => 0,
        };
        offering.interruptions_per_million_hours.unwrap_or(default)
    }

    /// Performance of a type's family, in percent; at least 1.
    fn performance_percent(&self, instance: &InstanceType) -> i64 {
        let known = self.family_performance_percent.get(instance.family());
        known.copied().unwrap_or(AS_OTHERS).max(1)
    }
}
