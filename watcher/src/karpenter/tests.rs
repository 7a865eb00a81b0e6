//! Whether Karpenter runs, by our own clock.

use std::sync::atomic::{AtomicU32, Ordering};

use http::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::service_fn;

use super::*;

/// An API server that lists these Leases; it refuses when there is none to list.
#[derive(Clone, Default)]
struct Server {
    leases: Arc<Mutex<Option<Vec<Value>>>>,
    asked: Arc<AtomicU32>,
}

impl Server {
    fn of(leases: &[Value]) -> Self {
        let server = Self::default();
        server.put(leases);
        server
    }

    fn put(&self, leases: &[Value]) {
        *self.leases.lock().unwrap() = Some(leases.to_vec());
    }

    fn refuse(&self) {
        *self.leases.lock().unwrap() = None;
    }

    fn karpenter(&self) -> Karpenter {
        let this = self.clone();
        let call = move |request: Request<Body>| {
            let this = this.clone();
            async move {
                let query = request.uri().query().unwrap_or_default().to_owned();
                assert!(query.contains("karpenter-leader-election"), "{query}");
                this.asked.fetch_add(1, Ordering::Relaxed);
                let items = this.leases.lock().unwrap().clone();
                let (status, body) = match items {
                    Some(items) => {
                        let kind = ("LeaseList", "coordination.k8s.io/v1");
                        let list = json!({ "kind": kind.0, "apiVersion": kind.1, "metadata": {},
                            "items": items });
                        (StatusCode::OK, list)
                    }
                    None => {
                        let refusal = json!({ "kind": "Status", "apiVersion": "v1",
                            "status": "Failure", "message": "forbidden", "reason": "Forbidden",
                            "code": 403 });
                        (StatusCode::FORBIDDEN, refusal)
                    }
                };
                let mut answer = Response::new(Body::from(serde_json::to_vec(&body)?));
                *answer.status_mut() = status;
                Ok::<_, tower::BoxError>(answer)
            }
        };
        Karpenter::new(Client::new(service_fn(call), "default"), Clock::reading(|| 0))
    }
}

fn lease(namespace: &str, holder: &str, renewals: u32) -> Value {
    json!({
        "metadata": { "name": LEASE, "namespace": namespace,
            "resourceVersion": renewals.to_string() },
        // Its clock is of another century: only what changes here counts.
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15,
            "renewTime": format!("1970-01-01T00:00:{:02}.000000Z", renewals % 60) },
    })
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_where_karpenter_never_was_or_has_given_up() {
    for leases in [vec![], vec![lease("kube-system", "", 7)]] {
        let begun = Instant::now();
        Server::of(&leases).karpenter().until_gone(|look| panic!("{look:?}")).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_left_behind_is_waited_for_as_long_as_it_lasts() {
    let server = Server::of(&[lease("kube-system", "a", 1), lease("karpenter", "b", 1)]);
    let begun = Instant::now();
    server.karpenter().until_gone(|look| assert!(matches!(look, Look::Held(_)))).await;
    assert!((15..20).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn karpenter_is_alive_while_it_renews_wherever_it_runs() {
    let server = Server::of(&[lease("karpenter", "pod-1", 0)]);
    let karpenter = server.karpenter();
    for renewals in 1..100 {
        server.put(&[lease("kube-system", "old", 3), lease("karpenter", "pod-1", renewals)]);
        tokio::time::advance(Duration::from_secs(10)).await;
        let alive = karpenter.look().await.unwrap().unwrap();
        assert_eq!(
            (alive.lease.as_str(), alive.holder.as_str()),
            ("karpenter/karpenter-leader-election", "pod-1")
        );
    }
    server.put(&[lease("kube-system", "old", 3), lease("karpenter", "", 100)]);
    assert_eq!(karpenter.look().await.unwrap(), None, "it has given up; the other was over before");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_waited_for_and_does_not_stop_who_works() {
    let server = Server::default();
    let karpenter = server.karpenter();
    let error = karpenter.look().await.unwrap_err().to_string();
    assert!(error.contains("needs list on leases"), "{error}");
    let hour = Duration::from_secs(3_600);
    let blind = |look: Look<'_>| assert_eq!(look, Look::Blind);
    assert!(tokio::time::timeout(hour, karpenter.until_gone(blind)).await.is_err());
    assert!(tokio::time::timeout(hour, karpenter.until_back()).await.is_err());
    server.put(&[]);
    karpenter.until_gone(|_| {}).await;
    // What is left behind by somebody who was here before is not back; what changes is.
    server.put(&[lease("kube-system", "pod-2", 1)]);
    let begun = Instant::now();
    assert_eq!(karpenter.until_back().await.holder, "pod-2");
    assert!(begun.elapsed() <= LOOK_EVERY);
    server.refuse();
    assert!(karpenter.look().await.is_err());
}
