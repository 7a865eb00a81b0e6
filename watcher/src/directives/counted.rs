//! What is counted of claims and pods on their way out.
//!
//! Invariant: looks things up and counts; changes nothing.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;

use super::Directives;
use crate::api::NodeClaim;
use crate::api::keys::conditions;
use crate::project::claim::pool_of;

impl Directives {
    /// The node of a claim has been marked as drained.
    pub(crate) fn count_drained(&self, name: &str) {
        self.store.read(|index| {
            let Some(claim) = index.claim(name) else { return };
            self.counters.nodes.drained(claim, |name| index.claim(name).is_some());
        });
    }

    /// The API server has answered to an eviction from the node of a claim.
    pub(crate) fn count_eviction<T>(&self, claim: &str, answer: &kube::Result<T>) {
        let reason = self.store.read(|index| index.claim(claim).map(|claim| reason(claim)));
        self.counters.answers.answered(answer, &reason.unwrap_or_default());
    }

    /// A claim is let go, with its node where it had one.
    pub(super) fn count_released(&self, claim: &NodeClaim, node: Option<&Node>) {
        let (now, counters) = (self.store.now(), &self.counters.nodes);
        if let Some(node) = node {
            counters.terminated(claim, node, now.wall_ms);
        }
        counters.claim_terminated(claim, now.wall_ms);
        self.store.read(|index| {
            let exists = |pool: &str| {
                index.pools().pool(pool).is_some()
                    || index.pools().provisioner(pool).is_some()
                    || index.claims().any(|claim| pool_of(claim.labels()) == pool)
            };
            counters.forget_gone(exists, now.steady_ms);
        });
    }
}

/// Why a claim goes; empty when nobody has said.
fn reason(claim: &NodeClaim) -> String {
    let conditions = claim.status.iter().flat_map(|status| &status.conditions);
    let mut said =
        conditions.filter(|c| c.type_ == conditions::DISRUPTION_REASON && c.status == "True");
    said.next().map(|said| said.reason.clone()).unwrap_or_default()
}
