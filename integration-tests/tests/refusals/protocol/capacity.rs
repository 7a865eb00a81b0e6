//! The actuator refuses schedulers.

use anyhow::{Context, Result, ensure};
use longshore_it::parts::poll;
use longshore_it::stage::ledger;
use longshore_it::stage::services::Service;
use longshore_lab::region::{Region, RegionConfig, RegionHandle};
use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_proto::capacity::v1::{ApplyPlanRequest, Fence, PutClusterRequest};
use longshore_proto::types::v1::{Candidate, CapacityType, ClusterFacts, Launch};
use tonic::Code;
use tonic::transport::Channel;

use super::{ANY_PORT, refused};
use crate::refusals::stage::{LIMIT, REGION, surroundings};

/// A leading actuator, and its client.
async fn actuator(name: &str) -> Result<(RegionHandle, Service, CapacityServiceClient<Channel>)> {
    let region = Region::start(RegionConfig::simple(REGION)?).await?;
    let surroundings = surroundings(name, &region.endpoint_url())?;
    let service = surroundings.start_actuator("actuator", ANY_PORT).await?;
    let url = service.url();
    poll::until("the actuator leads", LIMIT, || ledger::term(&url)).await?;
    let client = CapacityServiceClient::connect(url).await?;
    Ok((region, service, client))
}

fn fence(session_epoch: u64, plan_seq: u64) -> Fence {
    Fence { cluster_id: "c".to_owned(), session_epoch, plan_seq }
}

fn cluster(fence: Fence) -> PutClusterRequest {
    let facts = ClusterFacts { name: "c".to_owned(), ..ClusterFacts::default() };
    PutClusterRequest { fence: Some(fence), cluster: Some(facts), node_classes: Vec::new() }
}

fn plan(fence: Fence) -> ApplyPlanRequest {
    let candidate = Candidate {
        instance_type: "c5.large".to_owned(),
        zone: "us-east-1a".to_owned(),
        capacity_type: CapacityType::OnDemand.into(),
        ..Candidate::default()
    };
    let launch = Launch {
        launch_id: "l-1".to_owned(),
        node_class: "EC2NodeClass/nowhere".to_owned(),
        candidates: vec![candidate],
        ..Launch::default()
    };
    ApplyPlanRequest {
        plan_id: "p".to_owned(),
        fence: Some(fence),
        expire_time: Some(prost_types::Timestamp { seconds: i64::MAX / 2000, nanos: 0 }),
        launches: vec![launch],
        terminations: Vec::new(),
    }
}

#[tokio::test]
async fn a_stale_epoch_and_a_cluster_that_is_not_known() -> Result<()> {
    let (_region, _service, mut client) = actuator("fence").await?;
    let answer = client.apply_plan(plan(fence(5, 1))).await?.into_inner();
    let refusal = answer.refusals.first().context("an unknown cluster was served")?;
    ensure!(refusal.reason == "UNKNOWN_NODE_CLASS", "{refusal:?}");
    let way_out =
        "cluster c has no node class \"EC2NodeClass/nowhere\" here; send it with PutCluster";
    ensure!(refusal.message.contains(way_out), "{refusal:?}");
    let stale = (Code::FailedPrecondition, "STALE_FENCE");
    refused(client.apply_plan(plan(fence(4, 9))).await, stale, &["cluster c", "5"])?;
    refused(client.put_cluster(cluster(fence(4, 10))).await, stale, &["cluster c", "5"])?;
    client.put_cluster(cluster(fence(5, 2))).await?;
    Ok(())
}

/// The fence that would keep a cluster's real plans out for ever.
#[tokio::test]
async fn an_epoch_that_lies_far_ahead() -> Result<()> {
    let (_region, _service, mut client) = actuator("ahead").await?;
    let ahead = (Code::FailedPrecondition, "EPOCH_AHEAD");
    let parts = ["of cluster c lies", "ahead of the clock here", "set the clocks of both hosts"];
    for epoch in [u64::MAX, 1 << 62] {
        refused(client.put_cluster(cluster(fence(epoch, 1))).await, ahead, &parts)?;
        refused(client.apply_plan(plan(fence(epoch, 1))).await, ahead, &parts)?;
    }
    client.put_cluster(cluster(fence(5, 1))).await?;
    Ok(())
}

#[tokio::test]
async fn a_plan_that_is_malformed_or_late() -> Result<()> {
    let (_region, _service, mut client) = actuator("plan").await?;
    let malformed = (Code::InvalidArgument, "MALFORMED");
    let answer = client.apply_plan(ApplyPlanRequest { fence: None, ..plan(fence(1, 1)) }).await;
    refused(answer, malformed, &["fence is missing"])?;
    let mut empty = plan(fence(1, 1));
    empty.launches[0].candidates.clear();
    refused(client.apply_plan(empty).await, malformed, &["launch l-1 has 0 candidates; 1 to 60"])?;
    let mut late = plan(fence(1, 2));
    late.expire_time = Some(prost_types::Timestamp { seconds: 1, nanos: 0 });
    let expired = (Code::FailedPrecondition, "PLAN_EXPIRED");
    refused(client.apply_plan(late).await, expired, &["plan p expired", "plan again"])?;
    client.put_cluster(cluster(fence(1, 3))).await?;
    Ok(())
}
