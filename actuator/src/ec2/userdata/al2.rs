//! Amazon Linux 2: a call of the image's bootstrap script, in a multipart document.
//!
//! Invariant: arguments in a fixed order; without `maxPods` in the node class the script counts
//! pods by network interfaces, as the catalogue does.

use std::collections::BTreeMap;

use super::mime::{Part, document, parts_of};
use super::{Boot, labels_line, taints_line};

const SHELL_SCRIPT: &str = "text/x-shellscript; charset=\"us-ascii\"";

pub fn render(boot: &Boot<'_>) -> String {
    let mut parts = parts_of(boot.custom, |_| SHELL_SCRIPT);
    parts.push(Part::new(SHELL_SCRIPT, &script(boot)));
    document(&parts)
}

fn script(boot: &Boot<'_>) -> String {
    let cluster = boot.cluster;
    let mut arguments = vec![
        format!("'{}'", cluster.name),
        format!("--apiserver-endpoint '{}'", cluster.endpoint),
        format!("--b64-cluster-ca '{}'", cluster.ca_bundle),
    ];
    let dns = boot.cluster_dns();
    if dns.first().is_some_and(|address| address.contains(':')) {
        arguments.push("--ip-family ipv6".to_owned());
    }
    arguments.extend(dns.first().map(|address| format!("--dns-cluster-ip '{address}'")));
    if boot.kubelet.max_pods.is_some() {
        arguments.push("--use-max-pods false".to_owned());
    }
    arguments.push(format!("--kubelet-extra-args '{}'", kubelet_flags(boot)));
    if boot.raid0 {
        arguments.push("--local-disks raid0".to_owned());
    }
    format!(
        "#!/bin/bash -xe\nexec > >(tee /var/log/user-data.log|logger -t user-data -s \
         2>/dev/console) 2>&1\n/etc/eks/bootstrap.sh {}",
        arguments.join(" \\\n")
    )
}

fn kubelet_flags(boot: &Boot<'_>) -> String {
    let kubelet = &boot.kubelet;
    let mut flags = vec![
        format!("--node-labels=\"{}\"", labels_line(&boot.labels)),
        format!("--register-with-taints=\"{}\"", taints_line(&boot.taints)),
    ];
    let number = |flag: &str, value: Option<i32>| value.map(|value| format!("{flag}={value}"));
    let map = |flag: &str, map: &BTreeMap<String, String>, relation: &str| {
        let pairs = map.iter().map(|(key, value)| format!("{key}{relation}{value}"));
        (!map.is_empty()).then(|| format!("{flag}=\"{}\"", pairs.collect::<Vec<_>>().join(",")))
    };
    let optional = [
        number("--max-pods", kubelet.max_pods),
        number("--pods-per-core", kubelet.pods_per_core),
        map("--system-reserved", &kubelet.system_reserved, "="),
        map("--kube-reserved", &kubelet.kube_reserved, "="),
        map("--eviction-hard", &kubelet.eviction_hard, "<"),
        map("--eviction-soft", &kubelet.eviction_soft, "<"),
        map("--eviction-soft-grace-period", &kubelet.eviction_soft_grace_period, "="),
        number("--eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period_seconds),
        number("--image-gc-high-threshold", kubelet.image_gc_high_threshold_percent),
        number("--image-gc-low-threshold", kubelet.image_gc_low_threshold_percent),
        kubelet.cpu_cfs_quota.map(|quota| format!("--cpu-cfs-quota={quota}")),
    ];
    flags.extend(optional.into_iter().flatten());
    flags.join(" ")
}
