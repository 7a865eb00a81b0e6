//! A leader that does not know that it is one no more: its lease ends in etcd while it is stopped,
//! and its own clock says that there is time left. What it writes when it goes on, the fence in
//! etcd has to refuse.
//!
//! Invariant: it has something to write: answers to launches that were in the air when it was
//! stopped, which it may find recorded by its successor, and in any case what it is asked for
//! afterwards.

use anyhow::{Context, Result, ensure};
use etcd_client::{GetOptions, SortOrder, SortTarget};
use longshore_it::parts::poll;
use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_proto::capacity::v1::{Fence, PutClusterRequest};
use longshore_proto::types::v1::ClusterFacts;
use tonic::Status;

use super::{succeeded, unharmed};
use crate::kill::crowd::{CREATE_FLEET, Crowd, LIMIT};

/// Pods that each need a launch: enough for some to be in the air at any moment of a second.
const PODS: u32 = 30;
const MORE: u32 = 3;
/// Life of a lease: a process renews it three times in that, so not again before the test is over.
const LEASE_SECONDS: &str = "900";
/// Account of the simulated region.
const ACCOUNT: &str = "111122223333";
/// A cluster that nobody else has heard of.
const GHOST: &str = "ghost";
/// What the fence says to whoever is deposed.
const REFUSED: &str = "another one leads the region";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_deposed_leader_writes_is_refused() -> Result<()> {
    let start = Crowd::start("deposed", PODS, |config| {
        config.actuators = 2;
        config.actuator_flags = ["--lease-seconds", LEASE_SECONDS].map(str::to_owned).to_vec();
    });
    let mut crowd = Box::pin(start).await?;
    let first = poll::until("somebody leads", LIMIT, || crowd.fleet.leader()).await?;
    crowd.arrive().await?;
    crowd.launching(3).await?;
    crowd.fleet.actuator(first.actuator)?.freeze()?;
    end_lease(&crowd).await?;
    let second = succeeded(&crowd, first.actuator).await?;
    unharmed(&crowd).await?;
    let before = crowd.fleet.calls_by(first.actuator).len();
    let process = crowd.fleet.actuator(first.actuator)?;
    ensure!(!process.log()?.contains(REFUSED), "it was refused while it was frozen");
    process.thaw()?;
    let asked = ask(&crowd.fleet.actuator_urls()[first.actuator]).await;
    ensure!(asked.is_err(), "a deposed leader took a cluster on: {asked:?}");
    crowd.fleet.actuator(first.actuator)?.wait_for_line(REFUSED, LIMIT).await?;
    let kept = format!("/longshore/v1/{ACCOUNT}/us-east-1/cluster/{GHOST}");
    let kept = crowd.fleet.etcd.client().await?.get(kept, None).await?;
    ensure!(kept.kvs().is_empty(), "what the deposed leader wrote is in the ledger");
    crowd.grow(MORE).await?;
    unharmed(&crowd).await?;
    ensure!(crowd.fleet.leader().await?.actuator == second, "the deposed one leads again");
    let stale = crowd.fleet.calls_by(first.actuator).split_off(before);
    let twice = stale.iter().filter(|call| call.api == CREATE_FLEET);
    for call in twice {
        let token = call.client_token.as_deref().context("a launch without a token")?;
        let uses = crowd.fleet.region.token_uses(token);
        ensure!(uses > 1, "the deposed leader began a launch of its own: {call:?}");
    }
    Ok(())
}

/// Asks an actuator to take a cluster on, which it has to record first.
async fn ask(url: &str) -> Result<(), Status> {
    let client = CapacityServiceClient::connect(url.to_owned()).await;
    let mut client = client.map_err(|error| Status::internal(error.to_string()))?;
    let fence = Fence { cluster_id: GHOST.to_owned(), session_epoch: 1, plan_seq: 1 };
    let facts = ClusterFacts {
        name: GHOST.to_owned(),
        region: "us-east-1".to_owned(),
        kubernetes_version: "1.34".to_owned(),
        ..ClusterFacts::default()
    };
    let request =
        PutClusterRequest { fence: Some(fence), cluster: Some(facts), node_classes: Vec::new() };
    client.put_cluster(request).await.map(drop)
}

/// Ends the leader's lease in etcd, as etcd itself does when it is not renewed.
async fn end_lease(crowd: &Crowd) -> Result<()> {
    let mut etcd = crowd.fleet.etcd.client().await?;
    let oldest = GetOptions::new()
        .with_prefix()
        .with_sort(SortTarget::Create, SortOrder::Ascend)
        .with_limit(1);
    let name = format!("/longshore/v1/{ACCOUNT}/us-east-1/leader");
    let found = etcd.get(name, Some(oldest)).await?;
    let lease = found.kvs().first().context("nobody campaigns")?.lease();
    etcd.lease_revoke(lease).await?;
    Ok(())
}
