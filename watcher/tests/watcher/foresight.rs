//! Pods that their owner is still creating, as the scheduler hears of them.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Namespace, Pod, ResourceQuota};
use kube::Api;
use longshore_lab::cluster::ClusterConfig;
use longshore_proto::types::v1::object::Kind;
use longshore_runtime::platform::Platform;
use longshore_runtime::tasks::Supervisor;
use longshore_watcher::api::crd;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::scheduler::View;
use super::support::{World, create, pod};

/// A cluster whose pods are created by the test, and failed by kube-scheduler's stand-in: it has no
/// node.
async fn world() -> World {
    let cluster = ClusterConfig { controllers: false, ..ClusterConfig::default() };
    let supervisor = Supervisor::new(CancellationToken::new(), Platform::system());
    World::in_cluster(cluster, supervisor, |config| config, &crd::Kind::ALL).await
}

/// A set of 120 in a namespace.
async fn replica_set(world: &World, namespace: &str) -> ReplicaSet {
    let api: Api<ReplicaSet> = Api::namespaced(world.client.clone(), namespace);
    let labels = json!({ "app": "web" });
    let template = json!({ "metadata": { "labels": labels }, "spec": pod("web")["spec"] });
    let spec =
        json!({ "replicas": 120, "selector": { "matchLabels": labels }, "template": template });
    create(&api, json!({ "metadata": { "name": "web" }, "spec": spec })).await
}

/// One more pod of a set.
async fn comes(world: &World, set: &ReplicaSet, name: &str) {
    let namespace = set.metadata.namespace.clone().unwrap();
    let mut object: Value = pod("web");
    object["metadata"]["name"] = json!(name);
    object["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "name": "web", "uid": set.metadata.uid, "controller": true }]);
    create(&Api::<Pod>::namespaced(world.client.clone(), &namespace), object).await;
}

/// What is to come in a namespace, as the scheduler knows it.
fn coming(view: &View, namespace: &str) -> u32 {
    let shapes = view.objects.values().filter_map(|kind| {
        let Kind::PodShape(shape) = kind else { return None };
        (shape.namespace == namespace).then_some(shape.coming)
    });
    shapes.sum()
}

#[tokio::test]
async fn the_first_pod_that_fails_makes_known_what_is_to_come_until_no_more_pods_come() {
    let mut world = world().await;
    let set = replica_set(&world, "default").await;
    let (_, mut session) = world.scheduler.session().await;
    comes(&world, &set, "web-1").await;
    session.until("119 to come", |view| coming(view, "default") == 119).await;
    comes(&world, &set, "web-2").await;
    session.until("118 to come", |view| coming(view, "default") == 118).await;
    assert!(session.view.pod("web-2").is_some());
    session.until("none to come", |view| coming(view, "default") == 0).await;
    world.stop().await;
}

#[tokio::test]
async fn nothing_is_to_come_where_a_quota_may_stop_it() {
    let mut world = world().await;
    create(&world.all::<Namespace>(), json!({ "metadata": { "name": "free" } })).await;
    let quotas: Api<ResourceQuota> = Api::default_namespaced(world.client.clone());
    let spec = json!({ "hard": { "pods": "50" } });
    create(&quotas, json!({ "metadata": { "name": "fifty" }, "spec": spec })).await;
    let (limited, free) = (replica_set(&world, "default").await, replica_set(&world, "free").await);
    let (_, mut session) = world.scheduler.session().await;
    comes(&world, &limited, "web-1").await;
    comes(&world, &free, "web-1").await;
    let never = |view: &View| assert_eq!(coming(view, "default"), 0);
    let expects = |view: &View, count: u32| {
        never(view);
        coming(view, "free") == count
    };
    session.until("what is to come elsewhere", |view| expects(view, 119)).await;
    session.until("they have ceased to come", |view| expects(view, 0)).await;
    world.stop().await;
}
