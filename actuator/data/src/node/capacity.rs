//! Capacity: what the kubelet will report before anything is kept back.
//!
//! Invariant: the formulas are Karpenter's, so that a NodePool means the same under both; a test
//! compares them on every type with what its code says.

use std::collections::BTreeMap;

use crate::instance_type::{Arch, InstanceType};
use crate::node::{MIB, MILLION, NodeSettings, Resources};

/// Memory of Graviton machines that the kernel's contiguous allocator keeps.
const ARM64_KERNEL_MIB: u64 = 64;
/// Pods of a node whose interfaces do not limit them: the kubelet's own default.
const DEFAULT_MAX_PODS: u64 = 110;
/// Pods on the host's network, which take no address: the CNI plugin and kube-proxy.
const HOST_NETWORK_PODS: u64 = 2;

/// What a node of the type reports as its capacity.
#[must_use]
pub fn capacity(instance_type: &InstanceType, settings: &NodeSettings) -> Resources {
    Resources {
        cpu_millis: u64::from(instance_type.vcpus) * 1000,
        memory_bytes: settings
            .measured_memory_bytes
            .unwrap_or_else(|| memory_bytes(instance_type, settings.vm_memory_overhead_ppm)),
        ephemeral_storage_bytes: ephemeral_storage_bytes(instance_type, settings),
        pods: pods(instance_type, settings),
        extended: devices(instance_type, settings),
    }
}

/// Pods that the default card's interfaces have addresses for: E × (IPv4 per interface − 1) + 2,
/// where E is the card's interfaces less the reserved and the EFA-only ones; 0 when E is.
#[must_use]
pub fn eni_limited_pods(instance_type: &InstanceType, unusable_interfaces: u32) -> u64 {
    let interfaces = instance_type.default_card_interfaces().saturating_sub(unusable_interfaces);
    if interfaces == 0 {
        return 0;
    }
    let addresses = instance_type.network.ipv4_per_interface.saturating_sub(1);
    u64::from(interfaces) * u64::from(addresses) + HOST_NETWORK_PODS
}

/// M − ceil(M × overhead) in MiB, where M leaves out what arm64 kernels keep.
fn memory_bytes(instance_type: &InstanceType, overhead_ppm: u64) -> u64 {
    let kernel_mib = match instance_type.arch {
        Arch::Amd64 => 0,
        Arch::Arm64 => ARM64_KERNEL_MIB,
    };
    let mib = instance_type.memory_mib.saturating_sub(kernel_mib);
    let overhead_mib = (mib * overhead_ppm).div_ceil(MILLION);
    mib.saturating_sub(overhead_mib) * MIB
}

fn ephemeral_storage_bytes(instance_type: &InstanceType, settings: &NodeSettings) -> u64 {
    let local = instance_type.local_storage.as_ref().filter(|_| settings.local_disks_raid0);
    match (local, settings.data_volume_bytes) {
        (Some(disks), _) => disks.total_gb * 1_000_000_000,
        (None, Some(bytes)) => bytes,
        (None, None) => settings.ami_family.data_volume_bytes(),
    }
}

/// Pods the kubelet accepts.
pub(super) fn pods(instance_type: &InstanceType, settings: &NodeSettings) -> u64 {
    let limit = match settings.kubelet.max_pods {
        Some(max_pods) => u64::from(max_pods),
        None if settings.ami_family.eni_limited_density() => {
            let efa_only = settings.efa_only.unwrap_or_default().on_first_card;
            eni_limited_pods(instance_type, settings.reserved_enis.saturating_add(efa_only))
        }
        None => DEFAULT_MAX_PODS,
    };
    match settings.kubelet.pods_per_core {
        Some(per_core) if per_core > 0 && settings.ami_family.pods_per_core() => {
            limit.min(u64::from(per_core) * u64::from(instance_type.vcpus))
        }
        _ => limit,
    }
}

/// Extended resources, by name; what a type has none of is left out.
fn devices(instance_type: &InstanceType, settings: &NodeSettings) -> BTreeMap<&'static str, u64> {
    let network = &instance_type.network;
    let gpus = |maker: &str| -> u64 {
        let of_maker = instance_type.gpus.iter().filter(|gpu| &*gpu.manufacturer == maker);
        of_maker.map(|gpu| u64::from(gpu.count)).sum()
    };
    let neuron = &instance_type.neuron_devices;
    let cores = neuron.first().map_or(0, |d| u64::from(d.count) * u64::from(d.cores_per_device));
    let efa = settings.efa_only.map_or(network.efa_interfaces, |asked| asked.total);
    let windows = settings.ami_family.windows() && instance_type.arch == Arch::Amd64;
    let windows_addresses = if windows { network.ipv4_per_interface.saturating_sub(1) } else { 0 };
    let counted = [
        ("nvidia.com/gpu", gpus("NVIDIA")),
        ("amd.com/gpu", gpus("AMD")),
        ("habana.ai/gaudi", gpus("Habana")),
        ("aws.amazon.com/neuron", neuron.iter().map(|device| u64::from(device.count)).sum()),
        ("aws.amazon.com/neuroncore", cores),
        ("vpc.amazonaws.com/pod-eni", u64::from(network.branch_interfaces)),
        ("vpc.amazonaws.com/efa", u64::from(efa)),
        ("vpc.amazonaws.com/PrivateIPv4Address", u64::from(windows_addresses)),
    ];
    counted.into_iter().filter(|(_, count)| *count > 0).collect()
}
