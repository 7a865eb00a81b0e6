//! The part of the kubelet's configuration that a node class sets.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::primitive::{Quantity, ResourceList};
use super::schema::{QUANTITY, rules};

/// Kubelet configuration. What is missing keeps the kubelet's own default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    (
        "!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) \
         || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",
        "imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",
    ),
    (
        "!has(self.evictionSoft) || self.evictionSoft.all(x, \
         has(self.evictionSoftGracePeriod) && x in self.evictionSoftGracePeriod)",
        "each signal of evictionSoft needs an entry in evictionSoftGracePeriod",
    ),
    (
        "!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(x, \
         has(self.evictionSoft) && x in self.evictionSoft)",
        "each signal of evictionSoftGracePeriod needs an entry in evictionSoft",
    ),
])))]
pub struct KubeletConfiguration {
    /// Addresses of the cluster's DNS.
    #[serde(rename = "clusterDNS", default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_dns: Vec<String>,
    /// Most pods on a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_pods: Option<i32>,
    /// Most pods for each core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub pods_per_core: Option<i32>,
    /// Reserved for the operating system.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "reserved")]
    pub system_reserved: ResourceList,
    /// Reserved for the kubelet and its kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "reserved")]
    pub kube_reserved: ResourceList,
    /// Signal to threshold at which pods are evicted at once: a share (`5%`) or a quantity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "thresholds")]
    pub eviction_hard: BTreeMap<String, String>,
    /// Signal to threshold at which pods are evicted after a grace period.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "thresholds")]
    pub eviction_soft: BTreeMap<String, String>,
    /// Signal to grace period of its soft threshold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-validations" = signals()))]
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    /// Longest termination grace period of a pod that a soft threshold evicts, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_max_pod_grace_period: Option<i32>,
    /// Disk usage in percent above which unused images are removed.
    #[serde(
        rename = "imageGCHighThresholdPercent",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// Disk usage in percent down to which unused images are removed.
    #[serde(
        rename = "imageGCLowThresholdPercent",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Whether CPU limits are enforced by quota.
    #[serde(rename = "cpuCFSQuota", default, skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
    /// Only in the legacy API, where it has no effect any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub container_runtime: Option<String>,
}

/// As the legacy API has it: bare numbers may be reserved, and a container runtime named.
pub fn legacy(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = KubeletConfiguration::json_schema(generator);
    if let Some(Value::Object(properties)) = schema.pointer_mut("/properties") {
        for field in ["systemReserved", "kubeReserved"] {
            properties[field]["additionalProperties"] = Quantity::json_schema(generator).to_value();
            properties[field]["x-kubernetes-validations"] = rules(&[RESERVABLE]);
        }
        let runtime = json!({ "type": "string", "description": "Ignored: containerd is used." });
        properties.insert("containerRuntime".into(), runtime);
    }
    schema
}

const RESERVABLE: (&str, &str) = (
    "self.all(x, x in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",
    "only cpu, memory, ephemeral-storage and pid may be reserved",
);

fn reserved(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "pattern": QUANTITY },
        "x-kubernetes-validations": rules(&[
            RESERVABLE,
            ("self.all(x, !self[x].startsWith('-'))", "a reservation may not be negative"),
        ]),
    })
}

fn thresholds(_: &mut SchemaGenerator) -> Schema {
    let share = r"([0-9]{1,2}(\.[0-9]{1,2})?|100(\.0{1,2})?)%";
    let unsigned = QUANTITY.trim_start_matches(r"^(\+|-)?").trim_end_matches('$');
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "type": "string",
            "pattern": format!(r"^({share}|\+?{unsigned})$"),
        },
        "x-kubernetes-validations": signals(),
    })
}

fn signals() -> Value {
    rules(&[(
        "self.all(x, x in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', \
         'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",
        "the signals are memory.available, nodefs.available, nodefs.inodesFree, \
         imagefs.available, imagefs.inodesFree and pid.available",
    )])
}
