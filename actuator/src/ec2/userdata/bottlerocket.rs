//! Bottlerocket: settings in TOML, merged over the user's.
//!
//! Invariant: what the user sets and we do not need stays as it is, settings under
//! `settings.kubernetes` included; what joins the node to its cluster is ours.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{Boot, UserDataError, effect};

/// Runs before the kubelet and turns instance stores into its data volume.
const MOUNT_INSTANCE_STORAGE: &str = "000-mount-instance-storage";

pub fn render(boot: &Boot<'_>) -> Result<String, UserDataError> {
    let unreadable = |problem: String| UserDataError::Unreadable { expected: "TOML", problem };
    let mut document: Table =
        boot.custom.parse().map_err(|error: toml::de::Error| unreadable(error.to_string()))?;
    let settings = table(&mut document, "settings").map_err(unreadable)?;
    if boot.raid0 {
        mount_instance_storage(settings).map_err(unreadable)?;
    }
    let kubernetes = table(settings, "kubernetes").map_err(unreadable)?;
    join(boot, kubernetes);
    let labels = table(kubernetes, "node-labels").map_err(unreadable)?;
    for (key, value) in &boot.labels {
        labels.insert(key.clone(), Value::String(value.clone()));
    }
    kubernetes.insert("node-taints".to_owned(), taints(boot));
    configure(boot, kubernetes);
    toml::to_string(&document).map_err(|error| unreadable(error.to_string()))
}

fn table<'a>(parent: &'a mut Table, key: &str) -> Result<&'a mut Table, String> {
    let slot = parent.entry(key).or_insert_with(|| Value::Table(Table::new()));
    slot.as_table_mut().ok_or_else(|| format!("{key} is not a table"))
}

fn join(boot: &Boot<'_>, kubernetes: &mut Table) {
    let facts = [
        ("api-server", &boot.cluster.endpoint),
        ("cluster-certificate", &boot.cluster.ca_bundle),
        ("cluster-name", &boot.cluster.name),
    ];
    for (key, value) in facts {
        kubernetes.insert(key.to_owned(), Value::String(value.clone()));
    }
    if let Some(address) = boot.cluster_dns().into_iter().next() {
        kubernetes.insert("cluster-dns-ip".to_owned(), Value::String(address));
    }
}

fn taints(boot: &Boot<'_>) -> Value {
    let mut by_key: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for taint in &boot.taints {
        let shown = format!("{}:{}", taint.value, effect(taint));
        by_key.entry(&taint.key).or_default().push(Value::String(shown));
    }
    let table = by_key.into_iter().map(|(key, values)| (key.to_owned(), Value::Array(values)));
    Value::Table(table.collect())
}

fn configure(boot: &Boot<'_>, kubernetes: &mut Table) {
    let kubelet = &boot.kubelet;
    let maps = [
        ("system-reserved", &kubelet.system_reserved),
        ("kube-reserved", &kubelet.kube_reserved),
        ("eviction-hard", &kubelet.eviction_hard),
        ("eviction-soft", &kubelet.eviction_soft),
        ("eviction-soft-grace-period", &kubelet.eviction_soft_grace_period),
    ];
    for (key, map) in maps {
        if !map.is_empty() {
            kubernetes.insert(key.to_owned(), string_table(map));
        }
    }
    let text = |number: i32| Value::String(number.to_string());
    let single = [
        ("max-pods", kubelet.max_pods.map(|n| Value::Integer(n.into()))),
        (
            "eviction-max-pod-grace-period",
            kubelet.eviction_max_pod_grace_period_seconds.map(|n| Value::Integer(n.into())),
        ),
        ("image-gc-high-threshold-percent", kubelet.image_gc_high_threshold_percent.map(text)),
        ("image-gc-low-threshold-percent", kubelet.image_gc_low_threshold_percent.map(text)),
        ("cpu-cfs-quota-enforced", kubelet.cpu_cfs_quota.map(Value::Boolean)),
    ];
    for (key, value) in single {
        if let Some(value) = value {
            kubernetes.insert(key.to_owned(), value);
        }
    }
}

fn string_table(map: &BTreeMap<String, String>) -> Value {
    let table = map.iter().map(|(key, value)| (key.clone(), Value::String(value.clone())));
    Value::Table(table.collect())
}

fn mount_instance_storage(settings: &mut Table) -> Result<(), String> {
    let commands =
        ["init", "bind"].map(|step| Value::from(vec!["apiclient", "ephemeral-storage", step]));
    let command = Table::from_iter([
        ("commands".to_owned(), Value::Array(commands.to_vec())),
        ("essential".to_owned(), Value::Boolean(true)),
        ("mode".to_owned(), Value::String("always".to_owned())),
    ]);
    let bootstrap = table(settings, "bootstrap-commands")?;
    bootstrap.insert(MOUNT_INSTANCE_STORAGE.to_owned(), Value::Table(command));
    Ok(())
}
