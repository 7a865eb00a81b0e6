//! Who writes the journal, and who no more: against an API server in this process.

use http::{Method, Request};
use kube::client::Body;
use longshore_lab::cluster::{Cluster, ClusterConfig, ClusterHandle};
use tokio::time::Instant;
use tower::service_fn;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn cluster() -> ClusterHandle {
    Cluster::in_process(ClusterConfig::default()).unwrap()
}

/// A client that tells of each request before it is sent.
fn told(cluster: &ClusterHandle, tell: impl Fn(&Method) + Send + Sync + 'static) -> Client {
    let client = cluster.in_process_client();
    let call = move |request: Request<Body>| {
        tell(request.method());
        let client = client.clone();
        async move { client.send(request).await }
    };
    Client::new(service_fn(call), "default")
}

fn held() -> Tenure {
    let tenure = Tenure::default();
    tenure.extend(Instant::now() + HOUR);
    tenure
}

/// How often the ConfigMap was written.
fn revision(cluster: &ClusterHandle) -> u64 {
    cluster.revision_of("configmaps")
}

fn page(text: &str) -> BTreeMap<String, Option<Vec<u8>>> {
    BTreeMap::from([("b-1".to_owned(), Some(text.as_bytes().to_vec()))])
}

#[tokio::test(start_paused = true)]
async fn whoever_opens_it_finds_all_pages_and_ends_the_writer_before() {
    let cluster = cluster();
    let journal = || ConfigMapJournal::new(&cluster.in_process_client(), "kube-system", held());
    let (first, second) = (journal(), journal());
    assert!(first.open().await.unwrap().is_empty());
    first.write(page("mine")).await.unwrap();
    let found = second.open().await.unwrap();
    assert_eq!(found["b-1"], b"mine");
    assert!(first.write(page("late")).await.is_err(), "it was opened by another since");
    second.write(page("theirs")).await.unwrap();
    assert_eq!(first.open().await.unwrap()["b-1"], b"theirs");
}

/// Stopped between two requests, and going on when the Lease is another's: that one's journal stays
/// open.
#[tokio::test(start_paused = true)]
async fn a_process_that_loses_the_lease_while_it_opens_the_journal_writes_nothing() {
    let cluster = cluster();
    let quiet = cluster.in_process_client();
    let lost = |tenure: &Tenure, at: Method| {
        let tenure = tenure.clone();
        told(&cluster, move |method| {
            if *method == at {
                tenure.end_now();
            }
        })
    };
    let tenure = held();
    let late = ConfigMapJournal::new(&lost(&tenure, Method::GET), "kube-system", tenure);
    assert!(late.open().await.is_err());
    assert_eq!(revision(&cluster), 0, "it was made without the Lease");
    let holder = ConfigMapJournal::new(&quiet, "kube-system", held());
    holder.open().await.unwrap();
    let before = revision(&cluster);
    let tenure = held();
    let late = ConfigMapJournal::new(&lost(&tenure, Method::GET), "kube-system", tenure);
    assert!(late.open().await.is_err());
    assert_eq!(revision(&cluster), before, "it was opened without the Lease");
    holder.write(page("mine")).await.unwrap();
}
