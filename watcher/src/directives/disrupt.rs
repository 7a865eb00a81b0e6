//! Marking claims for disruption.
//!
//! Invariant: what is marked is undone by cancel, to the letter.

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt as _;
use longshore_proto::cluster::v1::DisruptClaim;

use super::{Directives, Outcome};
use crate::api::NodeClaim;
use crate::api::keys::conditions;
use crate::names;
use crate::patch::{Part, Precondition, Wanted, edit, edit_node, set_condition};

/// Why a node goes that its pool's replicas leave no place for.
const EXCESS: &str = "Excess";

impl Directives {
    pub(super) async fn disrupt_claim(&self, disrupt: &DisruptClaim) -> Outcome {
        let name = &disrupt.claim;
        let api = self.claims();
        let known = self.known_claim(name);
        let node = self.store.read(|index| index.node_of(index.claim(name)?));
        if let Some(assumes) = disrupt.assumes.as_ref().filter(|_| !disrupt.cancel) {
            self.assume(name, assumes)?;
        }
        if let Some(node) = node {
            let node_name = node.name_any();
            let taint = |node: &mut Node| set_taint(node, !disrupt.cancel);
            edit_node(&self.nodes(), &node_name, Some(node), Precondition::Itself, taint).await?;
        }
        let noted = edit(&api, name, Part::Main, known, |claim| note(claim, disrupt)).await?;
        let Some(claim) = noted else { return Ok(()) };
        let condition = Wanted {
            kind: conditions::DISRUPTION_REASON,
            status: Some(!disrupt.cancel),
            reason: if disrupt.cancel { "Cancelled" } else { &disrupt.reason },
            message: "",
        };
        let at = self.now();
        edit(&api, name, Part::Status, Some(claim.clone()), |claim| {
            let generation = claim.metadata.generation;
            let status = claim.status.get_or_insert_default();
            set_condition(&mut status.conditions, &condition, generation, &at);
        })
        .await?;
        let (reason, note) = announcement(disrupt);
        self.say_of_claim(&claim, reason, note);
        Ok(())
    }
}

fn announcement(disrupt: &DisruptClaim) -> (&'static str, String) {
    let reason = &disrupt.reason;
    match (disrupt.cancel, disrupt.replaced_by.as_slice()) {
        (true, _) => ("DisruptionCancelled", "the node stays in service".to_owned()),
        (false, []) if reason == EXCESS => {
            ("DisruptionStarted", format!("{reason}: the NodePool asks for fewer replicas"))
        }
        (false, []) => ("DisruptionStarted", format!("{reason}: its pods fit on other nodes")),
        (false, by) => {
            ("DisruptionStarted", format!("{reason}: to be replaced by {}", by.join(", ")))
        }
    }
}

fn note(claim: &mut NodeClaim, disrupt: &DisruptClaim) {
    let annotations = claim.annotations_mut();
    if disrupt.cancel {
        annotations.remove(names::REPLACED_BY);
        annotations.remove(names::DISRUPTION_REASON);
        return;
    }
    annotations.insert(names::DISRUPTION_REASON.to_owned(), disrupt.reason.clone());
    annotations.insert(names::REPLACED_BY.to_owned(), disrupt.replaced_by.join(","));
}

/// Adds or removes the taint of a disrupted node.
pub fn set_taint(node: &mut Node, disrupted: bool) {
    let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
    let present = taints.iter().any(|taint| taint.key == names::DISRUPTED_TAINT);
    if disrupted && !present {
        taints.push(Taint {
            key: names::DISRUPTED_TAINT.to_owned(),
            effect: "NoSchedule".to_owned(),
            value: None,
            time_added: None,
        });
    }
    if !disrupted {
        taints.retain(|taint| taint.key != names::DISRUPTED_TAINT);
    }
}
