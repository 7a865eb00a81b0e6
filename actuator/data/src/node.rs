//! What a node of a type will offer to pods: the settings that bear on it, and the amounts.
//!
//! Invariant: integer arithmetic only; the same type and settings give the same node everywhere,
//! so the plan made offline, the actuator's catalogue and the simulated kubelet agree.

mod ami_family;
mod capacity;
mod overhead;

use std::collections::BTreeMap;

pub use ami_family::AmiFamily;
pub use capacity::{capacity, eni_limited_pods};
pub use overhead::{Overhead, allocatable, overhead};

/// Bytes in a MiB.
pub(crate) const MIB: u64 = 1 << 20;
/// Bytes in a GiB.
pub(crate) const GIB: u64 = 1 << 30;
/// One, in parts per million.
pub(crate) const MILLION: u64 = 1_000_000;

/// Share of memory that the hypervisor takes when nothing was measured: 7.5 %.
const VM_MEMORY_OVERHEAD_PPM: u64 = 75_000;

/// Amounts of what a node has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    /// CPU in thousandths of a vCPU.
    pub cpu_millis: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Ephemeral storage in bytes.
    pub ephemeral_storage_bytes: u64,
    /// Most pods at a time.
    pub pods: u64,
    /// Devices by resource name (`nvidia.com/gpu`); only those there are.
    pub extended: BTreeMap<&'static str, u64>,
}

/// Amounts kept back from pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reserved {
    /// CPU in thousandths of a vCPU.
    pub cpu_millis: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Ephemeral storage in bytes.
    pub ephemeral_storage_bytes: u64,
}

/// Amounts that replace computed ones, key by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReservedOverrides {
    /// CPU in thousandths of a vCPU.
    pub cpu_millis: Option<u64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Ephemeral storage in bytes.
    pub ephemeral_storage_bytes: Option<u64>,
}

/// Below how much of a resource the kubelet evicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// An amount in bytes.
    Bytes(u64),
    /// A share of the capacity in parts per million; a million (100 %) switches the signal off.
    PartsPerMillion(u64),
}

/// The part of a kubelet's configuration that changes what pods get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KubeletSettings {
    /// `maxPods`: most pods, in place of what the interfaces allow.
    pub max_pods: Option<u32>,
    /// `podsPerCore`: most pods for each vCPU; 0 and `None` do not limit.
    pub pods_per_core: Option<u32>,
    /// `kubeReserved`, as far as it is given.
    pub kube_reserved: ReservedOverrides,
    /// `systemReserved`; nothing is kept back for what is not given.
    pub system_reserved: Reserved,
    /// `evictionHard["memory.available"]`.
    pub eviction_memory: Option<Threshold>,
    /// `evictionHard["nodefs.available"]`.
    pub eviction_nodefs: Option<Threshold>,
}

/// EFA-only interfaces that a node class asks for; they take an interface and carry no pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EfaOnlyInterfaces {
    /// On all network cards.
    pub total: u32,
    /// On network card 0.
    pub on_first_card: u32,
}

/// Everything besides the type that decides what its node offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    /// Operating system family of the image.
    pub ami_family: AmiFamily,
    /// Kubelet configuration.
    pub kubelet: KubeletSettings,
    /// Interfaces of the default card that pods may not use.
    pub reserved_enis: u32,
    /// Share of memory that the hypervisor takes, in parts per million, at most a million.
    pub vm_memory_overhead_ppm: u64,
    /// Memory that a live node of the type and image reported, in bytes; replaces the estimate.
    pub measured_memory_bytes: Option<u64>,
    /// Size in bytes of the volume that pods write to: the mapping marked as root volume, else
    /// the one of [`AmiFamily::data_device`]. `None` takes the family's default.
    pub data_volume_bytes: Option<u64>,
    /// Local disks form one RAID 0 array that replaces the data volume, where a type has any.
    pub local_disks_raid0: bool,
    /// The interfaces of a node class that lists them; `None` where it does not.
    pub efa_only: Option<EfaOnlyInterfaces>,
}

impl Default for NodeSettings {
    /// Amazon Linux 2023 with nothing configured.
    fn default() -> Self {
        Self {
            ami_family: AmiFamily::Al2023,
            kubelet: KubeletSettings::default(),
            reserved_enis: 0,
            vm_memory_overhead_ppm: VM_MEMORY_OVERHEAD_PPM,
            measured_memory_bytes: None,
            data_volume_bytes: None,
            local_disks_raid0: false,
            efa_only: None,
        }
    }
}

impl Reserved {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: u64, b: u64| a.saturating_add(b);
        Self {
            cpu_millis: sum(self.cpu_millis, other.cpu_millis),
            memory_bytes: sum(self.memory_bytes, other.memory_bytes),
            ephemeral_storage_bytes: sum(
                self.ephemeral_storage_bytes,
                other.ephemeral_storage_bytes,
            ),
        }
    }
}

#[cfg(test)]
mod tests;
