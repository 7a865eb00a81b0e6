//! One way to buy a node, as it is printed.
//!
//! Invariant: the price is what is paid; the cost is there only where it is another amount.

use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::Candidate;
use serde::Serialize;

/// One way to buy a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Offering {
    /// Type name.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// `on-demand`, `spot` or `reserved`.
    pub capacity_type: &'static str,
    /// Price of one.
    pub price_micro_usd_per_hour: i64,
    /// What it costs by the objective; absent where that is its price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd_per_hour: Option<i64>,
    /// True when no source lists the price.
    pub price_estimated: bool,
}

impl From<&Candidate> for Offering {
    fn from(candidate: &Candidate) -> Self {
        Self {
            instance_type: candidate.instance_type.clone(),
            zone: candidate.zone.clone(),
            capacity_type: match candidate.capacity_type() {
                wire::CapacityType::Spot => "spot",
                wire::CapacityType::Reserved => "reserved",
                wire::CapacityType::OnDemand | wire::CapacityType::Unspecified => "on-demand",
            },
            price_micro_usd_per_hour: candidate.price_micro_usd_per_hour,
            cost_micro_usd_per_hour: Some(candidate.cost_micro_usd_per_hour)
                .filter(|cost| *cost != 0),
            price_estimated: false,
        }
    }
}

impl Offering {
    /// What it costs by the objective.
    #[must_use]
    pub fn cost(&self) -> i64 {
        self.cost_micro_usd_per_hour.unwrap_or(self.price_micro_usd_per_hour)
    }
}
