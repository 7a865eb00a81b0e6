//! What becomes of the pods that are to come, as the API server answers.

use std::convert::Infallible;
use std::sync::Mutex;

use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::client::Body;
use longshore_proto::types::v1::PodShape;
use longshore_runtime::clock::Clock;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

/// An API server: what it says of an owner, and of quotas; None for never a word.
#[derive(Clone)]
struct Server {
    owner: Option<(u16, Value)>,
    quotas: (u16, usize),
    /// Paths that were asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(owner: Option<(u16, Value)>, quotas: (u16, usize)) -> Self {
        Self { owner, quotas, asked: Arc::default() }
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let serve = move |request: Request<Body>| {
            let answer = server.answer(request.uri().path());
            async move {
                let Some((code, body)) = answer else { return std::future::pending().await };
                let mut response = Response::new(Body::from(body.to_string().into_bytes()));
                *response.status_mut() = StatusCode::from_u16(code).unwrap();
                Ok::<_, Infallible>(response)
            }
        };
        Client::new(service_fn(serve), "default")
    }

    fn answer(&self, path: &str) -> Option<(u16, Value)> {
        self.asked.lock().unwrap().push(path.to_owned());
        if path.contains("/deployments/") {
            return Some(deployment());
        }
        if !path.ends_with("/resourcequotas") {
            return self.owner.clone();
        }
        let (code, count) = self.quotas;
        let items = vec![json!({ "metadata": { "name": "q" } }); count];
        let list = json!({ "apiVersion": "v1", "kind": "ResourceQuotaList", "metadata": {}, "items": items });
        Some(if code == 200 { (code, list) } else { (code, refusal(code)) })
    }
}

fn refusal(code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "", "reason": "",
        "code": code })
}

/// A Deployment of eight, which lets two go at a time.
fn deployment() -> (u16, Value) {
    let meta = json!({ "namespace": "n", "name": "web" });
    let spec = json!({ "replicas": 8, "selector": {}, "template": {} });
    (200, json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec }))
}

fn replica_set(uid: &str, replicas: u32) -> Option<(u16, Value)> {
    let spec = json!({ "replicas": replicas, "selector": {} });
    let meta = json!({ "namespace": "n", "name": "web", "uid": uid });
    Some((
        200,
        json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec }),
    ))
}

/// A pod of a set, which kube-scheduler has failed.
fn failed(store: &Store, name: &str, set: (&str, &str)) {
    let (set, uid) = set;
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "uid": uid,
        "controller": true });
    let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" });
    let labels = json!({ "pod-template-hash": set.strip_prefix("web-").unwrap_or("none") });
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "namespace": "n", "name": name, "uid": name, "labels": labels,
            "ownerReferences": [owner] },
        "spec": { "containers": [{ "name": "c" }] },
        "status": { "conditions": [condition] },
    }))
    .unwrap();
    let reference = ObjectReference { name: Some(name.to_owned()), ..Default::default() };
    store.write(|index| index.apply(reference, Ok(pod)));
}

/// An index whose pods have been listed.
fn listed() -> Store {
    let store = Store::new(Clock::reading(|| 0));
    store.write(|index| {
        index.begin::<Pod>();
        index.end::<Pod>();
    });
    store
}

/// What the scheduler is told of the shape of the pods.
fn shape(store: &Store) -> PodShape {
    let told = store.read(|index| {
        let shape = index.pods().next().map(|pod| pod.row.shape_id.clone());
        shape.and_then(|id| index.shape(&id).cloned())
    });
    told.unwrap_or_default()
}

/// Pods that are expected when the first has failed and the API server has answered, and once none
/// has come for some time.
async fn expected(server: &Server) -> (u32, u32) {
    let store = listed();
    failed(&store, "a", ("web", "u"));
    let coming = || shape(&store).coming;
    let client = server.client();
    let mut running = std::pin::pin!(run(&client, &store));
    let wait = Duration::from_millis(1_900);
    assert!(tokio::time::timeout(wait, &mut running).await.is_err(), "it runs for ever");
    let first = coming();
    assert!(tokio::time::timeout(wait, &mut running).await.is_err(), "it runs for ever");
    (first, coming())
}

#[tokio::test(start_paused = true)]
async fn an_owner_says_what_is_to_come_until_its_pods_cease_to() {
    let server = Server::new(replica_set("u", 120), (200, 0));
    assert_eq!(expected(&server).await, (119, 0));
    let mut asked = server.asked.lock().unwrap().clone();
    asked.sort();
    let own = "/apis/apps/v1/namespaces/n/replicasets/web";
    assert_eq!(asked, ["/api/v1/namespaces/n/resourcequotas", own], "each is asked for once");
}

#[tokio::test(start_paused = true)]
async fn a_quota_may_stop_what_an_owner_wants() {
    assert_eq!(expected(&Server::new(replica_set("u", 120), (200, 1))).await.0, 0);
    let unknown = Server::new(replica_set("u", 120), (403, 0));
    assert_eq!(expected(&unknown).await.0, 0, "whether there is one is not known");
    let none = Server::new(replica_set("u", 120), (404, 0));
    assert_eq!(expected(&none).await.0, 119, "a server without quotas enforces none");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_expected_of_an_owner_that_cannot_be_read_and_it_is_not_asked_again() {
    let answers = [
        Some((403, refusal(403))),
        Some((404, refusal(404))),
        Some((500, refusal(500))),
        replica_set("another", 120),
        None,
    ];
    for answer in answers {
        let server = Server::new(answer.clone(), (200, 0));
        assert_eq!(expected(&server).await, (0, 0), "{answer:?}");
        let asked = server.asked.lock().unwrap().clone();
        let owner = asked.iter().filter(|path| path.ends_with("/web"));
        assert_eq!(owner.count(), 1, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_replaces_pods_says_how_many_are_about_to_go() {
    let server = Server::new(replica_set("u", 2), (200, 0));
    let store = listed();
    (0..8).for_each(|number| failed(&store, &format!("old{number}"), ("web-old", "old")));
    let client = server.client();
    let mut running = std::pin::pin!(run(&client, &store));
    let wait = Duration::from_millis(100);
    assert!(tokio::time::timeout(wait, &mut running).await.is_err(), "it runs for ever");
    let asked = || server.asked.lock().unwrap().iter().filter(|it| it.contains("dep")).count();
    assert_eq!((shape(&store).going, asked()), (0, 0), "it replaces nothing");
    failed(&store, "new", ("web-new", "u"));
    assert!(tokio::time::timeout(wait, &mut running).await.is_err(), "it runs for ever");
    assert_eq!((shape(&store).going, asked()), (2, 1));
    let wait = Duration::from_millis(2_000);
    assert!(tokio::time::timeout(wait, &mut running).await.is_err(), "it runs for ever");
    assert_eq!(shape(&store).going, 0, "nothing of it has come or gone for a while");
}
