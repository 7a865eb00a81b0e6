//! Who holds the Lease, by whose clock.

use std::collections::BTreeMap;

use http::{Request, Response};
use kube::client::Body;
use tower::service_fn;

use super::*;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap()
}

#[test]
fn epochs_only_grow() {
    assert_eq!(epoch_after(0, 1_000), 1_000);
    assert_eq!(epoch_after(5_000, 1_000), 5_001);
    assert_eq!(epoch_after(7, -1), 8);
}

#[tokio::test(start_paused = true)]
async fn a_lease_has_ended_when_it_has_not_changed_here_for_its_duration() {
    let (mut lease, mut seen) = (KubeLease::default(), None);
    assert_eq!(held_by_other(&lease, &mut seen, 0), None, "nobody's");
    // The holder's clock is an hour behind: by its own times the Lease ended long ago.
    hold(&mut lease, "a", at(0));
    let hour_ms = 3_600_000;
    let held = |lease: &KubeLease, seen: &mut _| held_by_other(lease, seen, hour_ms).is_some();
    assert!(held(&lease, &mut seen));
    tokio::time::advance(Duration::from_secs(14)).await;
    assert!(held(&lease, &mut seen));
    hold(&mut lease, "a", at(1));
    tokio::time::advance(Duration::from_secs(14)).await;
    assert!(held(&lease, &mut seen), "it was renewed");
    tokio::time::advance(Duration::from_secs(15)).await;
    assert!(!held(&lease, &mut seen));
    hold(&mut lease, "b", at(2));
    assert_eq!(lease.spec.and_then(|spec| spec.lease_transitions), Some(1));
}

/// An API server with one Lease, which no longer answers once it is `silent`.
#[derive(Clone, Default)]
struct Server {
    lease: Arc<Mutex<Option<KubeLease>>>,
    silent: Arc<Mutex<bool>>,
    reads: Arc<Mutex<u32>>,
}

fn refusal(code: u16, reason: &str) -> Response<Vec<u8>> {
    let status = serde_json::json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": "", "reason": reason, "code": code });
    let mut refusal = Response::new(status.to_string().into_bytes());
    *refusal.status_mut() = http::StatusCode::from_u16(code).unwrap();
    refusal
}

impl Server {
    fn client(&self) -> Client {
        let this = self.clone();
        let call = move |request: Request<Body>| {
            let this = this.clone();
            async move {
                if *this.silent.lock().unwrap() {
                    std::future::pending::<()>().await;
                }
                let (head, body) = request.into_parts();
                let bytes = body.collect_bytes().await?;
                let answer = match &head.method {
                    &http::Method::GET => this.read(),
                    method => this.write(method, serde_json::from_slice(&bytes)?),
                };
                Ok::<_, tower::BoxError>(answer.map(Body::from))
            }
        };
        Client::new(service_fn(call), "default")
    }

    fn read(&self) -> Response<Vec<u8>> {
        *self.reads.lock().unwrap() += 1;
        match &*self.lease.lock().unwrap() {
            Some(lease) => Response::new(serde_json::to_vec(lease).unwrap()),
            None => refusal(404, "NotFound"),
        }
    }

    /// Replaces what there is if that is what the writer knows.
    fn write(&self, method: &http::Method, mut lease: KubeLease) -> Response<Vec<u8>> {
        let mut known = self.lease.lock().unwrap();
        let version = known.as_ref().map(|known| known.metadata.resource_version.clone());
        match (method, &version) {
            (&http::Method::POST, None) => {}
            (_, None) => return refusal(404, "NotFound"),
            (_, Some(version)) if *version != lease.metadata.resource_version => {
                return refusal(409, "Conflict");
            }
            (_, Some(_)) => {}
        }
        let version: u32 = version.flatten().map_or(0, |version| version.parse().unwrap());
        lease.metadata.resource_version = Some((version + 1).to_string());
        *known = Some(lease.clone());
        Response::new(serde_json::to_vec(&lease).unwrap())
    }

    fn lease(&self, identity: &str) -> Lease {
        Lease::new(self.client(), "default", identity.to_owned(), Clock::reading(|| 0))
    }

    fn holder(&self) -> Option<String> {
        self.lease.lock().unwrap().clone()?.spec?.holder_identity
    }
}

#[tokio::test(start_paused = true)]
async fn work_ends_before_another_may_take_over() {
    let server = Server::default();
    let lease = server.lease("a");
    lease.acquire(|| {}).await;
    let renewed = Instant::now();
    *server.silent.lock().unwrap() = true;
    assert!(matches!(lease.keep().await, LeaseError::Late(_)));
    assert!(renewed.elapsed() <= WORK, "{:?}", renewed.elapsed());
    assert!(!lease.tenure().holds());
}

#[tokio::test(start_paused = true)]
async fn its_holder_renews_it_without_reading_it() {
    let server = Server::default();
    let lease = server.lease("a");
    lease.acquire(|| {}).await;
    assert_eq!(*server.reads.lock().unwrap(), 1);
    let renewing = tokio::time::timeout(RENEW_EVERY * 10, lease.keep());
    assert!(renewing.await.is_err(), "it goes on");
    assert_eq!(*server.reads.lock().unwrap(), 1);
    *server.lease.lock().unwrap() = None;
    lease.next_epoch().await.unwrap();
    assert_eq!(server.holder().as_deref(), Some("a"), "somebody deleted it");
    assert_eq!(*server.reads.lock().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_notices_before_it_writes() {
    let server = Server::default();
    let lease = server.lease("a");
    lease.acquire(|| {}).await;
    assert!(lease.tenure().holds());
    // SIGSTOP: time goes by, and none of the process's tasks runs.
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(!lease.tenure().holds(), "no write of anything passes the client now");
    assert!(matches!(lease.keep().await, LeaseError::Late(_)));
}

#[tokio::test(start_paused = true)]
async fn what_another_held_in_between_is_lost() {
    let server = Server::default();
    let (first, second) = (server.lease("a"), server.lease("b"));
    first.acquire(|| {}).await;
    let begun = Instant::now();
    second.acquire(|| {}).await;
    assert!(begun.elapsed().as_secs() >= 15, "the second waits for the whole duration");
    assert!(matches!(first.next_epoch().await, Err(LeaseError::HeldBy(other)) if other == "b"));
    second.release().await.unwrap();
    assert_eq!(server.holder(), None);
    assert!(matches!(first.next_epoch().await, Err(LeaseError::Lost)), "nor is it taken back");
    first.acquire(|| {}).await;
    let epochs = [first.next_epoch().await.unwrap(), first.next_epoch().await.unwrap()];
    assert!(epochs[0] < epochs[1]);
    let kept: BTreeMap<_, _> = [(EPOCH.to_owned(), epochs[1].to_string())].into();
    assert_eq!(server.lease.lock().unwrap().as_ref().unwrap().metadata.annotations, Some(kept));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_started_again_under_its_name_does_not_wait_for_itself() {
    let server = Server::default();
    let killed = server.lease("pod-a");
    killed.acquire(|| {}).await;
    let epoch = killed.next_epoch().await.unwrap();
    let (begun, again) = (Instant::now(), server.lease("pod-a"));
    again.acquire(|| panic!("nobody else holds it")).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(again.next_epoch().await.unwrap() > epoch);
}

#[tokio::test(start_paused = true)]
async fn who_takes_the_lease_over_knows_what_went_on_absence_under_its_holder() {
    let (server, began) = (Server::default(), Instant::now());
    let lease = |identity: &str| {
        let clock = Clock::reading(move || i64::try_from(began.elapsed().as_millis()).unwrap());
        Lease::new(server.client(), "default", identity.to_owned(), clock)
    };
    let (first, second) = (lease("a"), lease("b"));
    let told = |lease: &Lease| {
        let told = lease.losses().told().into_iter();
        told.map(|loss| (loss.claim, loss.age.unwrap().seconds)).collect::<Vec<_>>()
    };
    first.acquire(|| {}).await;
    first.losses().note("gone");
    let renewing = tokio::time::timeout(RENEW_EVERY * 2, first.keep());
    assert!(renewing.await.is_err(), "it goes on");
    second.acquire(|| {}).await;
    let [(claim, seconds)] = &told(&second)[..] else { panic!("{:?}", told(&second)) };
    assert_eq!(
        (claim.as_str(), *seconds),
        ("gone", i64::try_from(began.elapsed().as_secs()).unwrap())
    );
    tokio::time::advance(Duration::from_secs(600)).await;
    second.next_epoch().await.unwrap();
    assert_eq!(told(&second), []);
}
