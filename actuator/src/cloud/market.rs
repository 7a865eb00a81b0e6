//! What a region sells and for how much.
//!
//! Invariant: prices are integers in millionths of a US dollar for an hour.

use std::collections::BTreeMap;

use async_trait::async_trait;
use longshore_ec2_data::InstanceType;

use super::CloudError;

/// Types, zones and prices.
#[async_trait]
pub trait Market: Send + Sync + 'static {
    /// Instance types and the zones that sell them.
    async fn listing(&self) -> Result<Listing, CloudError>;
    /// On-demand price of each type, Linux, shared tenancy.
    async fn on_demand_prices(&self) -> Result<BTreeMap<String, i64>, CloudError>;
    /// Newest spot price of each type in each zone.
    async fn spot_prices(&self) -> Result<Vec<SpotPrice>, CloudError>;
}

/// What is sold where.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Instance types by name.
    pub types: BTreeMap<String, InstanceType>,
    /// Which zone sells which type.
    pub zones: Vec<TypeInZone>,
}

/// A type that a zone sells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeInZone {
    /// Type.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
}

/// A spot price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotPrice {
    /// Type.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// Price.
    pub micro_usd_per_hour: i64,
}
