//! Requests to the API server that are repeated until they succeed or make no sense any more.
//!
//! Invariant: at most the configured number of requests is under way for nodes and as many for all
//! else; what is gone (404) or was done already (409 on creation) is no failure.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceSlice;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::cluster::clock::{Clock, micro_stamp};

/// Pause before the first repetition; doubled each time.
const BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Longest pause between repetitions.
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Seconds after which a lease that was not renewed counts as lost.
const LEASE_SECONDS: i32 = 40;

/// The kubelets' way to the API server.
#[derive(Clone)]
pub struct KubeletClient {
    client: kube::Client,
    /// For what tells of nodes, which an API server serves at a priority level of their own
    /// (`node-high`): no flood of pods makes a node wait.
    of_nodes: Arc<Semaphore>,
    of_pods: Arc<Semaphore>,
    clock: Clock,
}

impl KubeletClient {
    /// A client with at most `requests_in_flight_max` requests under way for nodes, and as many for
    /// pods.
    pub fn new(client: kube::Client, requests_in_flight_max: usize, clock: Clock) -> Self {
        let slots = || Arc::new(Semaphore::new(requests_in_flight_max.max(1)));
        Self { client, of_nodes: slots(), of_pods: slots(), clock }
    }

    /// The present as Kubernetes writes it.
    pub fn now(&self) -> String {
        self.clock.stamp()
    }

    /// All pods.
    pub fn pods(&self) -> Api<Pod> {
        Api::all(self.client.clone())
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// Registers a node; one that is there already gets the labels and status of this one.
    pub async fn register(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Ok(node) = serde_json::from_value::<Node>(object.clone()) else {
            tracing::error!(node = name, "the Node object is malformed");
            return;
        };
        insist(&self.of_nodes, "create node", || async {
            match self.nodes().create(&PostParams::default(), &node).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {
                    let labels = json!({ "metadata": { "labels": object["metadata"]["labels"] } });
                    let patch = Patch::Merge(labels);
                    self.nodes().patch(&name, &PatchParams::default(), &patch).await.map(drop)
                }
                other => other.map(drop),
            }
        })
        .await;
        self.patch_node(&name, &json!({ "status": object["status"] })).await;
    }

    /// Merges a node's status.
    pub async fn patch_node(&self, name: &str, status: &Value) {
        insist(&self.of_nodes, "patch node status", || async {
            let patch = Patch::Strategic(status);
            self.nodes().patch_status(name, &PatchParams::default(), &patch).await.map(drop)
        })
        .await;
    }

    /// Removes a node.
    pub async fn delete_node(&self, name: &str) {
        insist(&self.of_nodes, "delete node", || async {
            self.nodes().delete(name, &DeleteParams::default()).await.map(drop)
        })
        .await;
    }

    /// UID of a node; none when it is not there.
    pub async fn node_uid(&self, name: &str) -> Option<String> {
        self.nodes().get_opt(name).await.ok().flatten()?.metadata.uid
    }

    /// Whether a node is there and Ready.
    pub async fn is_ready(&self, node: &str) -> bool {
        let status = self.nodes().get_opt(node).await.ok().flatten().and_then(|node| node.status);
        let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
        conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True")
    }

    /// Creates or replaces a ResourceSlice.
    pub async fn publish(&self, slice: &Value) {
        let slices: Api<ResourceSlice> = Api::all(self.client.clone());
        let name = slice["metadata"]["name"].as_str().unwrap_or_default();
        let params = PatchParams::apply("driver").force();
        insist(&self.of_nodes, "publish devices", || async {
            slices.patch(name, &params, &Patch::Apply(slice)).await.map(drop)
        })
        .await;
    }

    /// Creates or renews a node's lease.
    pub async fn renew_lease(&self, node: &str) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let now = micro_stamp(self.clock.now());
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": node },
            "spec": {
                "holderIdentity": node,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": now,
            },
        });
        let params = PatchParams::apply("kubelet").force();
        insist(&self.of_nodes, "renew lease", || async {
            leases.patch(node, &params, &Patch::Apply(&lease)).await.map(drop)
        })
        .await;
    }

    /// Merges a pod's status.
    pub async fn patch_pod(&self, pod: &Pod, status: &Value) {
        let (pods, name) = self.pods_of(pod);
        insist(&self.of_pods, "patch pod status", || async {
            let patch = Patch::Strategic(status);
            pods.patch_status(&name, &PatchParams::default(), &patch).await.map(drop)
        })
        .await;
    }

    /// Confirms a pod's end.
    pub async fn delete_pod(&self, pod: &Pod) {
        let (pods, name) = self.pods_of(pod);
        let this_one = Preconditions { uid: pod.metadata.uid.clone(), ..Preconditions::default() };
        let now = DeleteParams::default().grace_period(0).preconditions(this_one);
        insist(&self.of_pods, "delete pod", || async { pods.delete(&name, &now).await.map(drop) })
            .await;
    }

    fn pods_of(&self, pod: &Pod) -> (Api<Pod>, String) {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let pods = Api::namespaced(self.client.clone(), &namespace);
        (pods, pod.metadata.name.clone().unwrap_or_default())
    }
}

/// Repeats a request until it succeeds or cannot any more.
async fn insist<F, R>(slots: &Semaphore, what: &'static str, request: F)
where
    F: Fn() -> R,
    R: Future<Output = Result<(), kube::Error>>,
{
    let mut pause = BACKOFF_MIN;
    loop {
        let outcome = match slots.acquire().await {
            Ok(_slot) => request().await,
            Err(_closed) => return,
        };
        match outcome {
            Ok(()) => return,
            Err(error) if is_final(&error) => {
                tracing::debug!(what, %error, "given up");
                return;
            }
            Err(error) => tracing::debug!(what, %error, "to be repeated"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(BACKOFF_MAX);
    }
}

/// True for answers that a repetition would not change.
fn is_final(error: &kube::Error) -> bool {
    if let kube::Error::Api(status) = error {
        return [400, 404, 405, 409, 410, 415, 422].contains(&status.code);
    }
    matches!(error, kube::Error::SerdeError(_) | kube::Error::BuildRequest(_))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use http::{Request, Response};
    use kube::client::Body;
    use tower::service_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_node_becomes_ready_while_the_pods_of_all_others_start() {
        let (asked, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let serve = move |request: Request<Body>| {
            let of_pods = request.uri().path().contains("/pods/");
            let _ = asked.send(of_pods);
            async move {
                if of_pods {
                    return pending().await;
                }
                Ok::<_, Infallible>(Response::new(Body::from(b"{\"metadata\":{}}".to_vec())))
            }
        };
        let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let client = kube::Client::new(service_fn(serve), "default");
        let client = KubeletClient::new(client, 1, clock);
        let pod = serde_json::from_value(json!({ "metadata": { "name": "p", "namespace": "n" } }));
        let (pod, status): (Pod, _) = (pod.expect("a pod"), json!({}));
        let node_told = async {
            assert_eq!(seen.recv().await, Some(true), "the pods' slot is taken");
            let told = client.patch_node("node-1", &status);
            tokio::time::timeout(Duration::from_secs(60), told).await.expect("not behind pods");
        };
        tokio::select! {
            () = client.patch_pod(&pod, &status) => unreachable!("it is never answered"),
            () = node_told => {}
        }
    }
}
