//! PlanningService: what-if plans for any client, and explanations of live pods.

use std::time::Duration;

use futures::stream::BoxStream;
use longshore_proto::limits::MESSAGE_BYTES_MAX;
use longshore_proto::planning::v1 as planning;
use longshore_proto::planning::v1::planning_service_server::PlanningService;
use longshore_proto::reason::{self, Reason};
use longshore_proto::types::v1::object::Kind;
use longshore_runtime::net::Peer;
use longshore_runtime::workers::{JobError, Urgency, Workers};
use prost::Message as _;
use tokio::sync::oneshot;
use tokio::time::error::Elapsed;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};

use super::Sessions;
use crate::compute::{self, Question};
use crate::memory::{Memory, QuestionMemory};
use crate::region::directory::Regions;
use crate::session::Query;
use crate::settings::Settings;

/// Most objects, counted pods, types and offerings together that one question may hold; beyond that
/// the question is refused rather than memory filled.
const QUESTION_MAX: usize = 2_000_000;

/// Most pods that one question may ask to explain: each takes another plan.
const EXPLAIN_MAX: usize = 64;

/// How long a client may take between two parts of a question.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tenant of questions whose asker is not known.
pub const WHAT_IF: &str = "what-if";

/// Serves plans and explanations.
pub struct Service {
    /// The connected clusters.
    pub sessions: Sessions,
    /// The regions within reach, for their live catalogues.
    pub regions: Regions,
    /// How plans are made.
    pub settings: Settings,
    /// Where they are made.
    pub workers: Workers,
    /// What they may take.
    pub memory: Memory,
}

#[tonic::async_trait]
impl PlanningService for Service {
    type StreamPlanStream = Parts;

    async fn compute_plan(
        &self,
        request: Request<Streaming<planning::ComputePlanRequest>>,
    ) -> Result<Response<planning::ComputePlanResponse>, Status> {
        let tenant = tenant(&request);
        let (answer, _memory) = self.answer(&tenant, request.into_inner()).await?;
        let size = answer.encoded_len();
        if size > MESSAGE_BYTES_MAX {
            let message = format!(
                "the answer takes {size} bytes, and a message {MESSAGE_BYTES_MAX} at most; ask StreamPlan, or send \
                 pods as counts instead of names"
            );
            return Err(Reason::MessageTooLarge.status(message));
        }
        Ok(Response::new(answer))
    }

    async fn stream_plan(
        &self,
        request: Request<Streaming<planning::StreamPlanRequest>>,
    ) -> Result<Response<Self::StreamPlanStream>, Status> {
        let tenant = tenant(&request);
        let parts = request.into_inner();
        let parts = parts.map(|part| part.map(|part| part.part.unwrap_or_default()));
        let (answer, memory) = self.answer(&tenant, parts).await?;
        let parts = compute::parts(answer).into_iter();
        // Until the last part has left the answer takes memory.
        let part = move |part| {
            let _ = &memory;
            Ok(planning::StreamPlanResponse { part: Some(part) })
        };
        Ok(Response::new(Box::pin(tokio_stream::iter(parts.map(part)))))
    }

    async fn explain_pod(
        &self,
        request: Request<planning::ExplainPodRequest>,
    ) -> Result<Response<planning::ExplainPodResponse>, Status> {
        let planning::ExplainPodRequest { cluster_id, namespace, name } = request.into_inner();
        let query = |answer| Query::ExplainPod { namespace, name, answer };
        self.ask(&cluster_id, query).await.map(Response::new)
    }

    async fn explain_node(
        &self,
        request: Request<planning::ExplainNodeRequest>,
    ) -> Result<Response<planning::ExplainNodeResponse>, Status> {
        let planning::ExplainNodeRequest { cluster_id, name } = request.into_inner();
        let query = |answer| Query::ExplainNode { name, answer };
        self.ask(&cluster_id, query).await.map(Response::new)
    }
}

/// An answer in parts.
type Parts = BoxStream<'static, Result<planning::StreamPlanResponse, Status>>;

impl Service {
    /// Asks the session of a cluster.
    async fn ask<T>(
        &self,
        cluster_id: &str,
        query: impl FnOnce(oneshot::Sender<Result<T, Status>>) -> Query,
    ) -> Result<T, Status> {
        let session = self.sessions.get(cluster_id);
        let session = session.map_err(|several| self.unknown(cluster_id, &several))?;
        let (answer, answered) = oneshot::channel();
        let asked = session.queries.send(query(answer)).await;
        let gone = || Status::unavailable("the session ended; ask again when it is back");
        asked.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// The refusal of a question about a cluster that is not connected, or is one of several.
    fn unknown(&self, cluster_id: &str, several: &[String]) -> Status {
        if several.is_empty() {
            let known = self.sessions.clusters().join(", ");
            let message =
                format!("no watcher of cluster {cluster_id:?} is connected; known: {known}");
            return Reason::NotFound.status(message);
        }
        let several = several.join(" and ");
        let message =
            format!("cluster {cluster_id:?} is the name of {several}; ask for one of them so");
        Reason::ClusterMismatch.status(message)
    }

    /// The answer to a question that comes in parts.
    async fn answer(
        &self,
        tenant: &str,
        mut parts: impl Stream<Item = Result<planning::ComputePlanRequest, Status>> + Unpin,
    ) -> Result<(planning::ComputePlanResponse, QuestionMemory), Status> {
        let mut memory = self.memory.question(tenant);
        let mut question = Question { settings: self.settings.clone(), ..Question::default() };
        let mut region = String::new();
        let (mut first, mut size) = (true, 0);
        while let Some(part) = tokio::time::timeout(PATIENCE, parts.next()).await.map_err(silent)? {
            let part = part.map_err(reason::of_receiving)?;
            memory.take(&part, weight(&part))?;
            if let Some(options) = &part.options {
                if !first {
                    let message = "options belong in the first message of the stream only";
                    return Err(Reason::ProtocolOrder.status(message));
                }
                choose(&mut question, options)?;
                region.clone_from(&options.region);
            }
            first = false;
            size = add(&mut question, part, size)?;
        }
        self.fill_catalogue(&mut question, &region)?;
        // The memory is in use for as long as somebody computes, also when nobody waits any more.
        let job = move || (compute::compute(&question), memory);
        let computed = self.workers.run(tenant, Urgency::WhatIf, job).await;
        let (answer, memory) = computed.map_err(|error| refusal(&error))?;
        let answer = answer.map_err(|error| Reason::Malformed.status(error.to_string()))?;
        Ok((answer, memory))
    }

    /// Uses a region's live catalogue when the question brought none.
    fn fill_catalogue(&self, question: &mut Question, region: &str) -> Result<(), Status> {
        if !question.catalogue.types.is_empty() {
            return Ok(());
        }
        if region.is_empty() {
            let message =
                "the question has neither a catalogue nor options.region; send one of them";
            return Err(Reason::Malformed.status(message));
        }
        let Some(known) = self.regions.any(region) else {
            let names = self.regions.names().join(", ");
            let message = format!("no actuator of region {region:?} is connected; known: {names}");
            return Err(Reason::NotFound.status(message));
        };
        // Any of them: they differ in what the system keeps back, not in what is sold.
        question.live = known.read(|state| state.catalogues.values().next().cloned());
        match question.live {
            Some(_) => Ok(()),
            None => {
                let message = format!("region {region} has not reported a catalogue yet");
                Err(Status::unavailable(message))
            }
        }
    }
}

fn silent(_: Elapsed) -> Status {
    let message =
        format!("no part of the question came for {PATIENCE:?}; end the stream after the last");
    Reason::ProtocolOrder.status(message)
}

/// Who asks, as far as that is known: callers take turns.
fn tenant<T>(request: &Request<T>) -> String {
    match Peer::of(request.extensions()) {
        Peer { address: None, identity: None } => WHAT_IF.to_owned(),
        peer => peer.tenant(),
    }
}

/// The refusal of a question that has not been worked on to its end.
#[must_use]
pub fn refusal(error: &JobError) -> Status {
    match error {
        JobError::Full => Reason::Overloaded.status(error.to_string()),
        JobError::Panicked(_) => Status::internal(format!("planner: {error}")),
        JobError::Ended => Reason::Draining.status(error.to_string()),
    }
}

fn choose(question: &mut Question, options: &planning::ComputePlanOptions) -> Result<(), Status> {
    question.effort = options.effort();
    question.now_ms = options.now_ms;
    question.explain.clone_from(&options.explain);
    let asked = question.explain.len();
    if asked > EXPLAIN_MAX {
        let message = format!("options.explain names {asked} pods, more than {EXPLAIN_MAX}");
        return Err(Reason::Overloaded.status(message));
    }
    Ok(())
}

/// What a question grows by with a part: everything that takes memory or time, whatever it is
/// called.
fn weight(part: &planning::ComputePlanRequest) -> usize {
    let counted = |count: i64| usize::try_from(count.max(1)).unwrap_or(usize::MAX);
    let objects = part.objects.iter().map(|object| match &object.kind {
        Some(Kind::NodePool(pool)) => counted(pool.replicas.unwrap_or(1)),
        Some(Kind::CapacityBuffer(buffer)) => counted(buffer.replicas),
        _ => 1,
    });
    let pods = part.pods.iter().map(|group| counted(i64::from(group.count)));
    let types = part.catalogue.iter().flat_map(|catalogue| &catalogue.types);
    let offered = types.map(|kind| 1 + kind.offerings.len());
    objects.chain(pods).chain(offered).fold(0, usize::saturating_add)
}

/// Adds a part; the size of the question then.
fn add(
    question: &mut Question,
    part: planning::ComputePlanRequest,
    size: usize,
) -> Result<usize, Status> {
    let size = size.saturating_add(weight(&part));
    if size > QUESTION_MAX {
        let message = format!(
            "the question holds {size} objects, pods and offerings, more than {QUESTION_MAX}; ask about a \
             part of the cluster"
        );
        return Err(Reason::Overloaded.status(message));
    }
    question.objects.extend(part.objects);
    question.pods.extend(part.pods);
    if let Some(catalogue) = part.catalogue {
        question.catalogue.types.extend(catalogue.types);
        if !catalogue.catalogue_id.is_empty() {
            question.catalogue.catalogue_id = catalogue.catalogue_id;
        }
        if !catalogue.price_date.is_empty() {
            question.catalogue.price_date = catalogue.price_date;
        }
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use longshore_proto::types::v1;

    use super::*;

    fn part() -> planning::ComputePlanRequest {
        planning::ComputePlanRequest::default()
    }

    #[test]
    fn everything_that_takes_memory_counts() {
        let group = |count| v1::PodCount { shape_id: "web".to_owned(), count };
        let kind = v1::InstanceType {
            offerings: vec![v1::Offering::default(); 3],
            ..v1::InstanceType::default()
        };
        let pool = v1::NodePool { replicas: Some(2_000_000_000), ..v1::NodePool::default() };
        let buffer = v1::CapacityBuffer { replicas: 7, ..v1::CapacityBuffer::default() };
        let object = |kind| v1::Object { kind: Some(kind) };
        let catalogue = v1::Catalogue { types: vec![kind; 2], ..v1::Catalogue::default() };
        for (part, expected) in [
            (planning::ComputePlanRequest { pods: vec![group(0); 5], ..part() }, 5),
            (planning::ComputePlanRequest { pods: vec![group(9), group(1)], ..part() }, 10),
            (planning::ComputePlanRequest { catalogue: Some(catalogue), ..part() }, 8),
            (
                planning::ComputePlanRequest {
                    objects: vec![object(Kind::NodePool(pool))],
                    ..part()
                },
                2_000_000_000,
            ),
            (
                planning::ComputePlanRequest {
                    objects: vec![object(Kind::CapacityBuffer(buffer))],
                    ..part()
                },
                7,
            ),
        ] {
            assert_eq!(weight(&part), expected);
            assert_eq!(add(&mut Question::default(), part, 0).is_ok(), expected <= QUESTION_MAX);
        }
        let full = planning::ComputePlanRequest { pods: vec![group(0)], ..part() };
        assert!(add(&mut Question::default(), full, QUESTION_MAX).is_err());
    }
}
