//! What a decision to end a node rests on, looked at again where it takes effect.
//!
//! Invariant: a node that is ended by choice holds no pod that a drain would move and the decision
//! did not know, and nothing that must not be disrupted. When in doubt it stays: the next plan
//! decides anew.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, ResourceExt as _};
use longshore_proto::cluster::v1::Assumption;
use longshore_proto::reason::Reason;
use longshore_runtime::planted;

use super::disrupt::set_taint;
use super::{DirectiveError, Directives, Outcome};
use crate::index::{Index, Now, PodEntry};
use crate::lifecycle::drain::{is_protected, moves};
use crate::names;
use crate::patch::{Precondition, edit_node};
use crate::project::node::protection;

impl Directives {
    /// Refuses when what is known of the node of a claim is more than `assumes` says.
    pub(super) fn assume(&self, claim: &str, assumes: &Assumption) -> Outcome {
        if planted::is("S17") {
            return Ok(());
        }
        let now = self.store.now();
        self.store.read(|index| check(index, claim, assumes, now))
    }

    /// The same for good: the node is closed to further pods, and then asked for those that it has.
    /// One that is not marked for disruption is opened again when it is not to be ended.
    pub(super) async fn assume_closed(&self, claim: &str, assumes: &Assumption) -> Outcome {
        if planted::is("S17") {
            return Ok(());
        }
        self.assume(claim, assumes)?;
        let Some((node, marked)) = self.store.read(|index| {
            let claim = index.claim(claim)?;
            let marked = claim.annotations().contains_key(names::DISRUPTION_REASON);
            Some((index.node_of(claim)?, marked))
        }) else {
            return Ok(());
        };
        let (name, nodes) = (node.name_any(), self.nodes());
        let was_closed = is_closed(&node);
        let close = |node: &mut Node| set_taint(node, true);
        let closed = edit_node(&nodes, &name, Some(node), Precondition::Itself, close).await?;
        if closed.is_none() {
            return Ok(());
        }
        let outcome = self.look_again(claim, &name, assumes).await;
        if outcome.is_err() && !was_closed && !marked {
            let open = |node: &mut Node| set_taint(node, false);
            edit_node(&nodes, &name, closed, Precondition::Itself, open).await?;
        }
        outcome
    }

    /// Asks the API server itself: the watch may be late.
    async fn look_again(&self, claim: &str, node: &str, assumes: &Assumption) -> Outcome {
        let api: Api<DeserializeGuard<Pod>> = Api::all(self.client.clone());
        let there = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = api.list(&there).await?.items;
        let now = self.store.now();
        self.store.read(|index| {
            check(index, claim, assumes, now)?;
            for DeserializeGuard(pod) in pods {
                let pod = pod.map_err(|it| unreadable(&it.metadata.name, &it.error))?;
                if crate::project::pod::is_finished(&pod) {
                    continue;
                }
                let entry = index.entry_of(&pod).map_err(|it| unreadable(&pod.metadata.name, &it));
                check_pod(&entry?, node, assumes, now)?;
            }
            Ok(())
        })
    }
}

fn is_closed(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == names::DISRUPTED_TAINT)
}

fn check(index: &Index, claim: &str, assumes: &Assumption, now: Now) -> Outcome {
    let Some(claim) = index.claim(claim) else { return Ok(()) };
    let key = names::DO_NOT_DISRUPT;
    if claim.annotations().get(key).is_some_and(|value| value == "true") {
        return Err(protected("NodeClaim", &claim.name_any(), key));
    }
    let Some(node) = index.node_of(claim) else { return Ok(()) };
    let name = node.name_any();
    if let Some(key) = protection(&node) {
        return Err(protected("Node", &name, key));
    }
    index.pods_on(&name).try_for_each(|pod| check_pod(pod, &name, assumes, now))
}

fn check_pod(pod: &PodEntry, node: &str, assumes: &Assumption, now: Now) -> Outcome {
    if pod.row.deleting {
        return Ok(());
    }
    let name = format!("{}/{}", pod.row.namespace, pod.row.name);
    if is_protected(pod, now.wall_ms) {
        let keys = format!("{} or {}", names::DO_NOT_DISRUPT, names::DO_NOT_EVICT);
        return Err(protected("Pod", &name, &keys));
    }
    if moves(pod, now) && !assumes.pods.iter().any(|uid| **uid == *pod.row.uid) {
        return Err(failed(format!(
            "Pod {name} has come to node {node} since this was decided; the next plan decides anew"
        )));
    }
    Ok(())
}

fn protected(kind: &str, name: &str, key: &str) -> DirectiveError {
    failed(format!("{kind} {name} has the annotation {key}; remove it to let the node be ended"))
}

fn unreadable(pod: &Option<String>, error: &impl Debug) -> DirectiveError {
    let pod = pod.as_deref().unwrap_or_default();
    failed(format!("Pod {pod} on the node cannot be read: {error:?}; mend it or delete it"))
}

fn failed(message: String) -> DirectiveError {
    DirectiveError::refused(Reason::AssumptionFailed.as_str(), message)
}

#[cfg(test)]
mod tests;
