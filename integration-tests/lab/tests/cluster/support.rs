//! Starting clusters, making objects, waiting for states.
//!
//! Invariant: a wait ends with the state or fails the test with what was seen last.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use longshore_lab::cluster::{Cluster, ClusterConfig, ClusterHandle};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long any wait of these tests may take.
const DEADLINE: Duration = Duration::from_secs(10);

pub async fn cluster() -> (ClusterHandle, kube::Client) {
    let cluster = Cluster::start(ClusterConfig::default()).await.unwrap();
    let client = cluster.client().unwrap();
    (cluster, client)
}

pub fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

pub async fn create<K>(api: &Api<K>, value: Value) -> K
where
    K: Clone + DeserializeOwned + serde::Serialize + Debug,
{
    api.create(&PostParams::default(), &object(value)).await.unwrap()
}

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("waited {DEADLINE:?} in vain: {what}"),
    }
}

/// Waits until the objects of the collection, taken together, satisfy the condition.
pub async fn until<K>(api: &Api<K>, what: &str, condition: impl Fn(&[K]) -> bool) -> Vec<K>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut stream =
        std::pin::pin!(watcher(api.clone(), watcher::Config::default()).default_backoff());
    let mut known: std::collections::BTreeMap<(String, String), K> = Default::default();
    let mut is_complete = false;
    let key = |object: &K| {
        let meta = object.meta();
        (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
    };
    within(what, async {
        while let Some(event) = stream.try_next().await.unwrap() {
            match event {
                watcher::Event::Init => known.clear(),
                watcher::Event::InitDone => is_complete = true,
                watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                    known.insert(key(&object), object);
                }
                watcher::Event::Delete(object) => drop(known.remove(&key(&object))),
            }
            let all: Vec<K> = known.values().cloned().collect();
            if is_complete && condition(&all) {
                return all;
            }
        }
        panic!("the watch ended: {what}");
    })
    .await
}

pub fn node(name: &str, cpu: &str, labels: Value) -> Value {
    let room = json!({ "cpu": cpu, "memory": "16Gi", "pods": "110", "ephemeral-storage": "20Gi" });
    let mut node = json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    for (key, value) in labels.as_object().into_iter().flatten() {
        node["metadata"]["labels"][key] = value.clone();
    }
    node
}

pub async fn ready_node(client: &kube::Client, name: &str, cpu: &str, labels: Value) {
    let nodes: Api<Node> = Api::all(client.clone());
    create(&nodes, node(name, cpu, labels)).await;
    until(&nodes, "the new node loses its not-ready taint", |nodes| {
        let node = nodes.iter().find(|node| node.metadata.name.as_deref() == Some(name));
        node.is_some_and(|node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
            taints.is_none_or(Vec::is_empty)
        })
    })
    .await;
}

pub fn pod(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": { "containers": [{
            "name": "main",
            "image": "pause:3",
            "resources": { "requests": { "cpu": cpu, "memory": "64Mi" } },
        }] },
    })
}

pub fn deployment(name: &str, replicas: i32, cpu: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": pod(name, cpu)["spec"],
            },
        },
    })
}

/// Plays the kubelet for one pod.
pub async fn make_ready(pods: &Api<Pod>, name: &str) {
    let status = json!({ "status": {
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True" }],
    } });
    pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(status)).await.unwrap();
}

pub fn names<K: kube::ResourceExt>(objects: &[K]) -> Vec<String> {
    objects.iter().map(kube::ResourceExt::name_any).collect()
}

pub fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

pub fn refusal(error: kube::Error) -> kube::core::Status {
    let kube::Error::Api(status) = error else {
        panic!("expected a refusal by the API server, got {error}");
    };
    *status
}
