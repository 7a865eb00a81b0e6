//! A node class's kubelet settings and volumes, as the capacity formulas want them.
//!
//! Invariant: a quantity that cannot be read counts as absent; the API server has checked it.

use std::collections::BTreeMap;

use longshore_ec2_data::{
    AmiFamily, KubeletSettings, NodeSettings, Reserved, ReservedOverrides, Threshold,
};
use longshore_proto::types::v1::{BlockDevice, Kubelet};

use crate::nodeclass::Resolved;

/// Settings of a class.
#[must_use]
pub fn node_settings(class: &Resolved) -> NodeSettings {
    let spec = &class.class;
    NodeSettings {
        ami_family: class.family,
        kubelet: spec.kubelet.as_ref().map(kubelet_settings).unwrap_or_default(),
        data_volume_bytes: data_volume_bytes(&spec.block_devices, class.family),
        local_disks_raid0: spec.instance_store_policy == "RAID0",
        ..NodeSettings::default()
    }
}

fn kubelet_settings(kubelet: &Kubelet) -> KubeletSettings {
    let system = overrides(&kubelet.system_reserved);
    let unsigned = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok());
    KubeletSettings {
        max_pods: unsigned(kubelet.max_pods),
        pods_per_core: unsigned(kubelet.pods_per_core),
        kube_reserved: overrides(&kubelet.kube_reserved),
        system_reserved: Reserved {
            cpu_millis: system.cpu_millis.unwrap_or_default(),
            memory_bytes: system.memory_bytes.unwrap_or_default(),
            ephemeral_storage_bytes: system.ephemeral_storage_bytes.unwrap_or_default(),
        },
        eviction_memory: threshold(&kubelet.eviction_hard, "memory.available"),
        eviction_nodefs: threshold(&kubelet.eviction_hard, "nodefs.available"),
    }
}

fn overrides(map: &BTreeMap<String, String>) -> ReservedOverrides {
    let units = |key: &str| map.get(key).and_then(|text| thousandths(text));
    let whole = |key: &str| units(key).map(|thousandths| thousandths.div_ceil(1000));
    ReservedOverrides {
        cpu_millis: units("cpu"),
        memory_bytes: whole("memory"),
        ephemeral_storage_bytes: whole("ephemeral-storage"),
    }
}

fn threshold(map: &BTreeMap<String, String>, signal: &str) -> Option<Threshold> {
    let text = map.get(signal)?;
    match text.strip_suffix('%') {
        // One percent is ten thousand parts per million.
        Some(percent) => Some(Threshold::PartsPerMillion(thousandths(percent)? * 10)),
        None => Some(Threshold::Bytes(thousandths(text)?.div_ceil(1000))),
    }
}

/// The volume that pods write to: the one marked as root, else the family's data device; images of
/// the user's own use their last volume.
fn data_volume_bytes(devices: &[BlockDevice], family: AmiFamily) -> Option<u64> {
    let marked = devices.iter().find(|device| device.root_volume);
    let found = marked.or_else(|| match family.data_device() {
        Some(name) => devices.iter().find(|device| device.device_name == name),
        None => devices.last(),
    });
    let bytes = found.and_then(|device| u64::try_from(device.volume_size_bytes).ok());
    bytes.filter(|bytes| *bytes > 0)
}

/// A Kubernetes quantity in thousandths, rounded up.
fn thousandths(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 12] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("m", 0),
        ("", 1),
    ];
    let (number, unit) =
        UNITS.iter().find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, *unit)))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    // A thousandth is the smallest unit; every other unit is a thousand of them or more.
    let factor = if unit == 0 { 1 } else { u128::from(unit) * 1000 };
    u64::try_from(digits.checked_mul(factor)?.div_ceil(scale)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read() {
        let table = [
            ("100m", Some(100)),
            ("2", Some(2000)),
            ("0.5", Some(500)),
            ("1Ki", Some(1_024_000)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("1k", Some(1_000_000)),
            ("0.0001", Some(1)),
            ("", None),
            ("x", None),
        ];
        for (text, amount) in table {
            assert_eq!(thousandths(text), amount, "{text}");
        }
    }

    #[test]
    fn a_kubelet_becomes_settings() {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let kubelet = Kubelet {
            max_pods: Some(100),
            kube_reserved: map(&[("memory", "300Mi")]),
            system_reserved: map(&[("cpu", "100m")]),
            eviction_hard: map(&[("memory.available", "5%"), ("nodefs.available", "1Gi")]),
            ..Kubelet::default()
        };
        let settings = kubelet_settings(&kubelet);
        assert_eq!(settings.max_pods, Some(100));
        assert_eq!(settings.kube_reserved.memory_bytes, Some(300 << 20));
        assert_eq!(settings.system_reserved.cpu_millis, 100);
        assert_eq!(settings.eviction_memory, Some(Threshold::PartsPerMillion(50_000)));
        assert_eq!(settings.eviction_nodefs, Some(Threshold::Bytes(1 << 30)));
    }

    #[test]
    fn the_volume_of_pods_is_found() {
        let device = |name: &str, gib: i64, root_volume: bool| BlockDevice {
            device_name: name.to_owned(),
            volume_size_bytes: gib << 30,
            root_volume,
            ..BlockDevice::default()
        };
        let two = [device("/dev/xvda", 4, false), device("/dev/xvdb", 50, false)];
        let table =
            [(AmiFamily::Bottlerocket, 50), (AmiFamily::Al2023, 4), (AmiFamily::Custom, 50)];
        for (family, gib) in table {
            assert_eq!(data_volume_bytes(&two, family), Some(gib << 30), "{family:?}");
        }
        let marked = [device("/dev/xvda", 4, true), device("/dev/xvdb", 50, false)];
        assert_eq!(data_volume_bytes(&marked, AmiFamily::Bottlerocket), Some(4 << 30));
    }
}
