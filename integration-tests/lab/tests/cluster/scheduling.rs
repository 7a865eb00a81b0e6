//! The scheduler's stand-in.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::support::{cluster, create, node_of, pod, ready_node, until};

fn unschedulable(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    (scheduled.reason.as_deref() == Some("Unschedulable")).then_some(scheduled.message.as_deref()?)
}

async fn placed(pods: &Api<Pod>, name: &str) -> String {
    let is_it = |pod: &&Pod| pod.metadata.name.as_deref() == Some(name);
    let all = until(pods, &format!("{name} is bound"), |pods| {
        pods.iter().find(is_it).is_some_and(|pod| !node_of(pod).is_empty())
    })
    .await;
    node_of(all.iter().find(is_it).unwrap()).to_owned()
}

async fn message(pods: &Api<Pod>, name: &str) -> String {
    let is_it = |pod: &&Pod| pod.metadata.name.as_deref() == Some(name);
    let all = until(pods, &format!("{name} is refused"), |pods| {
        pods.iter().find(is_it).is_some_and(|pod| unschedulable(pod).is_some())
    })
    .await;
    unschedulable(all.iter().find(is_it).unwrap()).unwrap().to_owned()
}

#[tokio::test]
async fn a_pod_that_fits_nowhere_says_why_and_is_bound_when_room_comes() {
    let (cluster, client) = cluster().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    create(&pods, pod("big", "3")).await;
    assert_eq!(message(&pods, "big").await, "no nodes available to schedule pods");
    ready_node(&client, "small", "2", json!({})).await;
    let refused = until(&pods, "the message counts the node", |pods| {
        pods.iter().filter_map(unschedulable).any(|message| message.contains("Insufficient cpu"))
    })
    .await;
    let text = unschedulable(&refused[0]).unwrap();
    assert!(text.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{text}");
    ready_node(&client, "large", "4", json!({})).await;
    assert_eq!(placed(&pods, "big").await, "large");
    cluster.stop().await;
}

#[tokio::test]
async fn selectors_taints_and_cordons_are_obeyed() {
    let (cluster, client) = cluster().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    ready_node(&client, "a", "4", json!({ "zone": "a" })).await;
    ready_node(&client, "b", "4", json!({ "zone": "b" })).await;
    let mut choosy = pod("choosy", "1");
    choosy["spec"]["nodeSelector"] = json!({ "zone": "b" });
    create(&pods, choosy).await;
    assert_eq!(placed(&pods, "choosy").await, "b");
    let close = json!({ "spec": { "unschedulable": true } });
    nodes.patch("b", &PatchParams::default(), &Patch::Merge(close)).await.unwrap();
    let taint =
        json!({ "spec": { "taints": [{ "key": "team", "value": "x", "effect": "NoSchedule" }] } });
    nodes.patch("a", &PatchParams::default(), &Patch::Merge(taint)).await.unwrap();
    create(&pods, pod("plain", "1")).await;
    let text = message(&pods, "plain").await;
    assert!(text.contains("node(s) were unschedulable"), "{text}");
    assert!(text.contains("node(s) had untolerated taint {team: x}"), "{text}");
    let mut tolerant = pod("tolerant", "1");
    tolerant["spec"]["tolerations"] = json!([{ "key": "team", "operator": "Exists" }]);
    create(&pods, tolerant).await;
    assert_eq!(placed(&pods, "tolerant").await, "a");
    cluster.stop().await;
}

#[tokio::test]
async fn nominations_come_first_and_hold_their_room() {
    let (cluster, client) = cluster().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    ready_node(&client, "wide", "8", json!({})).await;
    let mut body = super::support::node("fresh", "2", json!({}));
    body["spec"] =
        json!({ "taints": [{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }] });
    create(&nodes, body).await;
    let mut planned = pod("planned", "2");
    planned["spec"]["schedulingGates"] = json!([{ "name": "lab.example/wait" }]);
    create(&pods, planned).await;
    let nomination = json!({ "status": { "nominatedNodeName": "fresh" } });
    pods.patch_status("planned", &PatchParams::default(), &Patch::Merge(nomination)).await.unwrap();
    let open = json!({ "spec": { "taints": null } });
    nodes.patch("fresh", &PatchParams::default(), &Patch::Merge(open)).await.unwrap();
    let mut greedy = pod("greedy", "1");
    greedy["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": "fresh" });
    create(&pods, greedy).await;
    let text = message(&pods, "greedy").await;
    assert!(text.contains("Insufficient cpu"), "the nominated room is reserved: {text}");
    let free = json!({ "spec": { "schedulingGates": null } });
    pods.patch("planned", &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    assert_eq!(placed(&pods, "planned").await, "fresh");
    let bound = pods.get("planned").await.unwrap();
    assert_eq!(bound.status.unwrap().nominated_node_name, None);
    cluster.stop().await;
}

fn spread(name: &str, key: &str) -> Value {
    let mut body = pod(name, "100m");
    body["metadata"]["labels"]["app"] = json!("spread");
    body["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "spread" } },
    }]);
    body
}

#[tokio::test]
async fn spread_and_anti_affinity_keep_pods_apart() {
    let (cluster, client) = cluster().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for (name, zone) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
        ready_node(&client, name, "4", json!({ "zone": zone })).await;
    }
    let mut by_zone = std::collections::BTreeMap::new();
    for index in 0..4 {
        let name = format!("s{index}");
        create(&pods, spread(&name, "zone")).await;
        let zone = placed(&pods, &name).await[..1].to_owned();
        *by_zone.entry(zone).or_insert(0) += 1;
    }
    assert_eq!(by_zone.into_iter().collect::<Vec<_>>(), [("a".into(), 2), ("b".into(), 2)]);
    let lonely = |name: &str| {
        let mut body = pod(name, "100m");
        body["metadata"]["labels"]["app"] = json!("lonely");
        let apart = json!([{
            "topologyKey": "zone",
            "labelSelector": { "matchLabels": { "app": "lonely" } },
        }]);
        body["spec"]["affinity"]["podAntiAffinity"] =
            json!({ "requiredDuringSchedulingIgnoredDuringExecution": apart });
        body
    };
    for name in ["l0", "l1"] {
        create(&pods, lonely(name)).await;
        placed(&pods, name).await;
    }
    create(&pods, lonely("l2")).await;
    let text = message(&pods, "l2").await;
    assert!(text.contains("3 node(s) didn't match pod anti-affinity rules"), "{text}");
    cluster.stop().await;
}
