//! Questions and answers that are many times larger than a message.
//!
//! Invariant: they are answered whole, and the scheduler's memory stays within bounds.

use anyhow::{Result, ensure};
use longshore_proto::planning::v1::planning_service_client::PlanningServiceClient;
use longshore_proto::planning::v1::{ComputePlanRequest, ComputePlanResponse, StreamPlanRequest};
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{
    CapacityType, Catalogue, InstanceType, NodePool, Object, Offering, Pod, PodPhase, PodShape,
    Resources,
};
use prost::Message as _;
use tonic::Code;

use super::{refused, scheduler, scheduler_with};

const PODS: usize = 200_000;
/// Kinds of pods.
const SHAPES: usize = 500;
/// Pods of a message: about a megabyte.
const PODS_OF_A_PART: usize = 10_000;
/// Most memory the scheduler may have taken: 5 KiB a pod, question, plan, check and answer
/// together.
const RSS_MAX: u64 = 1 << 30;

/// Most memory that a scheduler takes which refuses all of that: what it keeps within unless told
/// otherwise.
const RSS_REFUSED_MAX: u64 = 512 << 20;

fn object(kind: Kind) -> Object {
    Object { kind: Some(kind) }
}

/// One pool, one type of instance and many kinds of pods.
fn supply() -> ComputePlanRequest {
    let offering = Offering {
        zone: "z".to_owned(),
        capacity_type: CapacityType::OnDemand.into(),
        price_micro_usd_per_hour: 1_000_000,
        available: true,
        ..Offering::default()
    };
    let capacity =
        Resources { cpu_millis: 64_000, memory_bytes: 1 << 38, pods: 500, ..Default::default() };
    let kind = InstanceType {
        name: "any.large".to_owned(),
        capacity: Some(capacity),
        offerings: vec![offering],
        ..InstanceType::default()
    };
    let pool = NodePool { name: "all".to_owned(), ..NodePool::default() };
    let mut objects = vec![object(Kind::NodePool(pool))];
    objects.extend((0..SHAPES).map(|number| {
        let cpu_millis = 100 + i64::try_from(number).unwrap_or(0);
        object(Kind::PodShape(PodShape {
            shape_id: format!("shape-{number}"),
            namespace: "default".to_owned(),
            requests: Some(Resources { cpu_millis, pods: 1, ..Default::default() }),
            ..PodShape::default()
        }))
    }));
    let catalogue = Some(Catalogue { types: vec![kind], ..Catalogue::default() });
    ComputePlanRequest { objects, catalogue, ..ComputePlanRequest::default() }
}

/// The question in parts.
fn question() -> Vec<ComputePlanRequest> {
    let pod = |number: usize| {
        object(Kind::Pod(Pod {
            uid: format!("00000000-0000-0000-0000-{number:012}"),
            name: format!("pod-{number}"),
            namespace: "default".to_owned(),
            shape_id: format!("shape-{}", number % SHAPES),
            phase: PodPhase::Pending.into(),
            ..Pod::default()
        }))
    };
    let part = |first: usize| ComputePlanRequest {
        objects: (first..first + PODS_OF_A_PART).map(pod).collect(),
        ..ComputePlanRequest::default()
    };
    let pods = (0..PODS).step_by(PODS_OF_A_PART).map(part);
    std::iter::once(supply()).chain(pods).collect()
}

#[tokio::test]
async fn two_hundred_thousand_pods_in_one_stream() -> Result<()> {
    let service = scheduler_with("crowded", &["--memory-mib", "4096"]).await?;
    let mut client = PlanningServiceClient::connect(service.url()).await?;
    let unary = client.compute_plan(tokio_stream::iter(question())).await;
    let parts = ["the answer takes ", "a message 4194304 at most; ask StreamPlan"];
    refused(unary, (Code::OutOfRange, "MESSAGE_TOO_LARGE"), &parts)?;
    let wrapped = |part| StreamPlanRequest { part: Some(part) };
    let asked: Vec<_> = question().into_iter().map(wrapped).collect();
    let mut answers = client.stream_plan(tokio_stream::iter(asked)).await?.into_inner();
    let mut plan = ComputePlanResponse::default();
    while let Some(answer) = answers.message().await? {
        let part = answer.part.unwrap_or_default();
        plan.merge(part.encode_to_vec().as_slice())?;
    }
    ensure!(plan.placements.len() == PODS, "{} of {PODS} have a place", plan.placements.len());
    ensure!(plan.violations.is_empty(), "{:?}", plan.violations);
    let planned: u32 = plan.nodes.iter().map(|node| node.count * node.pods_each).sum();
    ensure!(planned as usize == PODS, "nodes are for {planned} pods");
    let rss = service.process.peak_rss_bytes()?;
    ensure!(rss < RSS_MAX, "the scheduler took {rss} bytes");
    Ok(())
}

#[tokio::test]
async fn a_question_beyond_the_memory_of_the_scheduler_and_one_of_too_many_parts() -> Result<()> {
    let service = scheduler("crowded-small").await?;
    let mut client = PlanningServiceClient::connect(service.url()).await?;
    let unary = client.compute_plan(tokio_stream::iter(question())).await;
    let parts = ["takes too much memory", "--memory-mib"];
    refused(unary, (Code::ResourceExhausted, "OVERLOADED"), &parts)?;
    let objects = vec![Object::default(); 1_000_000];
    let dense = ComputePlanRequest { objects, ..ComputePlanRequest::default() };
    let unary = client.compute_plan(tokio_stream::iter([dense])).await;
    let parts = ["is made of more than", "send them in several messages"];
    refused(unary, (Code::OutOfRange, "MESSAGE_TOO_LARGE"), &parts)?;
    let rss = service.process.peak_rss_bytes()?;
    ensure!(rss < RSS_REFUSED_MAX, "the scheduler took {rss} bytes to refuse");
    Ok(())
}
