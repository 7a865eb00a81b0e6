//! As much of a pod's text as anybody here asks for.
//!
//! Invariant: what containers are given and run (environment, images, commands, probes) is passed
//! over unread, and so is who has written which field, unless that was Longshore. A large
//! cluster's pods are read at each start, and most of their text is of those two kinds.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::names;

/// A pod, from the text of its JSON.
///
/// # Errors
/// Text that is not JSON, or a field of it that is not what the API says.
pub fn pod(text: &str) -> serde_json::Result<core::Pod> {
    serde_json::from_str::<Pod<'_>>(text).map(core::Pod::from)
}

#[derive(Deserialize)]
struct Pod<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    creation_timestamp: Option<meta::Time>,
    deletion_timestamp: Option<meta::Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<meta::OwnerReference>>,
    #[serde(borrow)]
    managed_fields: Option<Vec<Entry<'a>>>,
}

/// Which fields somebody has written.
#[derive(Deserialize)]
struct Entry<'a> {
    manager: Option<String>,
    #[serde(borrow, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
    resources: Option<core::ResourceRequirements>,
    overhead: Option<BTreeMap<String, Quantity>>,
    volumes: Option<Vec<core::Volume>>,
    resource_claims: Option<Vec<core::PodResourceClaim>>,
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<core::Affinity>,
    tolerations: Option<Vec<core::Toleration>>,
    topology_spread_constraints: Option<Vec<core::TopologySpreadConstraint>>,
    scheduling_gates: Option<Vec<core::PodSchedulingGate>>,
    scheduler_name: Option<String>,
    host_network: Option<bool>,
    priority: Option<i32>,
    priority_class_name: Option<String>,
    termination_grace_period_seconds: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: String,
    resources: Option<core::ResourceRequirements>,
    ports: Option<Vec<core::ContainerPort>>,
    restart_policy: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: Option<String>,
    conditions: Option<Vec<Condition>>,
    start_time: Option<meta::Time>,
    nominated_node_name: Option<String>,
    resize: Option<String>,
    container_statuses: Option<Vec<ContainerStatus>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    restart_count: Option<i32>,
    state: Option<core::ContainerState>,
    resources: Option<core::ResourceRequirements>,
    allocated_resources: Option<BTreeMap<String, Quantity>>,
}

impl From<Pod<'_>> for core::Pod {
    fn from(pod: Pod<'_>) -> Self {
        Self {
            metadata: pod.metadata.into(),
            spec: pod.spec.map(Into::into),
            status: pod.status.map(Into::into),
        }
    }
}

impl From<Metadata<'_>> for meta::ObjectMeta {
    fn from(from: Metadata<'_>) -> Self {
        Self {
            name: from.name,
            namespace: from.namespace,
            uid: from.uid,
            resource_version: from.resource_version,
            creation_timestamp: from.creation_timestamp,
            deletion_timestamp: from.deletion_timestamp,
            labels: from.labels,
            annotations: from.annotations,
            owner_references: from.owner_references,
            managed_fields: from
                .managed_fields
                .map(|entries| entries.into_iter().filter_map(ours).collect()),
            ..Self::default()
        }
    }
}

fn ours(entry: Entry<'_>) -> Option<meta::ManagedFieldsEntry> {
    let manager = entry.manager.filter(|manager| manager == names::FIELD_MANAGER)?;
    let fields = serde_json::from_str(entry.fields?.get()).ok()?;
    Some(meta::ManagedFieldsEntry {
        manager: Some(manager),
        fields_v1: Some(meta::FieldsV1(fields)),
        ..meta::ManagedFieldsEntry::default()
    })
}

impl From<Spec> for core::PodSpec {
    fn from(from: Spec) -> Self {
        let containers = |list: Vec<Container>| list.into_iter().map(Into::into).collect();
        Self {
            node_name: from.node_name,
            containers: from.containers.map(containers).unwrap_or_default(),
            init_containers: from.init_containers.map(containers),
            resources: from.resources,
            overhead: from.overhead,
            volumes: from.volumes,
            resource_claims: from.resource_claims,
            node_selector: from.node_selector,
            affinity: from.affinity,
            tolerations: from.tolerations,
            topology_spread_constraints: from.topology_spread_constraints,
            scheduling_gates: from.scheduling_gates,
            scheduler_name: from.scheduler_name,
            host_network: from.host_network,
            priority: from.priority,
            priority_class_name: from.priority_class_name,
            termination_grace_period_seconds: from.termination_grace_period_seconds,
            ..Self::default()
        }
    }
}

impl From<Container> for core::Container {
    fn from(from: Container) -> Self {
        Self {
            name: from.name,
            resources: from.resources,
            ports: from.ports,
            restart_policy: from.restart_policy,
            ..Self::default()
        }
    }
}

impl From<Status> for core::PodStatus {
    fn from(from: Status) -> Self {
        let states = |list: Vec<ContainerStatus>| list.into_iter().map(Into::into).collect();
        Self {
            phase: from.phase,
            conditions: from.conditions.map(|list| list.into_iter().map(Into::into).collect()),
            start_time: from.start_time,
            nominated_node_name: from.nominated_node_name,
            resize: from.resize,
            container_statuses: from.container_statuses.map(states),
            init_container_statuses: from.init_container_statuses.map(states),
            ..Self::default()
        }
    }
}

impl From<Condition> for core::PodCondition {
    fn from(from: Condition) -> Self {
        Self { type_: from.kind, status: from.status, reason: from.reason, ..Self::default() }
    }
}

impl From<ContainerStatus> for core::ContainerStatus {
    fn from(from: ContainerStatus) -> Self {
        Self {
            name: from.name,
            restart_count: from.restart_count.unwrap_or_default(),
            state: from.state,
            resources: from.resources,
            allocated_resources: from.allocated_resources,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_containers_are_given_is_not_read() {
        let text = json!({
            "metadata": { "name": "p", "managedFields": [
                { "manager": "kubelet", "fieldsV1": { "f:status": {} } },
                { "manager": names::FIELD_MANAGER, "fieldsV1": { "f:spec": {} } },
            ]},
            "spec": { "containers": [{
                "name": "c",
                "image": "private.example.com/c",
                "command": ["run"],
                "env": [{ "name": "PASSWORD", "value": "s3cret" }],
            }]},
            "status": { "phase": "Running", "podIP": "10.0.0.1" },
        });
        let read = pod(&text.to_string()).unwrap();
        let entries = read.metadata.managed_fields.as_ref().unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].fields_v1.as_ref().unwrap().0, json!({ "f:spec": {} }));
        let read = serde_json::to_string(&read).unwrap();
        assert!(read.contains("Running"));
        for unread in ["private", "run\"", "PASSWORD", "s3cret", "kubelet", "10.0.0.1"] {
            assert!(!read.contains(unread), "{unread}: {read}");
        }
    }

    #[test]
    fn a_field_of_another_type_is_an_error() {
        for wrong in [r#"{ "spec": { "containers": "none" } }"#, r#"{ "metadata": 7 }"#, "7"] {
            assert!(pod(wrong).is_err(), "{wrong}");
        }
        let bare = pod(r#"{ "metadata": {}, "spec": { "containers": null } }"#).unwrap();
        assert_eq!(bare.spec, Some(core::PodSpec::default()));
    }
}
