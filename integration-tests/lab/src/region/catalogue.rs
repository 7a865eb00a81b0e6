//! Instance types as this region sells them: hardware, zones, prices.
//!
//! Invariant: the only place that knows where the facts come from.

use std::collections::BTreeMap;

use super::config::ZoneConfig;
use super::small_catalogue;

/// One instance type with its prices. Values are EC2's, in EC2's units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFacts {
    /// Type name, for example `m5.large`.
    pub name: String,
    /// vCPUs.
    pub vcpus: u32,
    /// Memory in MiB as EC2 states it; the operating system sees less.
    pub memory_mib: u64,
    /// EC2 architecture: `x86_64` or `arm64`.
    pub architecture: String,
    /// Maker of the processor: `Intel`, `AMD`, `AWS`.
    pub manufacturer: String,
    /// Sustained clock speed in MHz.
    pub clock_mhz: u32,
    /// `nitro`, `xen`, or empty for bare metal.
    pub hypervisor: String,
    /// A whole machine.
    pub bare_metal: bool,
    /// Earns CPU credits.
    pub burstable: bool,
    /// Of the current generation.
    pub current_generation: bool,
    /// Most network interfaces.
    pub interfaces: u32,
    /// IPv4 addresses of each interface.
    pub ipv4_per_interface: u32,
    /// Baseline network bandwidth in Mbit/s.
    pub network_mbps: Option<u32>,
    /// Encrypts traffic between instances.
    pub encryption_in_transit: bool,
    /// Most EFA interfaces; 0 for none.
    pub efa_interfaces: u32,
    /// Highest EBS bandwidth in Mbit/s.
    pub ebs_mbps: Option<u32>,
    /// Local disks together in GB; 0 for none.
    pub local_storage_gb: u64,
    /// GPUs.
    pub gpus: Vec<GpuFacts>,
    /// AWS Neuron devices.
    pub neurons: Vec<NeuronFacts>,
    /// On-demand price for Linux.
    pub price_micro_usd_per_hour: u64,
    /// Zones that sell it, by name, with the spot price there; `None` where not sold as spot.
    pub zones: BTreeMap<String, Option<u64>>,
}

/// GPUs of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFacts {
    /// Model.
    pub name: String,
    /// Maker.
    pub manufacturer: String,
    /// How many.
    pub count: u32,
    /// Memory of each in MiB.
    pub memory_mib: u64,
}

/// Neuron devices of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeuronFacts {
    /// Model.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Cores of each.
    pub cores_per_device: u32,
    /// Memory of each in MiB.
    pub memory_mib: u64,
}

impl TypeFacts {
    /// Kubernetes' name of the architecture.
    pub fn kubernetes_arch(&self) -> &'static str {
        if self.architecture == "arm64" { "arm64" } else { "amd64" }
    }

    /// Most pods with one address each: interfaces × (addresses − 1) + 2, the VPC CNI's formula.
    pub fn eni_max_pods(&self) -> u32 {
        self.interfaces * self.ipv4_per_interface.saturating_sub(1) + 2
    }

    /// True when any zone sells it as spot.
    pub fn supports_spot(&self) -> bool {
        self.zones.values().any(Option::is_some)
    }
}

/// Types sold in a region, sorted by name.
pub fn types_of(region: &str, zones: &[ZoneConfig]) -> Vec<TypeFacts> {
    small_catalogue::types_of(region, zones)
}
