//! What a watch makes of an API server that no longer serves its kind.

use std::convert::Infallible;

use http::{Request, Response, StatusCode};
use kube::client::Body;
use longshore_runtime::clock::Clock;
use longshore_runtime::entropy::Entropy;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

/// Lists one claim in a page, and knows nothing of the kind when it is to be watched.
async fn serve(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let asks = |part| request.uri().query().unwrap_or_default().contains(part);
    let refusal = |code: StatusCode| {
        let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": "", "reason": "", "code": code.as_u16() });
        (code, status)
    };
    let (code, answer): (_, Value) = if asks("sendInitialEvents") {
        refusal(StatusCode::UNPROCESSABLE_ENTITY)
    } else if asks("watch=true") {
        refusal(StatusCode::NOT_FOUND)
    } else {
        let class = json!({ "group": "g", "kind": "EC2NodeClass", "name": "default" });
        let claim = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": "c1", "uid": "u1", "resourceVersion": "1" },
            "spec": { "requirements": [], "nodeClassRef": class } });
        let list = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaimList",
            "metadata": { "resourceVersion": "1" }, "items": [claim] });
        (StatusCode::OK, list)
    };
    let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
    *response.status_mut() = code;
    Ok(response)
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_answers_not_found_after_it_was_listed_keeps_its_objects() {
    let client = Client::new(service_fn(serve), "default");
    let store = Store::new(Clock::reading(|| 0));
    let watching = watch::<NodeClaim>(Api::all(client), store.clone(), Entropy::seeded(1));
    // Long enough for many attempts.
    let outcome = tokio::time::timeout(ABSENCE_LONG * 2, watching).await;
    assert!(outcome.is_err(), "the watch goes on trying");
    store.read(|index| {
        assert!(index.claim("c1").is_some());
        assert!(!index.unlisted().contains(&Source::NodeClaim));
    });
    let tombstone =
        crate::index::Key::new(longshore_proto::types::v1::ObjectKind::Unreadable, "4/");
    assert!(store.update(|index| index.settled().get(&tombstone).is_some()));
}
