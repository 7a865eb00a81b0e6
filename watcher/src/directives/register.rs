//! Taking a new node into service.
//!
//! Invariant: the order. Labels and taints are synced, and the planned pods let in or nominated
//! where their place is at stake, while the node still repels all others; only then does
//! karpenter.sh/unregistered go. So kube-scheduler binds what was planned where it was planned. The
//! taint of a node that is not ready goes before, if it is: refused when it is not ready any more.

use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::{Node, Taint as CoreTaint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Resource as _, ResourceExt as _};
use longshore_proto::cluster::v1::RegisterNode;
use tracing::Instrument as _;

use super::admission::gone;
use super::{DirectiveError, Directives, Outcome, pin};
use crate::api::keys::conditions;
use crate::api::{NodeClaim, Taint};
use crate::lifecycle::initialize::{self, has_started};
use crate::names;
use crate::patch::{
    Part, Precondition, Wanted, add_finalizer, edit, edit_node, set_condition, time,
};
use crate::project::claim::condition;
use crate::project::node::is_outlived;

impl Directives {
    /// The nodes of the cluster.
    #[must_use]
    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// A node as it was last seen.
    #[must_use]
    pub fn known_node(&self, name: &str) -> Option<Node> {
        self.store.read(|index| index.node(name))
    }

    pub(super) async fn register_node(&self, register: &RegisterNode) -> Outcome {
        let name = &register.node;
        let known = self.known_claim(&register.claim);
        let claim = match known {
            Some(claim) => claim,
            None => self.claims().get_opt(&register.claim).await?.ok_or_else(|| {
                let text = format!("NodeClaim {} does not exist any more", register.claim);
                DirectiveError::refused("NOT_FOUND", text)
            })?,
        };
        let RegisterNode { pods, any_order, .. } = register;
        self.store.update(|index| index.plan_for(&register.claim, pods, *any_order));
        // What opens while others wait for their pods would draw these in.
        let node = if *any_order && !self.admission.is_pinning() {
            self.prepare(name, &claim, |node| self.admit(&claim, node)).await?
        } else {
            let node = self.prepare(name, &claim, |node| pin::close(node, &register.claim)).await?;
            // A node that repels pods even when open takes no nominations: kube-scheduler would
            // clear each at once, and retry all pods because of it. Where any place is as good,
            // none is told.
            let told = has_started(&claim, &node) && !any_order;
            self.open_node(&claim, node, if told { pods } else { &[] }, told).await?
        };
        self.record_registration(&claim, &node).await
    }

    /// Gives the node what its claim says, and closes or opens it in the same write.
    async fn prepare(
        &self,
        name: &str,
        claim: &NodeClaim,
        door: impl Fn(&mut Node) + Send + Sync,
    ) -> Result<Node, DirectiveError> {
        let (api, known) = (self.nodes(), self.known_node(name));
        let synced = edit_node(&api, name, known, Precondition::Service, |node| {
            sync(node, claim);
            drop_outlived(node);
            door(node);
        });
        synced.await?.ok_or_else(|| gone(name))
    }

    /// Notes on the claim that its node is open, and whether it takes pods at once: one write for
    /// what is known at one moment.
    async fn record_registration(&self, claim: &NodeClaim, node: &Node) -> Outcome {
        let (name, at) = (node.name_any(), self.now());
        let touched_ms = self.store.read(|index| index.touched_ms(&name));
        let first = AtomicBool::new(false);
        let noted = |claim: &mut NodeClaim| {
            let generation = claim.metadata.generation;
            let status = claim.status.get_or_insert_default();
            let known = condition(&status.conditions, conditions::REGISTERED).is_some();
            first.store(!known, Ordering::Relaxed);
            status.node_name = Some(name.clone());
            let registered = Wanted::met(conditions::REGISTERED);
            set_condition(&mut status.conditions, &registered, generation, &at);
            if let Some(at_ms) = touched_ms {
                status.last_pod_event_time = Some(time(at_ms));
            }
            if initialize::is_marked(node) {
                initialize::complete(claim, node, &at);
            }
        };
        let span = match initialize::is_marked(node) {
            true => initialize::span(claim, &name),
            false => tracing::Span::none(),
        };
        let (api, claim_name) = (self.claims(), claim.name_any());
        let known = self.known_claim(&claim_name).unwrap_or_else(|| claim.clone());
        let written = edit(&api, &claim_name, Part::Status, Some(known), noted);
        written.instrument(span).await?;
        if first.into_inner() {
            self.counters.nodes.joined(claim);
        }
        self.say_of_claim(claim, conditions::REGISTERED, format!("node {name} has joined"));
        if initialize::is_marked(node) {
            self.say_ready(claim, &name);
        }
        if let Some(at_ms) = touched_ms {
            self.store.update(|index| index.untouch(&name, at_ms));
        }
        Ok(())
    }
}

/// What the node takes over from its claim. A registered node is left as it is.
fn sync(node: &mut Node, claim: &NodeClaim) {
    if node.labels().contains_key(names::REGISTERED) {
        return;
    }
    add_finalizer(node, names::TERMINATION);
    own(node, claim);
    node.labels_mut().extend(claim.labels().clone());
    let class = &claim.spec.node_class_ref;
    let class_label = format!("{}/{}", class.group, class.kind.to_lowercase());
    node.labels_mut().insert(class_label, class.name.clone());
    let ours = |key: &str| key.starts_with("longshore.dev/");
    let annotations = claim.annotations().iter().filter(|(key, _)| !ours(key));
    let annotations: Vec<_> = annotations.map(|(k, v)| (k.clone(), v.clone())).collect();
    node.annotations_mut().extend(annotations);
    if node.labels().get(names::DO_NOT_SYNC_TAINTS).is_some_and(|v| v == "true") {
        return;
    }
    let present = node.spec.get_or_insert_default().taints.get_or_insert_default();
    for taint in claim.spec.taints.iter().chain(&claim.spec.startup_taints) {
        let wanted = core_taint(taint);
        if !present.iter().any(|t| t.key == wanted.key && t.effect == wanted.effect) {
            present.push(wanted);
        }
    }
}

/// Takes off what says that the node is not ready, when it is.
fn drop_outlived(node: &mut Node) {
    let Some(mut taints) = node.spec.as_ref().and_then(|spec| spec.taints.clone()) else { return };
    taints.retain(|taint| !is_outlived(node, taint));
    node.spec.get_or_insert_default().taints = Some(taints);
}

fn own(node: &mut Node, claim: &NodeClaim) {
    let Some(owner) = claim.controller_owner_ref(&()) else { return };
    let owner = OwnerReference { controller: None, block_owner_deletion: Some(true), ..owner };
    let owners = node.metadata.owner_references.get_or_insert_default();
    if owners.iter().all(|o| o.uid != owner.uid) {
        owners.push(owner);
    }
}

fn core_taint(taint: &Taint) -> CoreTaint {
    CoreTaint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: taint.effect.as_str().to_owned(),
        time_added: None,
    }
}
