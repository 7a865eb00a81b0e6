//! The lower bound that comes with every plan, and the prices that prove it.
//!
//! Invariant: a bound is only reported after the integer check in `certificate` has accepted it.

use std::collections::BTreeMap;

/// How a lower bound was proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundKind {
    /// No bound: nothing was launched.
    #[default]
    None,
    /// LB1: a price for each unit of each resource, such that no offering sells its allocatable
    /// resources for less than those prices say.
    ResourcePrices,
}

/// No set of nodes that carries the launched pods costs less than this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LowerBound {
    /// How it was proved.
    pub kind: BoundKind,
    /// The bound, rounded down.
    pub price_micro_usd_per_hour: i64,
    /// Price in nano-dollars per hour of [`units`] of each resource by name, rounded down.
    pub prices_nano_usd_per_hour: BTreeMap<String, i64>,
    /// True when the independent integer check has accepted the prices.
    pub checked: bool,
}

/// Amount of a resource that one dual price buys: a MiB of what is counted in bytes, one of all else.
#[must_use]
pub fn units(resource: &str) -> i64 {
    let bytes = matches!(resource, "memory" | "ephemeral-storage");
    if bytes || resource.starts_with("hugepages-") { 1 << 20 } else { 1 }
}
