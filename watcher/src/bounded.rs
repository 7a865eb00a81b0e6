//! The API server as the watcher calls it: every call ends, and nothing is written without the
//! Lease.
//!
//! Invariant: an answer that is awaited comes whole within its time or is an error; only a watch's
//! body may take longer, and whoever reads it ends one that is idle (`observe/feed.rs`). The Lease
//! is asked again at each write, so that a process that was stopped for a while writes nothing when
//! it goes on.

use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use longshore_runtime::planted;
use tower::service_fn;

use crate::lease::Tenure;

/// How long the API server may take for a call about one object.
pub const CALL_PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take for a page of a list, and until a watch begins.
pub const LIST_PATIENCE: Duration = Duration::from_secs(30);

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
/// lasts; without one, always.
#[must_use]
pub fn client(client: &Client, tenure: Option<Tenure>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let call = move |request: Request<Body>| {
        let (client, tenure) = (client.clone(), tenure.clone());
        async move {
            let writes = request.method() != Method::GET;
            if writes && tenure.is_some_and(|tenure| !tenure.holds()) && !planted::is("S22a") {
                return Err(CallError::NoLease);
            }
            call(&client, request).await
        }
    };
    Client::new(service_fn(call), namespace)
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

    use k8s_openapi::api::core::v1::Node;
    use kube::Api;
    use kube::api::{DeleteParams, ListParams};
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
}
