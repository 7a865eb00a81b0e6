//! Golden vectors of published nodes, and the settings that move them.

mod peer;

use super::*;
use crate::{Dataset, InstanceType};

fn instance_type(name: &str) -> &'static InstanceType {
    let facts = Dataset::embedded().expect("embedded facts decode");
    facts.instance_type(name).unwrap_or_else(|| panic!("no type {name}"))
}

fn with(change: impl FnOnce(&mut NodeSettings)) -> NodeSettings {
    let mut settings = NodeSettings::default();
    change(&mut settings);
    settings
}

fn devices(node: &Resources) -> String {
    let named = node.extended.iter().map(|(name, count)| format!("{name}={count}"));
    named.collect::<Vec<_>>().join(" ")
}

/// Allocatable of AL2023 nodes as published: type, pods, millicores, MiB, devices.
#[test]
fn allocatable_is_what_nodes_report() {
    for (name, pods, cpu_millis, memory_mib, extended) in [
        ("t3.medium", 17, 1930, 3246, ""),
        ("m5.large", 29, 1930, 6903, "vpc.amazonaws.com/pod-eni=9"),
        ("m6g.large", 29, 1930, 6844, "vpc.amazonaws.com/pod-eni=9"),
        ("c7g.xlarge", 58, 3920, 6525, "vpc.amazonaws.com/pod-eni=18"),
        ("r5.24xlarge", 737, 95_690, 718_987, "vpc.amazonaws.com/pod-eni=107"),
        ("g5.xlarge", 58, 3920, 14_162, "nvidia.com/gpu=1 vpc.amazonaws.com/pod-eni=4"),
        (
            "inf2.xlarge",
            58,
            3920,
            14_162,
            "aws.amazon.com/neuron=1 aws.amazon.com/neuroncore=2 vpc.amazonaws.com/pod-eni=18",
        ),
        (
            "trn1.32xlarge",
            247,
            127_610,
            481_894,
            "aws.amazon.com/neuron=16 aws.amazon.com/neuroncore=32 vpc.amazonaws.com/efa=8 \
             vpc.amazonaws.com/pod-eni=82",
        ),
        (
            "p4d.24xlarge",
            737,
            95_690,
            1_082_712,
            "nvidia.com/gpu=8 vpc.amazonaws.com/efa=4 vpc.amazonaws.com/pod-eni=62",
        ),
        (
            "p5.48xlarge",
            100,
            191_450,
            1_938_410,
            "nvidia.com/gpu=8 vpc.amazonaws.com/efa=32 vpc.amazonaws.com/pod-eni=120",
        ),
        ("u-6tb1.112xlarge", 737, 446_810, 5_811_134, ""),
        ("a1.medium", 8, 940, 1392, "vpc.amazonaws.com/pod-eni=10"),
    ] {
        let node = allocatable(instance_type(name), &NodeSettings::default());
        assert_eq!(node.pods, pods, "{name}: pods");
        assert_eq!(node.cpu_millis, cpu_millis, "{name}: cpu");
        assert_eq!(node.memory_bytes, memory_mib * MIB, "{name}: memory");
        assert_eq!(node.ephemeral_storage_bytes, 17 * GIB, "{name}: ephemeral storage");
        assert_eq!(devices(&node), extended, "{name}: devices");
    }
}

#[test]
fn capacity_less_overhead_is_allocatable() {
    let m5_large = instance_type("m5.large");
    let settings = NodeSettings::default();
    let all = capacity(m5_large, &settings);
    let kept = overhead(m5_large, &settings);
    assert_eq!(all.memory_bytes, 7577 * MIB);
    assert_eq!(kept.kube_reserved.memory_bytes, (11 * 29 + 255) * MIB);
    assert_eq!(kept.kube_reserved.cpu_millis, 70);
    assert_eq!(kept.system_reserved, Reserved::default());
    assert_eq!(kept.eviction.memory_bytes, 100 * MIB);
    assert_eq!(kept.eviction.ephemeral_storage_bytes, 2 * GIB);
    let left = all.memory_bytes - kept.total().memory_bytes;
    assert_eq!(left, allocatable(m5_large, &settings).memory_bytes);
}

#[test]
fn max_pods_moves_memory_only_where_the_kubelet_is_sized_by_pods() {
    let m5_large = instance_type("m5.large");
    for (ami_family, kubelet_pods) in
        [(AmiFamily::Al2023, 29), (AmiFamily::Custom, 29), (AmiFamily::Bottlerocket, 100)]
    {
        let settings = with(|s| {
            s.ami_family = ami_family;
            s.kubelet.max_pods = Some(100);
        });
        assert_eq!(capacity(m5_large, &settings).pods, 100, "{ami_family:?}");
        let kept = overhead(m5_large, &settings).kube_reserved.memory_bytes;
        assert_eq!(kept, (11 * kubelet_pods + 255) * MIB, "{ami_family:?}");
    }
}

#[test]
fn pods_per_core_limits_where_the_family_takes_it() {
    let m5_large = instance_type("m5.large");
    for (ami_family, per_core, pods) in [
        (AmiFamily::Al2023, 4, 8),
        (AmiFamily::Al2023, 0, 29),
        (AmiFamily::Al2023, 40, 29),
        (AmiFamily::Bottlerocket, 4, 29),
        (AmiFamily::Windows2022, 4, 8),
        (AmiFamily::Windows2022, 0, 110),
    ] {
        let settings = with(|s| {
            s.ami_family = ami_family;
            s.kubelet.pods_per_core = Some(per_core);
        });
        assert_eq!(capacity(m5_large, &settings).pods, pods, "{ami_family:?} {per_core}");
    }
}

#[test]
fn interfaces_that_carry_no_pods_take_their_addresses_along() {
    let m5_large = instance_type("m5.large");
    for (reserved_enis, on_first_card, pods) in [(1, 0, 20), (1, 1, 11), (3, 0, 0), (9, 9, 0)] {
        let settings = with(|s| {
            s.reserved_enis = reserved_enis;
            s.efa_only = Some(EfaOnlyInterfaces { total: on_first_card, on_first_card });
        });
        assert_eq!(capacity(m5_large, &settings).pods, pods, "{reserved_enis} {on_first_card}");
        // The kubelet's memory does not follow the reserved interfaces, only the EFA ones.
        let kubelet_pods = eni_limited_pods(m5_large, on_first_card);
        let kept = overhead(m5_large, &settings).kube_reserved.memory_bytes;
        assert_eq!(kept, (11 * kubelet_pods + 255) * MIB);
    }
}

#[test]
fn listed_interfaces_replace_the_types_own_efa_count() {
    let p5 = instance_type("p5.48xlarge");
    let settings = with(|s| s.efa_only = Some(EfaOnlyInterfaces { total: 16, on_first_card: 0 }));
    assert_eq!(capacity(p5, &settings).extended.get("vpc.amazonaws.com/efa"), Some(&16));
    let settings = with(|s| s.efa_only = Some(EfaOnlyInterfaces::default()));
    assert_eq!(capacity(p5, &settings).extended.get("vpc.amazonaws.com/efa"), None);
}

#[test]
fn overrides_replace_key_by_key() {
    let m5_large = instance_type("m5.large");
    let settings = with(|s| {
        s.kubelet.kube_reserved.cpu_millis = Some(200);
        s.kubelet.system_reserved.memory_bytes = 256 * MIB;
        s.kubelet.eviction_memory = Some(Threshold::PartsPerMillion(50_000));
        s.kubelet.eviction_nodefs = Some(Threshold::Bytes(GIB));
    });
    let kept = overhead(m5_large, &settings);
    assert_eq!(kept.kube_reserved.cpu_millis, 200);
    assert_eq!(kept.kube_reserved.memory_bytes, 574 * MIB);
    assert_eq!(kept.system_reserved.memory_bytes, 256 * MIB);
    assert_eq!(kept.eviction.memory_bytes, (7577 * MIB).div_ceil(20));
    assert_eq!(kept.eviction.ephemeral_storage_bytes, GIB);
}

#[test]
fn a_threshold_of_the_whole_is_off() {
    assert_eq!(Threshold::PartsPerMillion(MILLION).bytes_of(100), 0);
    assert_eq!(Threshold::PartsPerMillion(1).bytes_of(100), 1);
    assert_eq!(Threshold::PartsPerMillion(0).bytes_of(100), 0);
    let half = Threshold::PartsPerMillion(MILLION / 2);
    assert_eq!(half.bytes_of(u64::MAX), u64::MAX / 2 + 1, "neither overflows nor rounds down");
}

#[test]
fn storage_is_the_disks_then_the_volume_then_the_family_default() {
    let (m5_large, m5d_large) = (instance_type("m5.large"), instance_type("m5d.large"));
    let raid = with(|s| {
        s.local_disks_raid0 = true;
        s.data_volume_bytes = Some(80 * GIB);
    });
    assert_eq!(capacity(m5d_large, &raid).ephemeral_storage_bytes, 75_000_000_000);
    assert_eq!(capacity(m5_large, &raid).ephemeral_storage_bytes, 80 * GIB);
    let windows = with(|s| s.ami_family = AmiFamily::Windows2025);
    assert_eq!(capacity(m5_large, &windows).ephemeral_storage_bytes, 50 * GIB);
}

#[test]
fn measured_memory_replaces_the_estimate() {
    let settings = with(|s| s.measured_memory_bytes = Some(7700 * MIB));
    assert_eq!(capacity(instance_type("m5.large"), &settings).memory_bytes, 7700 * MIB);
}

#[test]
fn windows_pods_have_addresses_as_a_resource() {
    let settings = with(|s| s.ami_family = AmiFamily::Windows2022);
    let node = capacity(instance_type("m5.large"), &settings);
    assert_eq!(node.extended.get("vpc.amazonaws.com/PrivateIPv4Address"), Some(&9));
}

#[test]
fn nothing_is_below_zero_whatever_is_kept_back() {
    let settings = with(|s| {
        s.vm_memory_overhead_ppm = MILLION;
        s.kubelet.system_reserved =
            Reserved { cpu_millis: u64::MAX, memory_bytes: u64::MAX, ephemeral_storage_bytes: 1 };
    });
    let node = allocatable(instance_type("m5.large"), &settings);
    assert_eq!((node.cpu_millis, node.memory_bytes), (0, 0));
}

#[test]
fn families_are_known_by_the_name_a_node_class_gives_them() {
    for name in
        ["AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"]
    {
        let family = AmiFamily::from_name(name).expect(name);
        assert_eq!(format!("{family:?}").to_lowercase(), name.to_lowercase());
    }
    assert_eq!(AmiFamily::from_name("al2023"), None);
}
