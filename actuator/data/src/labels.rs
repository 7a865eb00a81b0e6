//! Well-known node labels that follow from the instance type and the zone.
//!
//! Invariant: keys and values are those NodePools select on today (`karpenter.k8s.aws/*`), and a
//! label whose value is unknown is absent rather than guessed.

use crate::instance_type::{EbsOptimized, InstanceType};
use crate::region::Zone;

/// A label: key and value.
pub type Label = (&'static str, String);

/// Labels of every node of a type, sorted by key. The operating system is the image's affair and
/// not among them; neither is tenancy, which the launch chooses.
#[must_use]
pub fn of_type(instance_type: &InstanceType) -> Vec<Label> {
    let mut labels = identity(instance_type);
    labels.extend(hardware(instance_type));
    labels.extend(gpu(instance_type));
    labels.extend(accelerator(instance_type));
    labels.sort_unstable();
    labels
}

/// Labels of every node in a zone of a region, sorted by key.
#[must_use]
pub fn of_zone(region: &str, zone: &Zone) -> Vec<Label> {
    vec![
        ("topology.k8s.aws/zone-id", zone.id.to_string()),
        ("topology.kubernetes.io/region", region.to_owned()),
        ("topology.kubernetes.io/zone", zone.name.to_string()),
    ]
}

fn identity(instance_type: &InstanceType) -> Vec<Label> {
    let mut labels = vec![
        ("kubernetes.io/arch", instance_type.arch.as_str().to_owned()),
        ("node.kubernetes.io/instance-type", instance_type.name.to_string()),
        ("karpenter.k8s.aws/instance-family", instance_type.family().to_owned()),
        ("karpenter.k8s.aws/instance-size", instance_type.size().to_owned()),
        ("karpenter.k8s.aws/instance-capability-flex", instance_type.flex().to_string()),
    ];
    if let Some(generation) = instance_type.generation() {
        labels.push(("karpenter.k8s.aws/instance-category", instance_type.category().to_owned()));
        labels.push(("karpenter.k8s.aws/instance-generation", generation.to_string()));
    }
    labels
}

fn hardware(instance_type: &InstanceType) -> Vec<Label> {
    let network = &instance_type.network;
    let mut labels = vec![
        ("karpenter.k8s.aws/instance-cpu", instance_type.vcpus.to_string()),
        ("karpenter.k8s.aws/instance-cpu-manufacturer", kebab(&instance_type.cpu_manufacturer)),
        (
            "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
            instance_type.cpu_clock_mhz.to_string(),
        ),
        ("karpenter.k8s.aws/instance-memory", instance_type.memory_mib.to_string()),
        ("karpenter.k8s.aws/instance-hypervisor", instance_type.hypervisor.as_str().to_owned()),
        (
            "karpenter.k8s.aws/instance-encryption-in-transit-supported",
            network.encryption_in_transit.to_string(),
        ),
    ];
    let ebs = &instance_type.ebs;
    if let (EbsOptimized::Default, Some(mbps)) = (ebs.optimized, ebs.max_bandwidth_mbps) {
        labels.push(("karpenter.k8s.aws/instance-ebs-bandwidth", mbps.to_string()));
    }
    if let Some(mbps) = network.bandwidth_mbps {
        labels.push(("karpenter.k8s.aws/instance-network-bandwidth", mbps.to_string()));
    }
    if let Some(disks) = instance_type.local_storage.as_ref().filter(|disks| disks.nvme) {
        labels.push(("karpenter.k8s.aws/instance-local-nvme", disks.total_gb.to_string()));
    }
    labels
}

/// Only types with GPUs of exactly one model are labelled.
fn gpu(instance_type: &InstanceType) -> Vec<Label> {
    let [gpu] = instance_type.gpus.as_slice() else { return Vec::new() };
    vec![
        ("karpenter.k8s.aws/instance-gpu-name", kebab(&gpu.name)),
        ("karpenter.k8s.aws/instance-gpu-manufacturer", kebab(&gpu.manufacturer)),
        ("karpenter.k8s.aws/instance-gpu-count", gpu.count.to_string()),
        ("karpenter.k8s.aws/instance-gpu-memory", gpu.memory_mib.to_string()),
    ]
}

/// Neuron devices come before other inference accelerators: EC2 lists Inferentia as both.
fn accelerator(instance_type: &InstanceType) -> Vec<Label> {
    let (name, manufacturer, count) =
        match (&*instance_type.neuron_devices, &*instance_type.inference_accelerators) {
            ([device], _) => (&device.name, "aws", device.count),
            ([], [found]) => (&found.name, &*found.manufacturer, found.count),
            _ => return Vec::new(),
        };
    vec![
        ("karpenter.k8s.aws/instance-accelerator-name", kebab(name)),
        ("karpenter.k8s.aws/instance-accelerator-manufacturer", kebab(manufacturer)),
        ("karpenter.k8s.aws/instance-accelerator-count", count.to_string()),
    ]
}

fn kebab(words: &str) -> String {
    words.replace(' ', "-").to_lowercase()
}

#[cfg(test)]
mod tests;
