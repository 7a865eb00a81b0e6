//! What node classes point at: subnets, security groups, images, reservations, parameters,
//! clusters.
//!
//! Invariant: read only.

use std::collections::BTreeMap;

use async_trait::async_trait;
use longshore_proto::types::v1::SelectorTerm;

use super::CloudError;

/// Finds what selectors select.
#[async_trait]
pub trait Network: Send + Sync + 'static {
    /// Subnets that any of the terms selects, by id. An empty term selects all.
    async fn subnets(&self, terms: &[SelectorTerm]) -> Result<Vec<Subnet>, CloudError>;
    /// Security groups that any of the terms selects, by id. An empty term selects all.
    async fn security_groups(
        &self,
        terms: &[SelectorTerm],
    ) -> Result<Vec<SecurityGroup>, CloudError>;
    /// Images that any of the terms selects, newest first. Aliases and parameters are not
    /// understood here.
    async fn images(&self, terms: &[SelectorTerm]) -> Result<Vec<Image>, CloudError>;
    /// Capacity reservations that any of the terms selects, that are active and that last until
    /// they end by themselves: neither capacity blocks nor such as their owners take back. By id.
    async fn capacity_reservations(
        &self,
        terms: &[SelectorTerm],
    ) -> Result<Vec<CapacityReservation>, CloudError>;
    /// Value of an SSM parameter; none when there is no such parameter.
    async fn parameter(&self, name: &str) -> Result<Option<String>, CloudError>;
    /// What EKS says of a cluster.
    async fn eks_cluster(&self, name: &str) -> Result<EksCluster, CloudError>;
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// Id.
    pub id: String,
    /// Zone name.
    pub zone: String,
    /// Zone id.
    pub zone_id: String,
    /// Addresses left.
    pub free_addresses: i32,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityGroup {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// A capacity reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityReservation {
    /// Id.
    pub id: String,
    /// Type of its instances.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// Account id of its owner.
    pub owner: String,
    /// Which instances it takes: `open` or `targeted`.
    pub match_criteria: String,
    /// Instances that there is room for.
    pub available: i64,
    /// Milliseconds since 1970 at which it ends; none where it is cancelled some day.
    pub end_ms: Option<i64>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Kubernetes architecture: `amd64` or `arm64`.
    pub arch: String,
    /// RFC 3339; sorts by time.
    pub created: String,
    /// True when its owner has deprecated it.
    pub deprecated: bool,
    /// Its owner, as account and, where there is one, as alias.
    pub owners: Vec<String>,
}

/// What EKS says of a cluster; empty where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EksCluster {
    /// API server.
    pub endpoint: String,
    /// Certificate authority, PEM in base64.
    pub ca_bundle: String,
    /// Range of service addresses.
    pub service_cidr: String,
    /// `major.minor`.
    pub kubernetes_version: String,
}
