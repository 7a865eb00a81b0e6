//! What one run says.
//!
//! Invariant: both sides say the same fields; what a side does not have is null, never zero.

use serde::{Deserialize, Serialize};

/// One plan, and what making it took.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Outcome {
    /// Pods that wanted a place.
    pub pods: u64,
    /// Pods that have one in the plan.
    pub placed: u64,
    /// Nodes to launch.
    pub nodes: u64,
    /// Price of those nodes, each at its cheapest candidate, in dollars an hour.
    pub price_usd_per_hour: f64,
    /// Price that no set of nodes can go below, in dollars an hour.
    pub lower_bound_usd_per_hour: Option<f64>,
    /// Whether the proof of the bound was checked by integer arithmetic.
    pub certificate_checked: Option<bool>,
    /// What the independent check finds wrong with the plan.
    pub violations: Option<u64>,
    /// Time of the planner alone, in seconds: no reading, no check.
    pub plan_seconds: f64,
    /// Largest resident set of the process until the plan was there, in bytes.
    pub peak_rss_bytes: u64,
    /// Bytes that the planner allocated, freed ones included.
    pub allocated_bytes: u64,
    /// How hard the planner tried.
    pub effort: Option<String>,
}
