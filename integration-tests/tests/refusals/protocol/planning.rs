//! The scheduler refuses questions.

use anyhow::Result;
use longshore_it::stage::services::Service;
use longshore_proto::limits::MESSAGE_BYTES_MAX;
use longshore_proto::planning::v1::planning_service_client::PlanningServiceClient;
use longshore_proto::planning::v1::{
    ComputePlanOptions, ComputePlanRequest, ComputePlanResponse, ExplainPodRequest,
};
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{
    Catalogue, InstanceType, NodePool, Object, Operator, PodCount, PodShape, Requirement, Resources,
};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::{refused, scheduler};

async fn client(service: &Service) -> Result<PlanningServiceClient<Channel>> {
    let client = PlanningServiceClient::connect(service.url()).await?;
    Ok(client.max_encoding_message_size(usize::MAX))
}

async fn ask(
    service: &Service,
    question: ComputePlanRequest,
) -> Result<Result<ComputePlanResponse, Status>> {
    let answer = client(service).await?.compute_plan(tokio_stream::once(question)).await;
    Ok(answer.map(tonic::Response::into_inner))
}

/// A question about one pod, one pool and one type of instance.
fn question() -> ComputePlanRequest {
    let pool = NodePool { name: "good".to_owned(), ..NodePool::default() };
    let requests = Resources { cpu_millis: 500, ..Resources::default() };
    let shape = PodShape {
        shape_id: "s".to_owned(),
        namespace: "default".to_owned(),
        requests: Some(requests),
        ..PodShape::default()
    };
    let kinds = [Kind::NodePool(pool), Kind::PodShape(shape)];
    let capacity =
        Resources { cpu_millis: 2000, memory_bytes: 1 << 32, pods: 10, ..Default::default() };
    let kind = InstanceType {
        name: "any".to_owned(),
        capacity: Some(capacity),
        ..InstanceType::default()
    };
    ComputePlanRequest {
        objects: kinds.into_iter().map(|kind| Object { kind: Some(kind) }).collect(),
        pods: vec![PodCount { shape_id: "s".to_owned(), count: 1 }],
        catalogue: Some(Catalogue { types: vec![kind], ..Catalogue::default() }),
        ..ComputePlanRequest::default()
    }
}

/// Changes the pool of a question.
fn with_pool(change: impl Fn(&mut NodePool)) -> ComputePlanRequest {
    let mut question = question();
    for object in &mut question.objects {
        if let Some(Kind::NodePool(pool)) = &mut object.kind {
            change(pool);
        }
    }
    question
}

/// Changes the shape of a question's pod.
fn with_shape(change: impl Fn(&mut PodShape)) -> ComputePlanRequest {
    let mut question = question();
    for object in &mut question.objects {
        if let Some(Kind::PodShape(shape)) = &mut object.kind {
            change(shape);
        }
    }
    question
}

/// The scheduler still answers good questions.
async fn answers(service: &Service) -> Result<()> {
    ask(service, question()).await??;
    Ok(())
}

#[tokio::test]
async fn a_question_with_an_unknown_operator_or_a_negative_quantity() -> Result<()> {
    let service = scheduler("question").await?;
    let refusal = (Code::InvalidArgument, "MALFORMED");
    let odd = with_pool(|pool| {
        pool.requirements = vec![Requirement {
            key: "zone".to_owned(),
            operator: Operator::Unspecified.into(),
            ..Requirement::default()
        }];
    });
    let parts = ["NodePool good: requirements.zone", "unknown operator; use In, NotIn"];
    refused(ask(&service, odd).await?, refusal, &parts)?;
    let negative = with_shape(|shape| {
        shape.requests = Some(Resources { cpu_millis: -500, ..Resources::default() });
    });
    let parts = ["pods of default/", "cpu_millis", "-500 is negative; use 0 or more"];
    refused(ask(&service, negative).await?, refusal, &parts)?;
    answers(&service).await
}

#[tokio::test]
async fn a_question_over_the_limit() -> Result<()> {
    let service = scheduler("large-question").await?;
    let large = with_pool(|pool| pool.name = "x".repeat(MESSAGE_BYTES_MAX));
    let parts = ["larger than 4194304 bytes", "several messages"];
    refused(ask(&service, large).await?, (Code::OutOfRange, "MESSAGE_TOO_LARGE"), &parts)?;
    answers(&service).await
}

#[tokio::test]
async fn a_question_about_what_is_not_there() -> Result<()> {
    let service = scheduler("absent").await?;
    let none = ComputePlanRequest { catalogue: None, ..question() };
    let parts = ["neither a catalogue nor options.region"];
    refused(ask(&service, none.clone()).await?, (Code::InvalidArgument, "MALFORMED"), &parts)?;
    let region = ComputePlanOptions { region: "eu-west-1".to_owned(), ..Default::default() };
    let elsewhere = ComputePlanRequest { options: Some(region), ..none };
    let parts = ["no actuator of region \"eu-west-1\" is connected", "known: "];
    refused(ask(&service, elsewhere).await?, (Code::NotFound, "NOT_FOUND"), &parts)?;
    let pod = ExplainPodRequest { cluster_id: "nowhere".to_owned(), ..Default::default() };
    let answer = client(&service).await?.explain_pod(pod).await;
    let parts = ["no watcher of cluster \"nowhere\" is connected"];
    refused(answer, (Code::NotFound, "NOT_FOUND"), &parts)?;
    answers(&service).await
}
