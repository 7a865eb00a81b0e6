//! Overhead: what is kept back from pods for the kubelet, the system and the eviction margin.
//!
//! Invariant: allocatable = capacity − kube reserved − system reserved − eviction, never below 0.

use crate::instance_type::InstanceType;
use crate::node::capacity::{capacity, eni_limited_pods, pods};
use crate::node::{GIB, MIB, MILLION, NodeSettings, Reserved, Resources, Threshold};

/// CPU kept for the kubelet, by band of the node's CPU: (end of the band in thousandths of a
/// vCPU, share in parts per million). Each band's share is cut to a whole thousandth.
const KUBELET_CPU_BANDS: [(u64, u64); 4] =
    [(1000, 60_000), (2000, 10_000), (4000, 5_000), (u64::MAX, 2_500)];

const KUBELET_MEMORY_BASE_BYTES: u64 = 255 * MIB;
const KUBELET_MEMORY_PER_POD_BYTES: u64 = 11 * MIB;
const KUBELET_EPHEMERAL_STORAGE_BYTES: u64 = GIB;
const EVICTION_MEMORY: Threshold = Threshold::Bytes(100 * MIB);
const EVICTION_NODEFS: Threshold = Threshold::PartsPerMillion(100_000);

/// What a node keeps back from pods, by what it is kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overhead {
    /// For the kubelet and the container runtime.
    pub kube_reserved: Reserved,
    /// For the operating system.
    pub system_reserved: Reserved,
    /// The margin below which the kubelet evicts.
    pub eviction: Reserved,
}

impl Overhead {
    /// All three together.
    #[must_use]
    pub fn total(&self) -> Reserved {
        self.kube_reserved.plus(self.system_reserved).plus(self.eviction)
    }
}

/// What a node of the type keeps back.
#[must_use]
pub fn overhead(instance_type: &InstanceType, settings: &NodeSettings) -> Overhead {
    overhead_of(instance_type, settings, &capacity(instance_type, settings))
}

/// What a node of the type has for pods.
#[must_use]
pub fn allocatable(instance_type: &InstanceType, settings: &NodeSettings) -> Resources {
    let all = capacity(instance_type, settings);
    let kept = overhead_of(instance_type, settings, &all).total();
    Resources {
        cpu_millis: all.cpu_millis.saturating_sub(kept.cpu_millis),
        memory_bytes: all.memory_bytes.saturating_sub(kept.memory_bytes),
        ephemeral_storage_bytes: all
            .ephemeral_storage_bytes
            .saturating_sub(kept.ephemeral_storage_bytes),
        ..all
    }
}

fn overhead_of(
    instance_type: &InstanceType,
    settings: &NodeSettings,
    capacity: &Resources,
) -> Overhead {
    let kubelet = &settings.kubelet;
    Overhead {
        kube_reserved: kube_reserved(instance_type, settings),
        system_reserved: kubelet.system_reserved,
        eviction: Reserved {
            cpu_millis: 0,
            memory_bytes: kubelet
                .eviction_memory
                .unwrap_or(EVICTION_MEMORY)
                .bytes_of(capacity.memory_bytes),
            ephemeral_storage_bytes: kubelet
                .eviction_nodefs
                .unwrap_or(EVICTION_NODEFS)
                .bytes_of(capacity.ephemeral_storage_bytes),
        },
    }
}

fn kube_reserved(instance_type: &InstanceType, settings: &NodeSettings) -> Reserved {
    let given = &settings.kubelet.kube_reserved;
    let pods = if settings.ami_family.eni_limited_memory_overhead() {
        eni_limited_pods(instance_type, settings.efa_only.unwrap_or_default().on_first_card)
    } else {
        pods(instance_type, settings)
    };
    let memory_bytes =
        pods.saturating_mul(KUBELET_MEMORY_PER_POD_BYTES).saturating_add(KUBELET_MEMORY_BASE_BYTES);
    Reserved {
        cpu_millis: given
            .cpu_millis
            .unwrap_or_else(|| kubelet_cpu_millis(u64::from(instance_type.vcpus) * 1000)),
        memory_bytes: given.memory_bytes.unwrap_or(memory_bytes),
        ephemeral_storage_bytes: given
            .ephemeral_storage_bytes
            .unwrap_or(KUBELET_EPHEMERAL_STORAGE_BYTES),
    }
}

fn kubelet_cpu_millis(cpu_millis: u64) -> u64 {
    let mut start = 0;
    let mut kept = 0;
    for (end, share_ppm) in KUBELET_CPU_BANDS {
        kept += cpu_millis.min(end).saturating_sub(start) * share_ppm / MILLION;
        start = end;
    }
    kept
}

impl Threshold {
    /// The threshold in bytes of a node that has `capacity_bytes`; shares are rounded up.
    #[must_use]
    pub fn bytes_of(self, capacity_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::PartsPerMillion(share) if share >= MILLION => 0,
            Self::PartsPerMillion(share) => {
                let part =
                    (u128::from(capacity_bytes) * u128::from(share)).div_ceil(u128::from(MILLION));
                u64::try_from(part).unwrap_or(u64::MAX)
            }
        }
    }
}
