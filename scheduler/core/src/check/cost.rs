//! Costs read from the objective anew.
//!
//! Invariant: whole numbers only, in pico-dollars per hour, in which nothing has to be rounded
//! before the end.

use crate::question::PlanInput;
use crate::vocabulary::catalogue::{CapacityType, InstanceType, Offering};

/// Pico-dollars in a micro-dollar; interruptions are counted in a million hours.
const PICO_PER_MICRO: i128 = 1_000_000;

/// What an hour of an offering costs, in micro-dollars.
pub(super) fn of(input: &PlanInput, instance: &InstanceType, offering: &Offering) -> i64 {
    let objective = &input.objective;
    let spot = offering.capacity_type == CapacityType::Spot;
    let common = if spot { objective.spot_interruptions_per_million_hours } else { 0 };
    let rate = offering.interruptions_per_million_hours.unwrap_or(common);
    let price = i128::from(offering.price_micro_usd_per_hour) * PICO_PER_MICRO;
    let fee = i128::from(objective.node_fee_micro_usd_per_hour) * PICO_PER_MICRO;
    let lost = i128::from(objective.interruption_cost_micro_usd) * i128::from(rate);
    let percent = objective.family_performance_percent.get(instance.family());
    let percent = i128::from(percent.copied().unwrap_or(100)).max(1);
    let hundredfold = 100 * (price + fee + lost);
    let whole = hundredfold / (percent * PICO_PER_MICRO);
    let rest = hundredfold % (percent * PICO_PER_MICRO);
    i64::try_from(whole + i128::from(rest > 0)).unwrap_or(i64::MAX)
}
