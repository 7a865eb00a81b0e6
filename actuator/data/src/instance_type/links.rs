//! Links out of a machine: to EBS volumes and to the network.
//!
//! Invariant: limits are EC2's; what it does not state is `None`, not a guess.

use serde::Deserialize;

/// Link to EBS volumes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ebs {
    /// Whether the link is the type's own.
    pub optimized: EbsOptimized,
    /// Highest bandwidth in Mbit/s, where EC2 states one.
    #[serde(default)]
    pub max_bandwidth_mbps: Option<u32>,
    /// Bandwidth that can be held for ever in Mbit/s, where EC2 states one.
    #[serde(default)]
    pub baseline_bandwidth_mbps: Option<u32>,
}

/// Whether a type has a link of its own to EBS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EbsOptimized {
    /// Always.
    Default,
    /// On demand, for a fee.
    Supported,
    /// Never.
    Unsupported,
}

/// Network cards, interfaces and addresses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Most interfaces of each card, by card index.
    pub card_interfaces: Vec<u16>,
    /// Index of the card that carries the primary interface.
    #[serde(default)]
    pub default_card: usize,
    /// IPv4 addresses of each interface, the primary one included.
    pub ipv4_per_interface: u32,
    /// Branch interfaces for pods with security groups; 0 where trunking is not supported.
    #[serde(default)]
    pub branch_interfaces: u32,
    /// Most Elastic Fabric Adapter interfaces.
    #[serde(default)]
    pub efa_interfaces: u32,
    /// Has the Elastic Network Adapter.
    #[serde(default)]
    pub ena: bool,
    /// Encrypts traffic between instances in hardware.
    #[serde(default)]
    pub encryption_in_transit: bool,
    /// Baseline bandwidth in Mbit/s as EC2's pages publish it, where they do.
    #[serde(default)]
    pub bandwidth_mbps: Option<u32>,
}
