//! What becomes of one node, for people: why it stays, or what it waits for while it goes.
//!
//! Invariant: what is under way is told as the cluster has it; only of a node that is in service a
//! plan is made, as the cluster stands, to see what keeps it.

use longshore_core::explain::{Fate, Hold, NodeAnswer, explain_nodes};
use longshore_core::question::PlanInput;
use longshore_proto::planning::v1::{ExplainNodeResponse, NodeFate};
use longshore_proto::reason::Reason;
use longshore_proto::types::v1::{self, NodeClaim};
use tonic::Status;

use super::super::state::ClusterState;

/// What the cluster says of a node, by its name or that of its claim.
///
/// # Errors
/// NOT_FOUND when no node of ours has the name.
pub fn told(state: &ClusterState, name: &str) -> Result<ExplainNodeResponse, Status> {
    let by_node = state.claims_by_node();
    let claim = state.watched().get(by_node.get(name).map_or(name, String::as_str));
    let Some(claim) = claim else {
        let message = format!(
            "cluster {} has no NodeClaim {name}, and none with a node of that name",
            state.cluster_id()
        );
        return Err(Reason::NotFound.status(message));
    };
    let node = by_node.iter().find(|(_, of)| **of == claim.name).map(|(node, _)| node.clone());
    let node = node.unwrap_or_default();
    let pods = state.view().world().pods_on(&node.as_str().into()).count();
    Ok(ExplainNodeResponse {
        node,
        claim: claim.name.clone(),
        fate: under_way(claim).into(),
        disruption_reason: claim.disruption_reason.clone(),
        holds: Vec::new(),
        blockers: claim.blockers.clone(),
        pods: u32::try_from(pods).unwrap_or(u32::MAX),
    })
}

fn under_way(claim: &NodeClaim) -> NodeFate {
    match (claim.deleting, claim.drained) {
        (true, true) => NodeFate::Ending,
        (true, false) => NodeFate::Draining,
        (false, _) if !claim.disruption_reason.is_empty() => NodeFate::Marked,
        (false, _) => NodeFate::Stays,
    }
}

/// True when only a plan can say more.
#[must_use]
pub fn is_open(told: &ExplainNodeResponse) -> bool {
    told.fate() == NodeFate::Stays
}

/// The same with what a plan says, made for it.
#[must_use]
pub fn judged(input: PlanInput, told: ExplainNodeResponse) -> ExplainNodeResponse {
    let input = PlanInput { consolidates: true, ..input };
    let plan = longshore_core::plan(&input);
    let mut answers = explain_nodes(&input, &plan).into_iter();
    match answers.find(|answer| answer.claim.as_str() == told.claim) {
        Some(answer) => with(told, &answer),
        None => told,
    }
}

fn with(told: ExplainNodeResponse, answer: &NodeAnswer) -> ExplainNodeResponse {
    let (fate, reason) = match answer.fate {
        Fate::Leaving(reason) => (NodeFate::Marked, reason),
        Fate::Goes(reason) => (NodeFate::Goes, Some(reason)),
        Fate::MustGo(reason) => (NodeFate::MustGo, Some(reason)),
        Fate::Stays => (NodeFate::Stays, None),
    };
    let holds = answer.holds.iter().map(hold).collect();
    let disruption_reason = reason.map(|it| it.name().to_owned()).unwrap_or_default();
    ExplainNodeResponse { fate: fate.into(), disruption_reason, holds, ..told }
}

fn hold(hold: &Hold) -> v1::Reason {
    v1::Reason {
        code: hold.rule.code().to_owned(),
        subject: hold.subject.clone(),
        message: hold.rule.to_string(),
        causes: Vec::new(),
    }
}
