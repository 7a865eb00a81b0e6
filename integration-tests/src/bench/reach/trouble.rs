//! One cluster that flaps, one that is flooded with changes, and one client that asks without end.
//!
//! Invariant: all three go on until the process is ended; what they are refused, they ask again.

use std::time::Duration;

use anyhow::Result;
use longshore_manifests::neutral;
use longshore_proto::planning::v1::planning_service_client::PlanningServiceClient;
use longshore_proto::planning::v1::{ComputePlanOptions, ComputePlanRequest, Effort};
use longshore_runtime::client;
use longshore_runtime::net::Network;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::TroubleArgs;
use super::cluster::{Cluster, REGION};
use super::watcher::{self, Watcher};
use crate::bench::workloads::classes;

/// Questions that the client has under way at once.
const QUESTIONS: usize = 64;
/// Pods that come and go in one message of the flooded cluster.
const PODS_EACH: u64 = 200;
/// Before a refused session is tried again.
const AGAIN: Duration = Duration::from_millis(20);

/// Sessions of a watcher are numbered from the time, so that each process goes on from the one
/// before.
fn epoch() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Makes trouble until the process is ended.
///
/// # Errors
/// When the scheduler's address is none.
pub async fn make(args: &TroubleArgs) -> Result<()> {
    let [flapping, flooded] = [0, 1].map(|number| Cluster::new(number, args.size.each()));
    let mut all = JoinSet::new();
    all.spawn(flap(args.scheduler.clone(), flapping));
    all.spawn(flood(args.scheduler.clone(), flooded));
    let client = PlanningServiceClient::new(client::channel(&args.scheduler, &Network::System)?);
    let question = question();
    for _ in 0..QUESTIONS {
        let (mut client, question) = (client.clone(), question.clone());
        all.spawn(async move {
            loop {
                let asked = tokio_stream::iter([question.clone()]);
                if client.compute_plan(asked).await.is_err() {
                    sleep(AGAIN).await;
                }
            }
        });
    }
    while all.join_next().await.is_some() {}
    Ok(())
}

/// A question that takes the planner about a tenth of a second.
fn question() -> ComputePlanRequest {
    let (objects, pods) = neutral::objects(&classes(200, 5, 0));
    let options = ComputePlanOptions {
        effort: Effort::Default.into(),
        region: REGION.to_owned(),
        ..ComputePlanOptions::default()
    };
    ComputePlanRequest { options: Some(options), objects, pods, catalogue: None }
}

/// Session after session, each with the whole cluster.
async fn flap(url: String, cluster: Cluster) {
    let objects = cluster.objects();
    loop {
        let opened = Watcher::open(&url, &cluster, objects.clone(), epoch()).await;
        let Ok(mut watcher) = opened else {
            sleep(AGAIN).await;
            continue;
        };
        // One answer shows that the snapshot has arrived.
        drop(tokio::time::timeout(AGAIN, watcher.next()).await);
    }
}

/// Pods that come and go as fast as the scheduler takes them.
async fn flood(url: String, cluster: Cluster) {
    let objects = cluster.objects();
    loop {
        if let Ok(watcher) = Watcher::open(&url, &cluster, objects.clone(), epoch()).await {
            drop(churn(watcher, &cluster).await);
        }
        sleep(AGAIN).await;
    }
}

async fn churn(mut watcher: Watcher, cluster: &Cluster) -> Result<()> {
    let mut number = 0;
    loop {
        let pods = (number..number + PODS_EACH).map(|n| cluster.waiting(n));
        let uids: Vec<String> = pods.clone().map(|pod| pod.uid).collect();
        watcher.change(pods.map(watcher::pod).collect()).await?;
        watcher.change(uids.iter().map(|uid| watcher::gone(uid)).collect()).await?;
        number = (number + PODS_EACH) % (50 * PODS_EACH);
        while let Ok(asked) = tokio::time::timeout(Duration::ZERO, watcher.next()).await {
            asked?;
        }
    }
}
