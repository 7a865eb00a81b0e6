//! What a user sees of a cluster: pods, nodes, claims.
//!
//! Invariant: read through the Kubernetes API, never from a service's memory.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DynamicObject, GroupVersionKind, ListParams};
use kube::discovery;
use kube::{Client, ResourceExt};
use longshore_watcher::names::FIELD_MANAGER;
use serde_json::Value;

/// Label of the nodes that a pool owns.
pub const NODE_POOL: &str = "karpenter.sh/nodepool";
const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// A cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// Pods not bound or not running.
    pub pending: usize,
    /// Pods that have run their course.
    pub succeeded: usize,
    /// Pods running, not being deleted.
    pub running: usize,
    /// Ready nodes that pools own, by type and capacity type.
    pub nodes: BTreeMap<(String, String), usize>,
    /// Nodes that pools own, ready or not.
    pub all_nodes: usize,
    /// Node of each running pod.
    pub pods_on: BTreeMap<String, Vec<String>>,
}

/// Looks at the pods of a namespace that match a label selector, and at the pools' nodes.
///
/// # Errors
/// When the API server cannot be asked.
pub async fn look(client: &Client, namespace: &str, selector: &str) -> Result<Sight> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = pods.list(&ListParams::default().labels(selector)).await?;
    let mut sight = Sight::default();
    for pod in pods.items.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        if phase(pod) == "Running" {
            sight.running += 1;
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            sight.pods_on.entry(node.unwrap_or_default()).or_default().push(pod.name_any());
        } else if phase(pod) == "Succeeded" {
            sight.succeeded += 1;
        } else {
            sight.pending += 1;
        }
    }
    for node in pool_nodes(client).await? {
        sight.all_nodes += 1;
        if is_ready(&node) {
            let label = |key: &str| node.labels().get(key).cloned().unwrap_or_default();
            *sight.nodes.entry((label(INSTANCE_TYPE), label(CAPACITY_TYPE))).or_default() += 1;
        }
    }
    Ok(sight)
}

/// Nodes that pools own.
///
/// # Errors
/// When the API server cannot be asked.
pub async fn pool_nodes(client: &Client) -> Result<Vec<Node>> {
    let nodes: Api<Node> = Api::all(client.clone());
    Ok(nodes.list(&ListParams::default().labels(NODE_POOL)).await?.items)
}

/// All NodeClaims.
///
/// # Errors
/// When the API server cannot be asked.
pub async fn claims(client: &Client) -> Result<Vec<DynamicObject>> {
    list(client, "karpenter.sh", "v1", "NodeClaim").await
}

/// True for a claim whose node is to go.
#[must_use]
pub fn is_going(claim: &DynamicObject) -> bool {
    claim.annotations().contains_key("longshore.dev/disruption-reason")
        || claim.metadata.deletion_timestamp.is_some()
}

/// The image that a claim's instance booted.
#[must_use]
pub fn image_of(claim: &DynamicObject) -> Option<&str> {
    claim.data.pointer("/status/imageID").and_then(Value::as_str)
}

/// All objects of a kind, in every namespace.
///
/// # Errors
/// When the API server cannot be asked or does not know the kind.
pub async fn list(
    client: &Client,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<Vec<DynamicObject>> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    let (resource, _) = discovery::pinned_kind(client, &kind).await?;
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    Ok(api.list(&ListParams::default()).await?.items)
}

/// The watcher, or copy of `up`, that the cluster's Lease names.
///
/// # Errors
/// When there is no Lease yet.
pub async fn lease_holder(client: &Client) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let lease = leases.get("longshore-watcher").await?;
    Ok(lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default())
}

/// True when the watcher has written to the pod.
#[must_use]
pub fn is_written_to(pod: &Pod) -> bool {
    let mut fields = pod.metadata.managed_fields.iter().flatten();
    fields.any(|field| field.manager.as_deref() == Some(FIELD_MANAGER))
}

/// True when the node's Ready condition is true.
#[must_use]
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}
