//! Finalizers, grace, eviction and garbage.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, EvictParams, Patch, PatchParams};
use serde_json::json;

use super::support::{
    cluster, create, deployment, make_ready, names, node_of, pod, ready_node, refusal, until,
};

#[tokio::test]
async fn finalizers_keep_an_object_until_they_are_lifted() {
    let (cluster, client) = cluster().await;
    let nodes: Api<Node> = Api::all(client);
    let finalized = json!({ "metadata": { "name": "n", "finalizers": ["lab.example/guard"] } });
    create(&nodes, finalized).await;
    assert!(nodes.delete("n", &DeleteParams::default()).await.unwrap().is_left());
    let kept = nodes.get("n").await.unwrap();
    assert!(kept.metadata.deletion_timestamp.is_some());
    let more = json!({ "metadata": { "finalizers": ["lab.example/guard", "lab.example/late"] } });
    let status =
        refusal(nodes.patch("n", &PatchParams::default(), &Patch::Merge(more)).await.unwrap_err());
    assert_eq!(status.code, 422);
    let lifted = json!({ "metadata": { "finalizers": null } });
    nodes.patch("n", &PatchParams::default(), &Patch::Merge(lifted)).await.unwrap();
    assert_eq!(refusal(nodes.get("n").await.unwrap_err()).code, 404);
    cluster.stop().await;
}

#[tokio::test]
async fn a_bound_pod_keeps_its_grace_and_a_pending_one_goes_at_once() {
    let (cluster, client) = cluster().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    create(&pods, pod("pending", "100")).await;
    pods.delete("pending", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(pods.get("pending").await.unwrap_err()).code, 404);
    ready_node(&client, "n", "4", json!({})).await;
    create(&pods, pod("bound", "1")).await;
    until(&pods, "the pod is bound", |pods| pods.iter().any(|pod| node_of(pod) == "n")).await;
    pods.delete("bound", &DeleteParams::default()).await.unwrap();
    let leaving = pods.get("bound").await.unwrap().metadata;
    assert_eq!(leaving.deletion_grace_period_seconds, Some(30));
    pods.delete("bound", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(refusal(pods.get("bound").await.unwrap_err()).code, 404);
    cluster.stop().await;
}

#[tokio::test]
async fn evictions_stop_where_the_budget_ends() {
    let (cluster, client) = cluster().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    ready_node(&client, "n", "8", json!({})).await;
    for name in ["a", "b"] {
        let mut body = pod(name, "1");
        body["metadata"]["labels"]["app"] = json!("web");
        create(&pods, body).await;
        make_ready(&pods, name).await;
    }
    create(
        &budgets,
        json!({
            "metadata": { "name": "web" },
            "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } },
        }),
    )
    .await;
    until(&budgets, "one disruption is allowed", |budgets| {
        budgets.iter().any(|b| b.status.as_ref().is_some_and(|s| s.disruptions_allowed == 1))
    })
    .await;
    until(&pods, "both are bound", |pods| pods.iter().all(|pod| node_of(pod) == "n")).await;
    pods.evict("a", &EvictParams::default()).await.unwrap();
    let status = refusal(pods.evict("b", &EvictParams::default()).await.unwrap_err());
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    let causes = status.details.unwrap().causes;
    assert_eq!(causes[0].reason, "DisruptionBudget");
    assert!(causes[0].message.contains("disruption budget web"), "{}", causes[0].message);
    let evicted = pods.get("a").await.unwrap();
    let conditions = evicted.status.unwrap().conditions.unwrap();
    let mark = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget").unwrap();
    assert_eq!(mark.reason.as_deref(), Some("EvictionByEvictionAPI"));
    cluster.stop().await;
}

#[tokio::test]
async fn deleting_a_deployment_takes_its_sets_and_pods_along() {
    let (cluster, client) = cluster().await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let sets: Api<ReplicaSet> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client);
    create(&deployments, deployment("d", 3, "1")).await;
    until(&pods, "three pods", |pods| pods.len() == 3).await;
    deployments.delete("d", &DeleteParams::background()).await.unwrap();
    until(&sets, "no set is left", <[ReplicaSet]>::is_empty).await;
    until(&pods, "no pod is left", <[Pod]>::is_empty).await;
    create(&deployments, deployment("d", 1, "1")).await;
    until(&pods, "one pod", |pods| pods.len() == 1).await;
    deployments.delete("d", &DeleteParams::orphan()).await.unwrap();
    until(&deployments, "the deployment is gone", <[Deployment]>::is_empty).await;
    let orphans = until(&sets, "the set has no owner", |sets| {
        sets.iter().all(|set| set.metadata.owner_references.as_ref().is_none_or(Vec::is_empty))
    })
    .await;
    assert_eq!(orphans.len(), 1);
    cluster.stop().await;
}

#[tokio::test]
async fn the_pods_of_a_deleted_node_are_collected() {
    let (cluster, client) = cluster().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    ready_node(&client, "n", "8", json!({})).await;
    create(&pods, pod("p", "1")).await;
    until(&pods, "the pod is bound", |pods| pods.iter().any(|pod| node_of(pod) == "n")).await;
    nodes.delete("n", &DeleteParams::default()).await.unwrap();
    until(&pods, "the pod is gone", <[Pod]>::is_empty).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    for (name, tier) in [("a", "x"), ("b", "x"), ("c", "y")] {
        create(&maps, json!({ "metadata": { "name": name, "labels": { "tier": tier } } })).await;
    }
    let selected = kube::api::ListParams::default().labels("tier=x");
    maps.delete_collection(&DeleteParams::default(), &selected).await.unwrap();
    assert_eq!(names(&maps.list(&Default::default()).await.unwrap().items), ["c"]);
    cluster.stop().await;
}
