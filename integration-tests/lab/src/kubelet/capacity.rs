//! What a node offers: capacity as the kubelet reports it, less what is kept for the system.
//!
//! Invariant: integer arithmetic in bytes and thousandths of a core, by the formulas of the EKS
//! images; written apart from the planner's own so that a test can hold one against the other.

use std::collections::BTreeMap;

use super::userdata::{Bootstrap, OperatingSystem};
use crate::cluster::schedule::quantity::thousandths;
use crate::instance::Instance;

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// Reserved for the kubelet whatever the number of pods.
const KUBELET_MEMORY_BASE_BYTES: i64 = 255 * MIB;
/// Reserved for the kubelet for each pod.
const KUBELET_MEMORY_PER_POD_BYTES: i64 = 11 * MIB;
const KUBELET_STORAGE_BYTES: i64 = GIB;
const EVICTION_MEMORY_BYTES: i64 = 100 * MIB;
const EVICTION_STORAGE_PERCENT: i64 = 10;
/// Width in thousandths of a core and share in hundredths of a percent, band after band.
const CPU_BANDS: [(i64, i64); 4] = [(1_000, 600), (1_000, 100), (2_000, 50), (i64::MAX, 25)];

/// Amounts of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Thousandths of a core.
    pub cpu_millis: i64,
    /// Memory.
    pub memory_bytes: i64,
    /// Ephemeral storage.
    pub storage_bytes: i64,
    /// Pods.
    pub pods: i64,
}

impl Amounts {
    /// As a resource list of the Kubernetes API.
    pub fn to_quantities(&self) -> BTreeMap<String, String> {
        [
            ("cpu", format!("{}m", self.cpu_millis)),
            ("memory", self.memory_bytes.to_string()),
            ("ephemeral-storage", self.storage_bytes.to_string()),
            ("pods", self.pods.to_string()),
        ]
        .map(|(name, amount)| (name.to_owned(), amount))
        .into()
    }
}

/// Capacity and allocatable of an instance with this configuration.
pub fn of(
    instance: &Instance,
    bootstrap: &Bootstrap,
    root_volume_bytes: i64,
) -> (Amounts, Amounts) {
    let by_interfaces = i64::from(instance.eni_max_pods);
    let stated = bootstrap.max_pods.map_or(by_interfaces, i64::from);
    let per_core =
        bootstrap.pods_per_core.map(|pods| i64::from(pods) * instance.cpu_millis / 1_000);
    let pods = per_core.map_or(stated, |limit| limit.min(stated));
    let capacity = Amounts {
        cpu_millis: instance.cpu_millis,
        memory_bytes: instance.memory_bytes,
        storage_bytes: root_volume_bytes,
        pods,
    };
    // Amazon Linux reserves for what its interfaces could carry, Bottlerocket for what it takes.
    let reserved_for = match bootstrap.system {
        OperatingSystem::Bottlerocket => pods,
        OperatingSystem::AmazonLinux2023 | OperatingSystem::AmazonLinux2 => by_interfaces,
    };
    let kept = kept(&capacity, bootstrap, reserved_for);
    let allocatable = Amounts {
        cpu_millis: (capacity.cpu_millis - kept.cpu_millis).max(0),
        memory_bytes: (capacity.memory_bytes - kept.memory_bytes).max(0),
        storage_bytes: (capacity.storage_bytes - kept.storage_bytes).max(0),
        pods,
    };
    (capacity, allocatable)
}

fn kept(capacity: &Amounts, bootstrap: &Bootstrap, reserved_for: i64) -> Amounts {
    let kubelet = |name: &str, computed: i64| {
        bootstrap.kube_reserved.get(name).and_then(|text| amount(name, text)).unwrap_or(computed)
    };
    let system = |name: &str| {
        bootstrap.system_reserved.get(name).and_then(|text| amount(name, text)).unwrap_or(0)
    };
    let eviction = |signal: &str, total: i64, default: i64| {
        let stated = bootstrap.eviction_hard.get(signal);
        stated.and_then(|text| threshold(text, total)).unwrap_or(default)
    };
    let kubelet_memory = KUBELET_MEMORY_BASE_BYTES + KUBELET_MEMORY_PER_POD_BYTES * reserved_for;
    let storage = capacity.storage_bytes;
    let eviction_storage = percent_of(storage, EVICTION_STORAGE_PERCENT);
    Amounts {
        cpu_millis: kubelet("cpu", kubelet_cpu_millis(capacity.cpu_millis)) + system("cpu"),
        memory_bytes: kubelet("memory", kubelet_memory)
            + system("memory")
            + eviction("memory.available", capacity.memory_bytes, EVICTION_MEMORY_BYTES),
        storage_bytes: kubelet("ephemeral-storage", KUBELET_STORAGE_BYTES)
            + system("ephemeral-storage")
            + eviction("nodefs.available", storage, eviction_storage),
        pods: 0,
    }
}

/// 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest.
fn kubelet_cpu_millis(cpu_millis: i64) -> i64 {
    let mut left = cpu_millis;
    let mut reserved = 0;
    for (width, share) in CPU_BANDS {
        let here = left.min(width);
        reserved += here * share / 10_000;
        left -= here;
    }
    reserved
}

/// A quantity in the unit used here: thousandths of a core, or bytes.
fn amount(name: &str, text: &str) -> Option<i64> {
    let thousandths = thousandths(text)?;
    Some(if name == "cpu" { thousandths } else { thousandths / 1_000 })
}

/// A quantity or a percentage of the total; 100 % switches the threshold off.
fn threshold(text: &str, total: i64) -> Option<i64> {
    match text.strip_suffix('%') {
        Some("100") => Some(0),
        Some(percent) => Some(percent_of(total, percent.parse().ok()?)),
        None => amount("", text),
    }
}

fn percent_of(total: i64, percent: i64) -> i64 {
    (total * percent + 99) / 100
}

#[cfg(test)]
mod tests;
