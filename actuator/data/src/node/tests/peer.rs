//! Every type under five settings, against what Karpenter's own code says of it
//! (`generator/generate.sh --peer`): a NodePool must mean the same under both.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::with;
use crate::node::{
    AmiFamily, GIB, MIB, NodeSettings, Reserved, ReservedOverrides, Resources, Threshold,
    allocatable,
};
use crate::{Arch, Dataset, InstanceType, labels};

static PEER: &[u8] = include_bytes!("peer.jsonl.zst");

/// Labels that depend on the image or the region, not on the type alone.
const NOT_OF_THE_TYPE: [&str; 3] =
    ["karpenter.sh/capacity-type", "kubernetes.io/os", "topology.kubernetes.io/region"];

#[derive(Deserialize)]
struct Row {
    setting: String,
    #[serde(rename = "type")]
    instance_type: String,
    allocatable: BTreeMap<String, i64>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// The settings of generator/peer/main.go, by its names.
fn settings(name: &str) -> NodeSettings {
    match name {
        "default" => NodeSettings::default(),
        "bottlerocket" => with(|s| {
            s.ami_family = AmiFamily::Bottlerocket;
            s.kubelet.max_pods = Some(58);
            s.kubelet.pods_per_core = Some(3);
        }),
        "tuned" => with(tune),
        "reserved-enis" => with(|s| {
            s.ami_family = AmiFamily::Custom;
            s.reserved_enis = 1;
        }),
        "windows" => with(|s| s.ami_family = AmiFamily::Windows2022),
        unknown => panic!("no setting called {unknown}"),
    }
}

fn tune(settings: &mut NodeSettings) {
    settings.ami_family = AmiFamily::Al2;
    settings.local_disks_raid0 = true;
    let kubelet = &mut settings.kubelet;
    kubelet.max_pods = Some(110);
    kubelet.pods_per_core = Some(10);
    kubelet.kube_reserved = ReservedOverrides {
        cpu_millis: Some(200),
        memory_bytes: Some(GIB),
        ephemeral_storage_bytes: None,
    };
    kubelet.system_reserved =
        Reserved { cpu_millis: 100, memory_bytes: 256 * MIB, ephemeral_storage_bytes: 0 };
    kubelet.eviction_memory = Some(Threshold::PartsPerMillion(50_000));
    kubelet.eviction_nodefs = Some(Threshold::PartsPerMillion(150_000));
}

fn named(node: Resources) -> BTreeMap<String, i64> {
    let mut amounts: BTreeMap<_, _> =
        node.extended.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    amounts.insert("cpu".to_owned(), node.cpu_millis);
    amounts.insert("memory".to_owned(), node.memory_bytes);
    amounts.insert("ephemeral-storage".to_owned(), node.ephemeral_storage_bytes);
    amounts.insert("pods".to_owned(), node.pods);
    let present = amounts.into_iter().filter(|(_, amount)| *amount > 0);
    present.map(|(name, amount)| (name, i64::try_from(amount).expect("fits"))).collect()
}

/// The peer lets memory fall below zero; and it does not know the addresses of types that are
/// newer than its table, where we have EC2's own number.
fn agree(found: &InstanceType, peer: &Row) -> BTreeMap<String, i64> {
    let mut expected = peer.allocatable.clone();
    expected.retain(|_, amount| *amount > 0);
    if peer.setting == "windows" && found.arch == Arch::Amd64 {
        let addresses = i64::from(found.network.ipv4_per_interface) - 1;
        expected.entry("vpc.amazonaws.com/PrivateIPv4Address".to_owned()).or_insert(addresses);
    }
    expected
}

#[test]
fn every_node_and_label_is_what_the_peer_says() {
    let facts = Dataset::embedded().expect("embedded facts decode");
    let lines = zstd::decode_all(PEER).expect("the peer's answers decompress");
    let rows = serde_json::Deserializer::from_slice(&lines).into_iter::<Row>();
    let mut compared = 0;
    for mut row in rows.map(|row| row.expect("the peer's answers parse")) {
        // The peer was asked about macOS hosts too, which the facts leave out.
        let Some(found) = facts.instance_type(&row.instance_type) else { continue };
        let at = format!("{} {}", row.setting, row.instance_type);
        let ours = named(allocatable(found, &settings(&row.setting)));
        assert_eq!(ours, agree(found, &row), "{at}");
        if !row.labels.is_empty() {
            row.labels.retain(|key, _| !NOT_OF_THE_TYPE.contains(&key.as_str()));
            let ours = labels::of_type(found).into_iter();
            let ours: BTreeMap<_, _> = ours.map(|(key, value)| (key.to_owned(), value)).collect();
            assert_eq!(ours, row.labels, "{at}");
        }
        compared += 1;
    }
    assert_eq!(compared, 5 * facts.instance_types().len());
}
