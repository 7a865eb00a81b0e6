//! Pods and nodes by the thousand, as an API server shows them.
//!
//! Invariant: written through the Kubernetes API as users, kubelets and kube-scheduler write them;
//! one number is one object, the same in every run.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

/// Requests under way at once.
const AT_ONCE: usize = 64;
/// Workloads that the pods are of: as many shapes.
const APPS: u32 = 100;

/// Creates nodes of a managed group, Ready.
///
/// # Errors
/// When the API server refuses one.
pub async fn nodes(client: &Client, number: u32) -> Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let create = |number| {
        let api = api.clone();
        async move {
            let node: Node = serde_json::from_value(node(number))?;
            api.create(&PostParams::default(), &node).await.context("a node")?;
            anyhow::Ok(())
        }
    };
    stream::iter((0..number).map(create)).buffer_unordered(AT_ONCE).try_collect().await
}

/// Creates pods that run, evenly over so many nodes.
///
/// # Errors
/// When the API server refuses one.
pub async fn running(client: &Client, pods: u32, nodes: u32) -> Result<()> {
    let create = |number| one_running(client.clone(), number, number % nodes);
    stream::iter((0..pods).map(create)).buffer_unordered(AT_ONCE).try_collect().await
}

/// Creates pods for which kube-scheduler has found no node.
///
/// # Errors
/// When the API server refuses one.
pub async fn waiting(client: &Client, pods: u32) -> Result<()> {
    let create = |number| one_waiting(client.clone(), number);
    stream::iter((0..pods).map(create)).buffer_unordered(AT_ONCE).try_collect().await
}

/// Deletes a running pod and creates another on its node.
///
/// # Errors
/// When the API server refuses.
pub async fn replace(client: &Client, old: u32, new: u32, nodes: u32) -> Result<()> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let at_once = DeleteParams::default().grace_period(0);
    api.delete(&name("run", old), &at_once).await?;
    one_running(client.clone(), new, old % nodes).await
}

async fn one_running(client: Client, number: u32, node: u32) -> Result<()> {
    let mut pod = pod(&name("run", number), number);
    pod["spec"]["nodeName"] = json!(node_name(node));
    let now = Timestamp::now().to_string();
    let ready = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    let status = json!({
        "phase": "Running",
        "startTime": now,
        "hostIP": address(node),
        "podIP": Ipv4Addr::from_bits(0x6440_0000 + number),
        "conditions": ready.map(|name| condition(name, "True", &now)),
    });
    create(client, pod, status).await
}

async fn one_waiting(client: Client, number: u32) -> Result<()> {
    let mut unscheduled = condition("PodScheduled", "False", &Timestamp::now().to_string());
    unscheduled["reason"] = json!("Unschedulable");
    unscheduled["message"] = json!("0/0 nodes are available");
    let status = json!({ "phase": "Pending", "conditions": [unscheduled] });
    create(client, pod(&name("wait", number), number), status).await
}

async fn create(client: Client, pod: Value, status: Value) -> Result<()> {
    let api: Api<Pod> = Api::default_namespaced(client);
    let pod: Pod = serde_json::from_value(pod)?;
    let pod = api.create(&PostParams::default(), &pod).await.context("a pod")?;
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// A pod of one of the workloads.
fn pod(name: &str, number: u32) -> Value {
    let app = number % APPS;
    let labels = json!({ "app": format!("app-{app}"), "pod-template-hash": "5d7f9c8b6d" });
    let (cpu, memory) = (100 + app % 10 * 100, 128 + app % 7 * 256);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": labels },
        "spec": {
            "containers": [{
                "name": "app",
                "image": format!("registry.example.com/app-{app}:1.0.0"),
                "env": [{ "name": "PORT", "value": "8080" }, { "name": "LOG", "value": "info" }],
                "ports": [{ "containerPort": 8080 }],
                "resources": {
                    "requests": { "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi") },
                    "limits": { "memory": format!("{}Mi", 2 * memory) },
                },
            }],
            "volumes": [{ "name": "scratch", "emptyDir": {} }],
        },
    })
}

/// A node of a managed group.
fn node(number: u32) -> Value {
    let (name, zone) = (node_name(number), format!("us-east-1{}", ["a", "b", "c"][zone(number)]));
    let amounts = json!({ "cpu": "15890m", "memory": "59Gi", "pods": "234" });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": "m5.4xlarge",
            "topology.kubernetes.io/region": "us-east-1",
            "topology.kubernetes.io/zone": zone,
            "eks.amazonaws.com/nodegroup": "workers",
        }},
        "spec": { "providerID": format!("aws:///{zone}/i-{number:017x}") },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [condition("Ready", "True", &Timestamp::now().to_string())],
            "addresses": [{ "type": "InternalIP", "address": address(number) }],
        },
    })
}

fn condition(name: &str, status: &str, now: &str) -> Value {
    json!({ "type": name, "status": status, "lastTransitionTime": now })
}

fn name(what: &str, number: u32) -> String {
    format!("{what}-{number:06}")
}

fn node_name(number: u32) -> String {
    let [_, b, c, d] = number.to_be_bytes();
    format!("ip-10-{b}-{c}-{d}.ec2.internal")
}

fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 + number)
}

const fn zone(number: u32) -> usize {
    (number % 3) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn objects_are_what_an_api_server_takes_and_differ() {
        let names: BTreeSet<String> = (0..70_000).step_by(7).map(node_name).collect();
        assert_eq!(names.len(), 10_000);
        assert_eq!(node_name(260), "ip-10-0-1-4.ec2.internal");
        serde_json::from_value::<Node>(node(9_999)).unwrap();
        let shapes = (0..200).map(|number| {
            let pod: Pod = serde_json::from_value(pod("p", number)).unwrap();
            serde_json::to_string(&pod.spec).unwrap()
        });
        assert_eq!(shapes.collect::<BTreeSet<_>>().len(), APPS as usize);
    }
}
