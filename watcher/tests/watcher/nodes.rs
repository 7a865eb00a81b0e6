//! Nodes that others write to while the watcher does.

use std::sync::{Arc, Mutex};

use http::{Method, Request};
use k8s_openapi::api::core::v1::Node;
use kube::client::Body;
use kube::{Api, Client};
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{DirectiveStatus, RegisterNode};
use serde_json::{Value, json};
use tower::service_fn;

use super::scheduler::Session;
use super::support::{
    World, create, create_claim, node, patch, patch_status, pool, provider_id, record_launch,
};

/// What somebody else does to a node just before a write of the watcher reaches it.
#[derive(Clone, Copy)]
enum Meddler {
    /// Nothing at all.
    Nobody,
    /// A heartbeat of its kubelet.
    Heartbeat,
    /// A taint that keeps pods off a node which has not started, at the second write.
    Taint,
}

/// The watcher's writes to nodes, as they were answered.
type Log = Arc<Mutex<Vec<u16>>>;

/// A client whose writes to node n1 always come a moment too late.
fn meddled(client: &Client, meddler: Meddler, log: &Log) -> Client {
    let (client, log) = (client.clone(), Arc::clone(log));
    let call = move |request: Request<Body>| {
        let (client, log) = (client.clone(), Arc::clone(&log));
        async move {
            let path = request.uri().path();
            let writes = request.method() == Method::PATCH && path == "/api/v1/nodes/n1";
            if writes {
                let count = log.lock().unwrap().len();
                meddler.meddle(&Api::all(client.clone()), count).await;
            }
            let response = client.send(request).await?;
            if writes {
                log.lock().unwrap().push(response.status().as_u16());
            }
            Ok::<_, kube::Error>(response)
        }
    };
    Client::new(service_fn(call), "default")
}

impl Meddler {
    /// After so many writes.
    async fn meddle(self, nodes: &Api<Node>, writes: usize) {
        match self {
            Self::Heartbeat => {
                let at = format!("2026-01-01T00:00:{writes:02}Z");
                let ready = json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": at });
                patch_status(nodes, "n1", json!({ "status": { "conditions": [ready] } })).await;
            }
            Self::Taint if writes == 1 => {
                let now = serde_json::to_value(nodes.get("n1").await.unwrap()).unwrap();
                let mut taints = now["spec"]["taints"].as_array().cloned().unwrap_or_default();
                taints.push(json!({ "key": STARTING, "effect": "NoSchedule" }));
                patch(nodes, "n1", json!({ "spec": { "taints": taints } })).await;
            }
            Self::Taint | Self::Nobody => {}
        }
    }
}

const STARTING: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Registers node n1 while it is meddled with.
async fn registered(world: &World, session: &mut Session) {
    pool(world).await;
    session.until("the pool", |view| view.pool("default").is_some()).await;
    session.direct(create_claim("c1", &[])).await;
    session.direct(Action::RecordLaunch(record_launch("c1"))).await;
    create(&world.all::<Node>(), node("n1", &provider_id("c1"))).await;
    // The API server has given it the taint of a node that is not ready, which is not told of one
    // that is.
    let taints = |node: &longshore_proto::types::v1::Node| node.taints.len();
    session.until("the node", |view| view.node("n1").is_some_and(|it| taints(it) == 1)).await;
    let (claim, node) = ("c1".to_owned(), "n1".to_owned());
    let register = RegisterNode { claim, node, ..RegisterNode::default() };
    let result = session.direct(Action::RegisterNode(register)).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
}

#[tokio::test]
async fn a_node_that_is_ready_takes_pods_though_its_controller_has_yet_to_take_a_taint_off() {
    let log = Log::default();
    let mut world = World::seen(|client| meddled(client, Meddler::Nobody, &log)).await;
    let (_, mut session) = world.scheduler.session().await;
    registered(&world, &mut session).await;
    let node = world.all::<Node>().get("n1").await.unwrap();
    let taints = node.spec.unwrap().taints.unwrap_or_default();
    assert_eq!(taints, [], "neither ours nor that of not being ready");
    assert_eq!(node.metadata.labels.unwrap()["karpenter.sh/initialized"], "true");
    world.stop().await;
}

#[tokio::test]
async fn a_heartbeat_of_its_kubelet_does_not_keep_a_node_closed() {
    let log = Log::default();
    let mut world = World::seen(|client| meddled(client, Meddler::Heartbeat, &log)).await;
    let (_, mut session) = world.scheduler.session().await;
    registered(&world, &mut session).await;
    let answers = log.lock().unwrap().clone();
    assert_eq!(answers, [200, 200], "it is prepared, then opened");
    let node = world.all::<Node>().get("n1").await.unwrap();
    assert_eq!(node.metadata.labels.unwrap()["karpenter.sh/initialized"], "true");
    world.stop().await;
}

#[tokio::test]
async fn what_others_wrote_meanwhile_stays_and_is_looked_at() {
    let log = Log::default();
    let mut world = World::seen(|client| meddled(client, Meddler::Taint, &log)).await;
    let (_, mut session) = world.scheduler.session().await;
    registered(&world, &mut session).await;
    let answers = log.lock().unwrap().clone();
    assert_eq!(answers, [200, 422, 200], "refused, read and opened as it is then");
    let node = world.all::<Node>().get("n1").await.unwrap();
    let taints: Value = serde_json::to_value(node.spec.unwrap().taints).unwrap();
    assert_eq!(taints, json!([{ "key": STARTING, "effect": "NoSchedule" }]));
    let labels = node.metadata.labels.unwrap();
    assert_eq!(labels["karpenter.sh/registered"], "true");
    assert_eq!(labels.get("karpenter.sh/initialized"), None, "it takes no pods yet");
    world.stop().await;
}
