//! The kubelet's arithmetic against worked examples and against the planner's.

use longshore_ec2_data::{
    AmiFamily, Dataset, NodeSettings, allocatable, capacity, eni_limited_pods,
};

use super::*;
use crate::instance::InstanceState;

const FAMILIES: [(AmiFamily, OperatingSystem); 3] = [
    (AmiFamily::Al2023, OperatingSystem::AmazonLinux2023),
    (AmiFamily::Al2, OperatingSystem::AmazonLinux2),
    (AmiFamily::Bottlerocket, OperatingSystem::Bottlerocket),
];

fn instance(cpu_millis: i64, memory_bytes: i64, eni_max_pods: u32) -> Instance {
    Instance {
        instance_id: "i-0123456789abcdef0".into(),
        instance_type: "m5.large".into(),
        zone: "us-east-1a".into(),
        zone_id: "use1-az1".into(),
        arch: "amd64".into(),
        spot: false,
        state: InstanceState::Running,
        private_dns_name: "ip-10-0-0-1.ec2.internal".into(),
        private_ip: "10.0.0.1".into(),
        image_id: "ami-1".into(),
        user_data: Vec::new(),
        instance_profile: None,
        tags: BTreeMap::new(),
        cpu_millis,
        memory_bytes,
        eni_max_pods,
    }
}

#[test]
fn m5_large_offers_what_the_worked_example_says() {
    let (capacity, allocatable) =
        of(&instance(2_000, 7_577 * MIB, 29), &Bootstrap::default(), 20 * GIB);
    assert_eq!((capacity.cpu_millis, capacity.pods), (2_000, 29));
    assert_eq!(allocatable.cpu_millis, 1_930);
    assert_eq!(allocatable.memory_bytes, 6_903 * MIB);
    assert_eq!(allocatable.storage_bytes, 17 * GIB);
}

#[test]
fn stated_settings_replace_computed_ones() {
    let bootstrap = Bootstrap {
        max_pods: Some(110),
        pods_per_core: Some(10),
        kube_reserved: [("cpu".to_owned(), "100m".to_owned())].into(),
        system_reserved: [("memory".to_owned(), "1Gi".to_owned())].into(),
        eviction_hard: [("memory.available".to_owned(), "5%".to_owned())].into(),
        ..Bootstrap::default()
    };
    let (_, allocatable) = of(&instance(4_000, 16 * GIB, 58), &bootstrap, 20 * GIB);
    assert_eq!((allocatable.cpu_millis, allocatable.pods), (3_900, 40));
    let kept = (255 + 11 * 58 + 1_024) * MIB + (16 * GIB * 5 + 99) / 100;
    assert_eq!(allocatable.memory_bytes, 16 * GIB - kept);
}

#[test]
fn kubelet_and_planner_agree_on_every_type() {
    let facts = Dataset::embedded().unwrap();
    assert!(!facts.instance_types().is_empty());
    for hardware in facts.instance_types() {
        for (ami_family, system) in FAMILIES {
            let settings = NodeSettings {
                ami_family,
                data_volume_bytes: Some(20 << 30),
                ..NodeSettings::default()
            };
            let planned = capacity(hardware, &settings);
            let memory_bytes = i64::try_from(planned.memory_bytes).unwrap();
            let eni = u32::try_from(eni_limited_pods(hardware, 0)).unwrap();
            let machine = instance(i64::from(hardware.vcpus) * 1_000, memory_bytes, eni);
            let bootstrap = Bootstrap { system, ..Bootstrap::default() };
            let (_, ours) = of(&machine, &bootstrap, 20 * GIB);
            let theirs = allocatable(hardware, &settings);
            let amounts = |name: u64| i64::try_from(name).unwrap();
            assert_eq!(ours.cpu_millis, amounts(theirs.cpu_millis), "{}", hardware.name);
            assert_eq!(ours.memory_bytes, amounts(theirs.memory_bytes), "{}", hardware.name);
            assert_eq!(ours.storage_bytes, amounts(theirs.ephemeral_storage_bytes));
            assert_eq!(ours.pods, amounts(theirs.pods), "{}", hardware.name);
        }
    }
}
