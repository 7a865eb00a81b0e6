//! The API server as the watcher calls it: every call ends, none is made while the API server has
//! asked for a rest, and nothing is written without the Lease.
//!
//! Invariant: an answer that is awaited comes whole within its time or is an error; only a watch's
//! body may take longer, and whoever reads it ends one that is idle (`observe/feed.rs`). The Lease
//! is asked again at each write, so that a process that was stopped for a while writes nothing when
//! it goes on.

mod restraint;

use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use longshore_runtime::planted;
use tower::service_fn;

use self::restraint::{Restraint, again};
use crate::lease::Tenure;

/// How long the API server may take for a call about one object.
pub const CALL_PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take for a page of a list, and until a watch begins.
pub const LIST_PATIENCE: Duration = Duration::from_secs(30);

/// How often a call is made that the API server turns away.
const ATTEMPTS_MAX: u32 = 4;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// It took too long; whether it took effect is not known.
    #[error("the API server did not answer within {0:?}")]
    Slow(Duration),
    /// This process may no longer hold the Lease.
    #[error("not written: this watcher may no longer hold the Lease")]
    NoLease,
    /// The call failed.
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

/// A client whose calls all end, through `client`. It reads always, and writes while `tenure`
/// lasts; without one, always. What the API server turns away for want of time (429) is asked again
/// when the rest that it names is over, which all calls of this client keep.
#[must_use]
pub fn client(client: &Client, tenure: Option<Tenure>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let restraint = Restraint::default();
    let call = move |request: Request<Body>| {
        let (client, tenure, restraint) = (client.clone(), tenure.clone(), restraint.clone());
        async move { patient(&client, tenure.as_ref(), &restraint, request).await }
    };
    Client::new(service_fn(call), namespace)
}

async fn patient(
    client: &Client,
    tenure: Option<&Tenure>,
    restraint: &Restraint,
    mut request: Request<Body>,
) -> Result<Response<Body>, CallError> {
    let writes = request.method() != Method::GET;
    for _ in 1..ATTEMPTS_MAX {
        restraint.pass().await;
        let Some(copy) = again(&request) else { break };
        let response = leased(client, tenure.filter(|_| writes), request).await?;
        if !restraint.heeds(&copy, &response) {
            return Ok(response);
        }
        request = copy;
    }
    restraint.pass().await;
    leased(client, tenure.filter(|_| writes), request).await
}

/// A call that is only made while `tenure` lasts, if it needs one.
async fn leased(
    client: &Client,
    tenure: Option<&Tenure>,
    request: Request<Body>,
) -> Result<Response<Body>, CallError> {
    if tenure.is_some_and(|tenure| !tenure.holds()) && !planted::is("S22a") {
        return Err(CallError::NoLease);
    }
    call(client, request).await
}

async fn call(client: &Client, request: Request<Body>) -> Result<Response<Body>, CallError> {
    let query = request.uri().query().unwrap_or_default();
    let asks = |key: &str| query.split('&').any(|part| part.starts_with(key));
    let watches = asks("watch=true") || asks("watch=1");
    let lists = watches || asks("limit=") || asks("fieldSelector=");
    let patience = if lists { LIST_PATIENCE } else { CALL_PATIENCE };
    let whole = async {
        let response = client.send(request).await?;
        if watches {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        Ok(Response::from_parts(head, Body::from(bytes)))
    };
    if planted::is("S22b") {
        return whole.await.map_err(CallError::Kube);
    }
    tokio::time::timeout(patience, whole)
        .await
        .map_err(|_| CallError::Slow(patience))?
        .map_err(CallError::Kube)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use k8s_openapi::api::core::v1::{Node, Pod};
    use kube::Api;
    use kube::api::{DeleteParams, EvictParams, ListParams};
    use serde_json::json;
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;

    /// An API server that never answers.
    fn silent() -> Client {
        let call = |_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>();
        Client::new(service_fn(call), "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_api_server_is_an_error() {
        let nodes: Api<Node> = Api::all(client(&silent(), None));
        let begun = Instant::now();
        let error = nodes.get("n").await.unwrap_err();
        assert!(error.to_string().contains("did not answer"), "{error}");
        assert_eq!(begun.elapsed().as_secs(), CALL_PATIENCE.as_secs());
        assert!(nodes.list(&ListParams::default().limit(1)).await.is_err());
        assert!(nodes.watch(&Default::default(), "1").await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_without_the_lease() {
        let tenure = Tenure::default();
        let nodes: Api<Node> = Api::all(client(&silent(), Some(tenure.clone())));
        let refused = |error: kube::Error| error.to_string().contains("no longer hold the Lease");
        let delete = async || nodes.delete("n", &DeleteParams::default()).await.unwrap_err();
        assert!(refused(delete().await), "it was never held");
        tenure.extend(Instant::now() + CALL_PATIENCE);
        assert!(!refused(delete().await), "it is held when the call begins");
        assert!(refused(delete().await), "it has ended meanwhile");
    }

    /// An API server that answers with these statuses, one call after the other, and notes when it
    /// was asked.
    fn answering(statuses: &[u16]) -> (Client, mpsc::UnboundedReceiver<Instant>) {
        let (asked, heard) = mpsc::unbounded_channel();
        let left = Arc::new(Mutex::new(statuses.to_vec()));
        let call = move |_: Request<Body>| {
            asked.send(Instant::now()).unwrap();
            let status = left.lock().unwrap().remove(0);
            let text = json!({ "kind": "Status", "code": status, "status": "Failure",
                               "message": "busy", "reason": "TooManyRequests" });
            let body = if status == 200 { json!({ "metadata": { "name": "n" } }) } else { text };
            let response = Response::builder().status(status).header("Retry-After", "3");
            let response = response.body(Body::from(body.to_string().into_bytes()));
            std::future::ready(Ok::<_, Infallible>(response.unwrap()))
        };
        (Client::new(service_fn(call), "default"), heard)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_turned_away_is_asked_again_after_the_rest_that_all_keep() {
        let (server, mut heard) = answering(&[429, 429, 200, 200]);
        let nodes: Api<Node> = Api::all(client(&server, None));
        let begun = Instant::now();
        let other = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            nodes.get("other").await
        };
        let (first, other) = tokio::join!(nodes.get("n"), other);
        first.unwrap();
        other.unwrap();
        let mut at = Vec::new();
        while let Ok(asked) = heard.try_recv() {
            at.push(asked.duration_since(begun).as_secs());
        }
        assert_eq!(at, [0, 3, 3, 6], "nobody asks within a rest");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_not_turned_away_for_ever_and_a_refused_eviction_holds_nobody() {
        let (server, mut heard) = answering(&[429; 5]);
        let own = client(&server, None);
        let nodes: Api<Node> = Api::all(own.clone());
        let error = nodes.get("n").await.unwrap_err();
        assert_eq!(crate::patch::code(&error), Some(429));
        let asked = std::iter::from_fn(|| heard.try_recv().ok()).count();
        assert_eq!(asked, 4, "it is told whoever called");
        let (server, mut heard) = answering(&[429, 200]);
        let own = client(&server, None);
        let pods: Api<Pod> = Api::default_namespaced(own.clone());
        let begun = Instant::now();
        assert!(pods.evict("p", &EvictParams::default()).await.is_err());
        Api::<Node>::all(own).get("n").await.unwrap();
        assert_eq!(std::iter::from_fn(|| heard.try_recv().ok()).count(), 2);
        assert!(begun.elapsed() < Duration::from_secs(1));
    }
}
