//! The Node object of a machine.
//!
//! Invariant: pure; a node is born not ready and carries every label and taint its kubelet was
//! started with.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::KubeletConfig;
use super::capacity;
use super::userdata::{self, Bootstrap, OperatingSystem, Taint};
use crate::instance::Instance;

/// Labels of the Kubernetes domains that a kubelet may give itself.
const OWN_LABELS: [&str; 8] = [
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
];

/// A node that is not one of the region's instances: Fargate, or a managed node group.
#[derive(Clone, Debug, Default)]
pub struct StaticNode {
    /// Name.
    pub name: String,
    /// `spec.providerID`.
    pub provider_id: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Architecture.
    pub arch: String,
    /// Address.
    pub ip: String,
    /// Allocatable and capacity alike.
    pub amounts: capacity::Amounts,
}

impl StaticNode {
    /// A Fargate node, which runs the one pod that Fargate made it for.
    pub fn fargate(name: &str, zone: &str, cpu_millis: i64, memory_bytes: i64) -> Self {
        let labels = [
            ("eks.amazonaws.com/compute-type", "fargate"),
            ("topology.kubernetes.io/zone", zone),
            ("topology.kubernetes.io/region", region_of(zone)),
        ];
        Self {
            name: name.to_owned(),
            provider_id: format!("aws:///{zone}/fargate/{name}"),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            taints: vec![Taint {
                key: "eks.amazonaws.com/compute-type".to_owned(),
                value: "fargate".to_owned(),
                effect: "NoSchedule".to_owned(),
            }],
            arch: "amd64".to_owned(),
            ip: "10.255.0.1".to_owned(),
            amounts: capacity::Amounts {
                cpu_millis,
                memory_bytes,
                storage_bytes: 20 << 30,
                pods: 1,
            },
        }
    }

    /// A node of a managed node group.
    pub fn managed(name: &str, zone: &str, group: &str, amounts: capacity::Amounts) -> Self {
        let labels = [
            ("eks.amazonaws.com/nodegroup", group),
            ("topology.kubernetes.io/zone", zone),
            ("topology.kubernetes.io/region", region_of(zone)),
        ];
        Self {
            name: name.to_owned(),
            provider_id: format!("aws:///{zone}/i-{name}"),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            taints: Vec::new(),
            arch: "amd64".to_owned(),
            ip: "10.255.0.2".to_owned(),
            amounts,
        }
    }

    /// The Node object.
    pub fn object(&self, kubelet_version: &str) -> Value {
        let amounts = self.amounts.to_quantities();
        let system = ("Amazon Linux 2023", self.arch.as_str(), kubelet_version);
        let addresses = (self.name.as_str(), self.ip.as_str());
        let mut labels = common_labels(&self.name, &self.arch);
        labels.extend(self.labels.clone());
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": self.name, "labels": labels },
            "spec": { "providerID": self.provider_id, "taints": taints(&self.taints) },
            "status": status(addresses, system, (&amounts, &amounts)),
        })
    }
}

/// Why a machine does not join although its user data was understood; none when it does.
pub fn refusal(bootstrap: &Bootstrap, config: &KubeletConfig) -> Option<String> {
    if bootstrap.cluster_name != config.cluster_name {
        return Some(format!(
            "user data names cluster {:?}, this is {:?}",
            bootstrap.cluster_name, config.cluster_name
        ));
    }
    if let Some(expected) = &config.cluster_endpoint
        && !bootstrap.endpoint.is_empty()
        && bootstrap.endpoint != *expected
    {
        return Some(format!(
            "user data names API server {:?}, this cluster's is {expected:?}",
            bootstrap.endpoint
        ));
    }
    let forbidden = bootstrap.labels.keys().find(|label| !may_carry(label))?;
    Some(format!(
        "the kubelet exits: unknown 'kubernetes.io' or 'k8s.io' label {forbidden:?} in its flags"
    ))
}

/// A kubelet refuses to start with labels of Kubernetes' own domains that are not known to it.
fn may_carry(label: &str) -> bool {
    let Some((domain, _)) = label.split_once('/') else { return true };
    let within = |parent: &str| domain == parent || domain.ends_with(&format!(".{parent}"));
    if !within("kubernetes.io") && !within("k8s.io") {
        return true;
    }
    OWN_LABELS.contains(&label) || within("kubelet.kubernetes.io") || within("node.kubernetes.io")
}

/// The Node object that a machine's kubelet registers.
pub fn object(instance: &Instance, bootstrap: &Bootstrap, config: &KubeletConfig) -> Value {
    let name = &instance.private_dns_name;
    let mut labels = common_labels(name, &instance.arch);
    labels.extend(
        [
            ("node.kubernetes.io/instance-type", &instance.instance_type),
            ("topology.kubernetes.io/zone", &instance.zone),
            ("topology.kubernetes.io/region", &config.region),
            ("topology.k8s.aws/zone-id", &instance.zone_id),
        ]
        .map(|(key, value)| (key.to_owned(), value.clone())),
    );
    labels.extend(bootstrap.labels.clone());
    let (capacity, allocatable) = capacity::of(instance, bootstrap, config.root_volume_bytes);
    let image = match bootstrap.system {
        OperatingSystem::AmazonLinux2023 => "Amazon Linux 2023",
        OperatingSystem::AmazonLinux2 => "Amazon Linux 2",
        OperatingSystem::Bottlerocket => "Bottlerocket OS",
    };
    let system = (image, instance.arch.as_str(), config.kubelet_version.as_str());
    let addresses = (name.as_str(), instance.private_ip.as_str());
    let quantities = (&capacity.to_quantities(), &allocatable.to_quantities());
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "providerID": format!("aws:///{}/{}", instance.zone, instance.instance_id),
            "taints": taints(&bootstrap.taints),
        },
        "status": status(addresses, system, quantities),
    })
}

/// Reads an instance's user data and judges whether it joins this cluster.
///
/// # Errors
/// The reason why it never will.
pub fn bootstrap(instance: &Instance, config: &KubeletConfig) -> Result<Bootstrap, String> {
    let bootstrap = userdata::parse(&instance.user_data).map_err(|error| error.to_string())?;
    match refusal(&bootstrap, config) {
        None => Ok(bootstrap),
        Some(reason) => Err(reason),
    }
}

/// A Node object whose conditions begin now, as a kubelet has them: without times, they would have
/// begun in the year one, and whoever repairs nodes would repair this one.
pub fn begun(mut object: Value, now: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array_mut();
    for condition in conditions.into_iter().flatten() {
        condition["lastHeartbeatTime"] = now.into();
        condition["lastTransitionTime"] = now.into();
    }
    object
}

/// The `Ready` condition, as a status to be merged.
pub fn readiness(is_ready: bool, reason: &str, message: &str, now: &str) -> Value {
    json!({ "status": { "conditions": [{
        "type": "Ready",
        "status": if is_ready { "True" } else { "False" },
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }] } })
}

fn common_labels(name: &str, arch: &str) -> BTreeMap<String, String> {
    [("kubernetes.io/hostname", name), ("kubernetes.io/arch", arch), ("kubernetes.io/os", "linux")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

fn taints(taints: &[Taint]) -> Vec<Value> {
    let object = |taint: &Taint| match taint.value.as_str() {
        "" => json!({ "key": taint.key, "effect": taint.effect }),
        value => json!({ "key": taint.key, "value": value, "effect": taint.effect }),
    };
    taints.iter().map(object).collect()
}

fn status(
    (name, ip): (&str, &str),
    (image, arch, kubelet_version): (&str, &str, &str),
    (capacity, allocatable): (&BTreeMap<String, String>, &BTreeMap<String, String>),
) -> Value {
    let quiet = ["MemoryPressure", "DiskPressure", "PIDPressure"]
        .map(|kind| json!({ "type": kind, "status": "False", "reason": "KubeletHasNoPressure" }));
    let mut conditions = quiet.to_vec();
    conditions.push(json!({
        "type": "Ready",
        "status": "False",
        "reason": "KubeletNotReady",
        "message": "container runtime network not ready: cni plugin not initialized",
    }));
    json!({
        "capacity": capacity,
        "allocatable": allocatable,
        "conditions": conditions,
        "addresses": [
            { "type": "InternalIP", "address": ip },
            { "type": "InternalDNS", "address": name },
            { "type": "Hostname", "address": name },
        ],
        "nodeInfo": {
            "architecture": arch,
            "bootID": name,
            "containerRuntimeVersion": "containerd://2.1.0",
            "kernelVersion": "6.12.0",
            "kubeProxyVersion": "",
            "kubeletVersion": kubelet_version,
            "machineID": name,
            "operatingSystem": "linux",
            "osImage": image,
            "systemUUID": name,
        },
        "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
    })
}

/// The region a zone lies in, by its name.
fn region_of(zone: &str) -> &str {
    zone.trim_end_matches(|letter: char| letter.is_ascii_lowercase())
}
