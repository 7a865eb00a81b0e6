//! Announcements from EC2.

use longshore_lab::region::CLUSTER;
use longshore_proto::capacity::v1::{InterruptionKind, LaunchPhase};
use longshore_proto::types::v1::{CapacityType, ClusterFacts};

use crate::world::{World, class, facts};

const TYPES: [&str; 1] = ["t4g.small"];

fn with_queue(queue: &str) -> ClusterFacts {
    ClusterFacts { interruption_queue: queue.to_owned(), ..facts() }
}

#[tokio::test]
async fn a_spot_interruption_is_shown_and_closes_its_pool() {
    let mut world = World::ready().await;
    world.client.put_cluster(with_queue(CLUSTER), vec![class()]).await.unwrap();
    let candidates = world.client.shown.candidates(&TYPES, CapacityType::Spot);
    let launch = world.client.shown.launch("l-1", candidates);
    world.client.apply(1, vec![launch], vec![]).await.unwrap();
    world.client.until("launched", |s| s.phase("l-1") == LaunchPhase::Launched).await;
    let instance_id = world.client.shown.launches["l-1"].instance_id.clone();
    world.region.rebalance(&instance_id).unwrap();
    world.region.interrupt_spot(&instance_id).unwrap();
    world.client.until("announced", |shown| shown.interruptions.len() >= 2).await;
    let mut kinds: Vec<_> =
        world.client.shown.interruptions.iter().map(|i| (i.kind(), i.claim.clone())).collect();
    kinds.sort();
    let claim = "claim-l-1".to_owned();
    assert_eq!(
        kinds,
        [(InterruptionKind::Spot, claim.clone()), (InterruptionKind::Rebalance, claim)]
    );
    world.client.until("closed", |shown| !shown.closed.is_empty()).await;
}

#[tokio::test]
async fn an_instance_that_somebody_else_ends_is_noticed() {
    let mut world = World::ready().await;
    let candidates = world.client.shown.candidates(&TYPES, CapacityType::Spot);
    let launch = world.client.shown.launch("l-1", candidates);
    world.client.apply(1, vec![launch], vec![]).await.unwrap();
    world.client.until("launched", |s| s.phase("l-1") == LaunchPhase::Launched).await;
    let instance_id = world.client.shown.launches["l-1"].instance_id.clone();
    world.region.kill(&instance_id).unwrap();
    world.client.until("terminated", |s| s.phase("l-1") == LaunchPhase::Terminated).await;
}

#[tokio::test]
async fn an_absent_queue_is_a_condition_and_keeps_nothing_from_launching() {
    let mut world = World::ready().await;
    world.client.put_cluster(with_queue("nowhere"), vec![class()]).await.unwrap();
    world
        .client
        .until("told", |shown| {
            shown.condition("InterruptionQueueReady").is_some_and(|(status, reason, _)| {
                status == Some(false) && reason == "QueueNotFound"
            })
        })
        .await;
    assert!(world.client.shown.class_ready());
}
