//! Machines joining and leaving.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use longshore_lab::instance::InstanceState;
use longshore_lab::kubelet::{KubeletConfig, Kubelets};

use super::source::{Script, node_config};
use crate::support::{cluster, names, until, within};

fn readiness(node: &Node) -> Option<String> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    Some(conditions.iter().find(|condition| condition.type_ == "Ready")?.status.clone())
}

fn is_ready(node: &Node) -> bool {
    readiness(node).as_deref() == Some("True")
}

#[tokio::test]
async fn a_machine_joins_with_what_its_user_data_says_and_leaves_with_its_instance() {
    let (cluster, client) = cluster().await;
    let script = Script::new();
    let config = KubeletConfig::new("lab", "us-east-1");
    let kubelets = Kubelets::start(client.clone(), script.clone(), config);
    let nodes: Api<Node> = Api::all(client.clone());
    script.launch(1, &node_config("lab"));
    let joined = until(&nodes, "the node is ready", |nodes| nodes.iter().any(is_ready)).await;
    let node = &joined[0];
    assert_eq!(names(&joined), ["ip-10-0-0-1.ec2.internal"]);
    let spec = node.spec.as_ref().unwrap();
    assert_eq!(spec.provider_id.as_deref(), Some("aws:///us-east-1a/i-00000000000000001"));
    let taints = spec.taints.iter().flatten().map(|taint| taint.key.as_str());
    assert!(taints.clone().any(|key| key == "karpenter.sh/unregistered"), "{spec:?}");
    let labels = node.metadata.labels.as_ref().unwrap();
    for (key, value) in [
        ("karpenter.sh/nodepool", "default"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", "ip-10-0-0-1.ec2.internal"),
        ("node.kubernetes.io/instance-type", "m5.large"),
        ("topology.kubernetes.io/region", "us-east-1"),
        ("topology.kubernetes.io/zone", "us-east-1a"),
    ] {
        assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
    }
    let mut conditions = node.status.as_ref().unwrap().conditions.iter().flatten();
    assert!(conditions.all(|condition| condition.last_transition_time.is_some()), "{node:?}");
    let allocatable = node.status.as_ref().unwrap().allocatable.as_ref().unwrap();
    assert_eq!(allocatable["cpu"].0, "1930m");
    assert_eq!(allocatable["memory"].0, (6_903_u64 << 20).to_string());
    let leases: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    assert!(leases.get("ip-10-0-0-1.ec2.internal").await.is_ok());
    script.turn(1, InstanceState::ShuttingDown);
    until(&nodes, "the node is not ready", |nodes| {
        nodes.first().and_then(readiness).as_deref() == Some("False")
    })
    .await;
    script.turn(1, InstanceState::Terminated);
    until(&nodes, "the node is gone", <[Node]>::is_empty).await;
    kubelets.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn without_a_cloud_controller_the_node_of_a_dead_machine_stays() {
    let (cluster, client) = cluster().await;
    let script = Script::new();
    let config = KubeletConfig {
        removes_nodes_of_terminated_instances: false,
        ..KubeletConfig::new("lab", "us-east-1")
    };
    let kubelets = Kubelets::start(client.clone(), script.clone(), config);
    let nodes: Api<Node> = Api::all(client);
    script.launch(1, &node_config("lab"));
    until(&nodes, "the node is ready", |nodes| nodes.iter().any(is_ready)).await;
    script.turn(1, InstanceState::Terminated);
    script.launch(2, &node_config("lab"));
    let both = until(&nodes, "the second is ready, the first is not", |nodes| {
        nodes.len() == 2 && nodes.iter().filter(|node| is_ready(node)).count() == 1
    })
    .await;
    assert!(!is_ready(&both[0]) && is_ready(&both[1]));
    kubelets.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn machines_of_other_clusters_and_without_configuration_never_join() {
    let (cluster, client) = cluster().await;
    let script = Script::new();
    let config = KubeletConfig::new("lab", "us-east-1");
    let kubelets = Kubelets::start(client.clone(), script.clone(), config);
    let mut refusals = kubelets.refusals_changed();
    script.launch(1, &node_config("other"));
    script.launch(2, "#!/bin/sh\necho nothing");
    let restricted = node_config("lab").replace("karpenter.sh/nodepool", "x.kubernetes.io/pool");
    script.launch(3, &restricted);
    within("three refusals", refusals.wait_for(|count| *count == 3)).await.unwrap();
    let reasons: Vec<String> = kubelets.refusals().into_values().collect();
    assert!(reasons[0].contains("names cluster \"other\""), "{reasons:?}");
    assert!(reasons[1].contains("no NodeConfig"), "{reasons:?}");
    assert!(reasons[2].contains("x.kubernetes.io/pool"), "{reasons:?}");
    let nodes: Api<Node> = Api::all(client);
    assert!(nodes.list(&Default::default()).await.unwrap().items.is_empty());
    kubelets.stop().await;
    cluster.stop().await;
}
