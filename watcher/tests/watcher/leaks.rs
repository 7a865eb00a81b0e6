//! What a cluster keeps to itself: what pods run with, and what is written beside it.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use longshore_proto::types::v1::Object;
use prost::Message as _;
use serde_json::{Value, json};

use super::support::{World, create, node, pod, pool};

/// Part of everything that must not leave.
const MARK: &str = "kept-to-itself";

/// A pod's specification with the mark wherever it says nothing about where the pod may run.
fn marked(spec: &mut Value) {
    let name = |what: &str| format!("{what}-{MARK}");
    let container = json!({
        "name": name("container"),
        "image": format!("registry.example/{MARK}:1"),
        "command": [name("command")],
        "args": [name("argument")],
        "workingDir": format!("/{MARK}"),
        "env": [
            { "name": "PASSWORD", "value": name("value") },
            { "name": "TOKEN", "valueFrom": { "secretKeyRef": { "name": name("secret"), "key": "k" } } },
        ],
        "envFrom": [{ "configMapRef": { "name": name("config") } }],
        "volumeMounts": [{ "name": "secret", "mountPath": format!("/{MARK}") }],
        "livenessProbe": { "exec": { "command": [name("probe")] } },
        "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } },
    });
    spec["containers"] = json!([container]);
    spec["imagePullSecrets"] = json!([{ "name": name("pull") }]);
    spec["serviceAccountName"] = json!(name("account"));
    spec["volumes"] = json!([
        { "name": "secret", "secret": { "secretName": name("secret") } },
        { "name": "config", "configMap": { "name": name("config") } },
    ]);
}

/// Creates a pod, a DaemonSet and a node that are full of it.
async fn fill(world: &World) {
    let mut secretive = pod("secretive");
    secretive["metadata"]["annotations"] = json!({ "example.com/note": MARK });
    marked(&mut secretive["spec"]);
    create(&world.pods(), secretive).await;
    let mut template = json!({ "metadata": { "labels": { "app": "agent" } }, "spec": {} });
    marked(&mut template["spec"]);
    let sets: Api<DaemonSet> = Api::default_namespaced(world.client.clone());
    let selector = json!({ "matchLabels": { "app": "agent" } });
    let set = json!({
        "metadata": { "name": "agent", "annotations": { "example.com/note": MARK } },
        "spec": { "selector": selector, "template": template },
    });
    create(&sets, set).await;
    let mut marked_node = node("n1", "aws:///us-east-1a/i-1");
    marked_node["metadata"]["annotations"] = json!({ "example.com/note": MARK });
    marked_node["status"]["images"] = json!([{ "names": [MARK], "sizeBytes": 1 }]);
    create(&world.all::<Node>(), marked_node).await;
}

#[tokio::test]
async fn what_pods_run_with_never_leaves_the_cluster() {
    let mut world = World::start().await;
    pool(&world).await;
    fill(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    session
        .until("pod, node and DaemonSet are known", |view| {
            let set = view.objects.keys().any(|(_, key)| key == "default/agent");
            set && view.pod("secretive").is_some() && view.node("n1").is_some()
        })
        .await;
    for (reference, kind) in &session.view.objects {
        let bytes = Object { kind: Some(kind.clone()) }.encode_to_vec();
        let told = bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes());
        assert!(!told, "{reference:?} tells what it should not: {kind:?}");
    }
    world.stop().await;
}
