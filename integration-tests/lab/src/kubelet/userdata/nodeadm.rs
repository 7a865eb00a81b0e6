//! NodeConfig documents, `node.eks.aws/v1alpha1`, as nodeadm reads them.
//!
//! Invariant: later documents win field by field; lists are replaced, flags are appended.

use serde_json::Value;

use super::shell::words;
use super::{Bootstrap, OperatingSystem, Taint, UserDataError, apply_flags};
use crate::cluster::object;

pub(super) fn parse(documents: &[&str]) -> Result<Bootstrap, UserDataError> {
    let malformed = |problem: String| UserDataError::Malformed { format: "NodeConfig", problem };
    let mut merged = Value::Null;
    let mut flags: Vec<String> = Vec::new();
    for document in documents {
        let config: Value =
            serde_saphyr::from_str(document).map_err(|error| malformed(error.to_string()))?;
        if !config.is_object() {
            return Err(malformed("the document is not a map".into()));
        }
        // systemd takes the quotes off, as a shell does.
        flags.extend(strings(&config["spec"]["kubelet"]["flags"]).flat_map(|flag| words(&flag)));
        merge(&mut merged, &config);
    }
    let version = merged["apiVersion"].as_str().unwrap_or("node.eks.aws/v1alpha1");
    if !version.starts_with("node.eks.aws/") {
        return Err(malformed(format!("apiVersion {version} is not node.eks.aws/v1alpha1")));
    }
    let cluster = &merged["spec"]["cluster"];
    for (field, path) in [
        ("apiServerEndpoint", "spec.cluster.apiServerEndpoint"),
        ("certificateAuthority", "spec.cluster.certificateAuthority"),
        ("cidr", "spec.cluster.cidr"),
    ] {
        if cluster[field].as_str().unwrap_or_default().is_empty() {
            return Err(UserDataError::Missing(path));
        }
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let config = &merged["spec"]["kubelet"]["config"];
    let number = |field: &str| config[field].as_u64().and_then(|n| u32::try_from(n).ok());
    let taints = object::items(&config["registerWithTaints"]).iter().map(|taint| Taint {
        key: text(&taint["key"]),
        value: text(&taint["value"]),
        effect: text(&taint["effect"]),
    });
    let mut bootstrap = Bootstrap {
        system: OperatingSystem::AmazonLinux2023,
        cluster_name: text(&cluster["name"]),
        endpoint: text(&cluster["apiServerEndpoint"]),
        taints: taints.collect(),
        max_pods: number("maxPods"),
        pods_per_core: number("podsPerCore").filter(|number| *number > 0),
        kube_reserved: object::string_map(&config["kubeReserved"]),
        system_reserved: object::string_map(&config["systemReserved"]),
        eviction_hard: object::string_map(&config["evictionHard"]),
        ..Bootstrap::default()
    };
    apply_flags(&mut bootstrap, &flags);
    Ok(bootstrap)
}

fn strings(list: &Value) -> impl Iterator<Item = String> {
    object::items(list).iter().filter_map(|item| item.as_str().map(str::to_owned))
}

fn merge(target: &mut Value, update: &Value) {
    let Some(update) = update.as_object() else {
        target.clone_from(update);
        return;
    };
    if !target.is_object() {
        *target = serde_json::json!({});
    }
    for (field, value) in update {
        merge(&mut target[field.as_str()], value);
    }
}
