//! Amazon Linux 2023: a NodeConfig for nodeadm, in a multipart document.
//!
//! Invariant: ours is the last part, and nodeadm merges later parts over earlier ones. What the
//! node class does not set is left to nodeadm, which computes pods and reservations of a type as
//! the catalogue does; so templates do not depend on the type.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::mime::{Part, document, parts_of};
use super::{Boot, UserDataError, effect, labels_line};

const NODE_CONFIG: &str = "application/node.eks.aws";
const SHELL_SCRIPT: &str = "text/x-shellscript; charset=\"us-ascii\"";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeConfig<'a> {
    api_version: &'static str,
    kind: &'static str,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Spec<'a> {
    cluster: Cluster<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<Value>,
    kubelet: KubeletPart,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cluster<'a> {
    name: &'a str,
    api_server_endpoint: &'a str,
    certificate_authority: &'a str,
    cidr: &'a str,
}

#[derive(Serialize)]
struct KubeletPart {
    config: BTreeMap<&'static str, Value>,
    flags: Vec<String>,
}

pub fn render(boot: &Boot<'_>) -> Result<String, UserDataError> {
    let mut parts = parts_of(boot.custom, content_type);
    let config = serde_saphyr::to_string(&node_config(boot)).map_err(|error| {
        UserDataError::Unreadable { expected: "a NodeConfig", problem: error.to_string() }
    })?;
    parts.push(Part::new(NODE_CONFIG, &config));
    Ok(document(&parts))
}

/// A YAML map is a NodeConfig, anything else a script.
fn content_type(custom: &str) -> &'static str {
    let map = serde_saphyr::from_str::<BTreeMap<String, Value>>(custom).is_ok();
    if map { NODE_CONFIG } else { SHELL_SCRIPT }
}

fn node_config<'a>(boot: &'a Boot<'a>) -> NodeConfig<'a> {
    let instance = boot.raid0.then(|| json!({"localStorage": {"strategy": "RAID0"}}));
    NodeConfig {
        api_version: "node.eks.aws/v1alpha1",
        kind: "NodeConfig",
        spec: Spec {
            cluster: Cluster {
                name: &boot.cluster.name,
                api_server_endpoint: &boot.cluster.endpoint,
                certificate_authority: &boot.cluster.ca_bundle,
                cidr: &boot.cluster.service_cidr,
            },
            instance,
            kubelet: KubeletPart {
                config: kubelet_config(boot),
                flags: vec![format!("--node-labels={}", labels_line(&boot.labels))],
            },
        },
    }
}

fn kubelet_config(boot: &Boot<'_>) -> BTreeMap<&'static str, Value> {
    let kubelet = &boot.kubelet;
    let mut config = BTreeMap::new();
    let dns = boot.cluster_dns();
    if !dns.is_empty() {
        config.insert("clusterDNS", json!(dns));
    }
    let maps = [
        ("systemReserved", &kubelet.system_reserved),
        ("kubeReserved", &kubelet.kube_reserved),
        ("evictionHard", &kubelet.eviction_hard),
        ("evictionSoft", &kubelet.eviction_soft),
        ("evictionSoftGracePeriod", &kubelet.eviction_soft_grace_period),
    ];
    for (key, map) in maps {
        if !map.is_empty() {
            config.insert(key, json!(map));
        }
    }
    let numbers = [
        ("maxPods", kubelet.max_pods),
        ("podsPerCore", kubelet.pods_per_core),
        ("evictionMaxPodGracePeriod", kubelet.eviction_max_pod_grace_period_seconds),
        ("imageGCHighThresholdPercent", kubelet.image_gc_high_threshold_percent),
        ("imageGCLowThresholdPercent", kubelet.image_gc_low_threshold_percent),
    ];
    for (key, number) in numbers {
        config.extend(number.map(|number| (key, json!(number))));
    }
    config.extend(kubelet.cpu_cfs_quota.map(|quota| ("cpuCFSQuota", json!(quota))));
    let taints = boot.taints.iter().map(|taint| {
        let mut shown = json!({"key": taint.key, "effect": effect(taint)});
        if !taint.value.is_empty() {
            shown["value"] = json!(taint.value);
        }
        shown
    });
    config.insert("registerWithTaints", taints.collect());
    config
}
