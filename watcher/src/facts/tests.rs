//! Facts of a cluster that changes under a watcher that goes on running.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{Request, Response, StatusCode};
use kube::client::Body;
use longshore_runtime::clock::Clock;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

/// An API server of this minor version; 0 when it does not answer its questions.
#[derive(Clone, Default)]
struct Server(Arc<AtomicU32>);

impl Server {
    fn client(&self) -> Client {
        let minor = Arc::clone(&self.0);
        let call = move |request: Request<Body>| {
            let (code, answer) = answer(request.uri().path(), minor.load(Ordering::Relaxed));
            let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
            *response.status_mut() = code;
            std::future::ready(Ok::<_, Infallible>(response))
        };
        Client::new(service_fn(call), "default")
    }

    fn is_upgraded_to(&self, minor: u32) {
        self.0.store(minor, Ordering::Relaxed);
    }
}

fn answer(path: &str, minor: u32) -> (StatusCode, Value) {
    let meta = |name: &str| json!({ "name": name, "namespace": SYSTEM, "uid": "uid-1" });
    let found = match path.rsplit('/').next().unwrap_or_default() {
        _ if minor == 0 => json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": "", "reason": "InternalError", "code": 500 }),
        "version" => json!({ "major": "1", "minor": format!("{minor}+"), "gitVersion": "",
            "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "",
            "compiler": "", "platform": "" }),
        "kube-dns" => json!({ "metadata": meta("kube-dns"),
            "spec": { "clusterIP": format!("10.0.0.{minor}") } }),
        "kube-root-ca.crt" => json!({ "metadata": meta("kube-root-ca.crt"),
            "data": { "ca.crt": format!("authority {minor}") } }),
        _ => json!({ "metadata": meta(SYSTEM) }),
    };
    let code = if minor == 0 { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
    (code, found)
}

fn version(store: &Store) -> String {
    store.read(|index| index.cluster().cloned().unwrap_or_default().kubernetes_version)
}

#[tokio::test(start_paused = true)]
async fn facts_are_read_again_while_the_watcher_runs() {
    let (server, store) = (Server::default(), Store::new(Clock::reading(|| 0)));
    server.is_upgraded_to(34);
    let config = Config::new("c", "http://scheduler:1");
    let facts = Facts::new(&config, &server.client(), &store, Entropy::seeded(1));
    facts.refresh().await;
    assert_eq!(version(&store), "1.34");
    let again = Arc::new(Notify::new());
    let keeping = {
        let again = Arc::clone(&again);
        async move { facts.keep(&again).await }
    };
    let keeping = async move { drop(tokio::time::timeout(ROUND * 10, keeping).await) };
    let watching = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.is_upgraded_to(35);
        tokio::time::sleep(ROUND).await;
        assert_eq!(version(&store), "1.35", "after a round at the latest");
        let known = store.read(|index| index.cluster().cloned().unwrap_or_default());
        assert_eq!((known.dns_ip.as_str(), known.name.as_str()), ("10.0.0.35", "c"));
        assert_eq!(known.ca_bundle, STANDARD.encode("authority 35"));
        server.is_upgraded_to(36);
        again.notify_one();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(version(&store), "1.36", "when a session begins");
        server.is_upgraded_to(0);
        tokio::time::sleep(ROUND * 2).await;
        assert_eq!(version(&store), "1.36", "what is not answered stays as it was");
    };
    tokio::select! {
        () = keeping => panic!("it reads for ever"),
        () = watching => {}
    }
}
