//! What becomes of a buffer's room while the API server says nothing.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::client::Body;
use longshore_runtime::clock::Clock;
use serde_json::json;
use tower::service_fn;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_buffer_keeps_its_room_while_its_reference_cannot_be_read() {
    let broken = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&broken);
    let serve = move |_: Request<Body>| {
        let fails = switch.load(Ordering::SeqCst);
        let answer = if fails {
            json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "",
                "reason": "InternalError", "code": 500 })
        } else {
            let spec = json!({ "containers": [{ "name": "c" }] });
            json!({ "apiVersion": "v1", "kind": "PodTemplate", "metadata": { "name": "t" },
                "template": { "spec": spec } })
        };
        let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
        if fails {
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
        async move { Ok::<_, Infallible>(response) }
    };
    let store = Store::new(Clock::reading(|| 0));
    let buffer: CapacityBuffer = serde_json::from_value(json!({
        "metadata": { "namespace": "default", "name": "b" },
        "spec": { "podTemplateRef": { "name": "t" }, "replicas": 2 },
    }))
    .unwrap();
    store.write(|index| index.apply(ObjectReference::default(), Ok(buffer)));
    let running = run(Client::new(service_fn(serve), "default"), store.clone());
    let mut running = std::pin::pin!(running);
    let resolved = |store: &Store| {
        let is = |entry: &BufferEntry| matches!(entry.outcome, Some(Outcome::Resolved { .. }));
        store.read(|index| index.buffers().all(is))
    };
    assert!(tokio::time::timeout(ROUND / 2, &mut running).await.is_err());
    assert!(resolved(&store));
    broken.store(true, Ordering::SeqCst);
    assert!(tokio::time::timeout(ROUND * 3, &mut running).await.is_err());
    assert!(resolved(&store));
}
