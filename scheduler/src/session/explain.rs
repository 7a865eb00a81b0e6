//! What the newest plan does with one pod, and what becomes of one node, for people.
//!
//! Invariant: the session's own loop only looks up; what takes a plan is computed apart from it.

mod node;

use longshore_core::answer::Target;
use longshore_core::explain::Asked;
use longshore_core::ids::PodUid;
use longshore_core::question::PlanInput;
use longshore_core::world::pod::Pod;
use longshore_proto::planning::v1::{ExplainNodeResponse, ExplainPodResponse};
use longshore_proto::reason::Reason;
use longshore_proto::types::v1;
use longshore_runtime::workers::Urgency;
use tokio::sync::oneshot;
use tonic::Status;

use super::Session;
use super::outage::Outage;
use super::planning::{Planning, Proposal};
use super::state::ClusterState;
use crate::service::planning::refusal;
use crate::wire;

/// Where an answer goes.
type Answer<T> = oneshot::Sender<Result<T, Status>>;
/// What is left to do for an answer.
type Job<T> = Box<dyn FnOnce() -> T + Send>;

/// A question to a session.
pub enum Query {
    /// What the newest plan does with a pod.
    ExplainPod {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
        /// Where the answer goes.
        answer: Answer<ExplainPodResponse>,
    },
    /// What becomes of a node.
    ExplainNode {
        /// Name of the node or of its claim.
        name: String,
        /// Where the answer goes.
        answer: Answer<ExplainNodeResponse>,
    },
}

/// What the newest plan does with a pod, and the pod's UID.
///
/// # Errors
/// NOT_FOUND when the cluster has no such pod; UNAVAILABLE before the first plan, with the outage
/// that keeps it from being made.
pub fn pod(
    state: &ClusterState,
    planning: &Planning,
    outage: Option<&Outage>,
    namespace: &str,
    name: &str,
) -> Result<(PodUid, ExplainPodResponse), Status> {
    let named = |pod: &&std::sync::Arc<Pod>| pod.key.namespace == namespace && pod.key.name == name;
    let Some(pod) = state.view().world().pods.values().find(named) else {
        let message =
            format!("cluster {} has no unfinished pod {namespace}/{name}", state.cluster_id());
        return Err(Reason::NotFound.status(message));
    };
    let Some(newest) = planning.newest() else {
        let early = || Status::unavailable("no plan has been made yet; ask again in a second");
        return Err(outage.map_or_else(early, Outage::status));
    };
    let (placement, reason) = placed(pod, newest, planning);
    let plan_id = newest.plan_id.clone();
    let told = ExplainPodResponse { placement, reason: Some(reason), plan_id, explanation: None };
    Ok((pod.uid.clone(), told))
}

/// Why a pod goes where it goes, and what one more like it would cost, as the cluster stands now.
/// Plans twice: not for the session's own loop.
#[must_use]
pub fn choice(input: &PlanInput, pod: &PodUid) -> Option<v1::Explanation> {
    let plan = longshore_core::plan(input);
    wire::explanation::of(input, &plan, pod.as_str(), Asked::Pod(pod))
}

impl Session {
    /// Answers a question.
    pub(super) fn answer(&mut self, query: Query) {
        match query {
            Query::ExplainPod { namespace, name, answer } => {
                let told = self.explain_pod(&namespace, &name);
                self.answer_with(told, answer);
            }
            Query::ExplainNode { name, answer } => {
                let told = self.explain_node(&name);
                self.answer_with(told, answer);
            }
        }
    }

    /// The question of what the next plan depends on, while the region is within reach.
    fn question(&mut self) -> Option<PlanInput> {
        let (region, now_ms) = (self.region()?, self.now_ms());
        Some(PlanInput {
            spared: self.spared(),
            ..self.planning.input(&self.state, &region, now_ms)
        })
    }

    fn explain_pod(
        &mut self,
        namespace: &str,
        name: &str,
    ) -> Result<Job<ExplainPodResponse>, Status> {
        let outage = self.outage.as_ref();
        let (uid, told) = pod(&self.state, &self.planning, outage, namespace, name)?;
        let input = self.question();
        Ok(Box::new(move || {
            let explanation = input.and_then(|input| choice(&input, &uid));
            ExplainPodResponse { explanation, ..told }
        }))
    }

    fn explain_node(&mut self, name: &str) -> Result<Job<ExplainNodeResponse>, Status> {
        let told = node::told(&self.state, name)?;
        let input = if node::is_open(&told) { self.question() } else { None };
        Ok(Box::new(move || match input {
            Some(input) => node::judged(input, told),
            None => told,
        }))
    }

    /// Plans are made for an answer, so it is not for this loop to wait. The asker may have gone;
    /// nobody else wants the answer.
    fn answer_with<T: Send + 'static>(&self, told: Result<Job<T>, Status>, answer: Answer<T>) {
        let job = match told {
            Ok(job) => job,
            Err(status) => return drop(answer.send(Err(status))),
        };
        let tenant = self.state.cluster_id();
        let done = self.supervisor.platform().workers.run(tenant, Urgency::WhatIf, job);
        let explained = async move {
            drop(answer.send(done.await.map_err(|error| refusal(&error))));
            Ok(())
        };
        self.supervisor.spawn_contained("explain", explained, drop);
    }
}

fn placed(
    pod: &Pod,
    newest: &Proposal,
    planning: &Planning,
) -> (Option<v1::Placement>, v1::Reason) {
    if let Some(node) = &pod.node {
        let placement = placement(pod, v1::placement::Target::Node(node.to_string()));
        return (Some(placement), said(pod, "RUNNING", format!("it is bound to node {node}")));
    }
    let unplaced = newest.plan.unplaced.iter().find(|unplaced| unplaced.pods.contains(&pod.uid));
    if let Some(unplaced) = unplaced {
        return (None, wire::plan::reason(&unplaced.reason));
    }
    let planned = newest.plan.placements.iter().find(|placement| placement.pod == pod.uid);
    let Some(planned) = planned else {
        return (None, said(pod, "NOT_PLANNED_YET", "it is newer than the newest plan".to_owned()));
    };
    let claim = planning.claim_of(&pod.uid);
    let (target, text) = match (&planned.target, claim) {
        (Target::New(_) | Target::Claim(_), Some(claim)) => (
            v1::placement::Target::Claim(claim.to_owned()),
            format!("it goes to the node of claim {claim}, which is on its way"),
        ),
        (Target::Node(node), _) => {
            (wire::plan::target(&planned.target), format!("node {node} has room for it"))
        }
        (Target::New(_) | Target::Claim(_), None) => {
            (wire::plan::target(&planned.target), "it goes to a planned node".to_owned())
        }
    };
    (Some(placement(pod, target)), said(pod, "PLACEABLE", text))
}

fn placement(pod: &Pod, target: v1::placement::Target) -> v1::Placement {
    v1::Placement { pod: pod.uid.to_string(), count: 1, target: Some(target) }
}

fn said(pod: &Pod, code: &str, message: String) -> v1::Reason {
    v1::Reason {
        code: code.to_owned(),
        subject: format!("Pod/{}", pod.key),
        message,
        causes: Vec::new(),
    }
}
