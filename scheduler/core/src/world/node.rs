//! A Kubernetes node, whoever made it.
//!
//! Invariant: a node on Fargate is neither capacity nor a candidate for anything.

use crate::vocabulary::ids::NodeName;
use crate::vocabulary::labels::{self, Labels};
use crate::vocabulary::resources::Resources;
use crate::vocabulary::taint::{Taint, UNREGISTERED};

/// How long a node may take from joining to being ready before its pods are planned elsewhere, in
/// milliseconds. Most are within two minutes; images that start GPUs or fetch much take longer.
pub const READY_WITHIN_MS: i64 = 10 * 60_000;

/// How long after a write to one object a write before it to another may be seen, in milliseconds.
/// Usually it is a moment; watches of an API server that is busy are seconds behind each other.
pub const SEEN_WITHIN_MS: i64 = 30_000;

/// A node as the API server shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: NodeName,
    /// `spec.providerID`; empty when unknown.
    pub provider_id: String,
    /// Labels.
    pub labels: Labels,
    /// Taints.
    pub taints: Vec<Taint>,
    /// What pods and DaemonSets may use.
    pub allocatable: Resources,
    /// What the machine has; zero when unknown, and then allocatable stands for it.
    pub capacity: Resources,
    /// True when the Ready condition is true.
    pub ready: bool,
    /// `spec.unschedulable`.
    pub cordoned: bool,
    /// True once deletion has begun.
    pub deleting: bool,
    /// True when `karpenter.sh/do-not-disrupt` is set on it.
    pub do_not_disrupt: bool,
    /// When it was created, in milliseconds since 1970; when it was first seen, if that is later by
    /// the clock of whoever plans.
    pub created_ms: i64,
}

impl Node {
    /// EC2 id of its instance; empty when it has no provider id.
    #[must_use]
    pub fn instance_id(&self) -> &str {
        self.provider_id.rsplit('/').next().unwrap_or_default()
    }

    /// When a node that is not ready is late, in milliseconds since 1970; none when it is ready or
    /// nobody knows since when it is there.
    #[must_use]
    pub fn late_from_ms(&self) -> Option<i64> {
        let known = !self.ready && self.created_ms > 0;
        known.then(|| self.created_ms.saturating_add(READY_WITHIN_MS))
    }

    /// Until when a node counts as opened although it shows the taint that is taken off when it is,
    /// in milliseconds since 1970: the claim that says so is watched apart from it, and may be seen
    /// first. When that was is told by another host's clock, so it counts from when the node was
    /// created, too. None when it shows none.
    #[must_use]
    pub fn opened_until_ms(&self, initialized_ms: i64) -> Option<i64> {
        self.is_closed().then(|| initialized_ms.max(self.created_ms).saturating_add(SEEN_WITHIN_MS))
    }

    /// True while it repels all pods but those that are let in one by one.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.taints.iter().any(|taint| taint.key == UNREGISTERED)
    }

    /// True for compute that holds one pod and nothing else.
    #[must_use]
    pub fn is_fargate(&self) -> bool {
        self.labels.get(labels::COMPUTE_TYPE).is_some_and(|kind| kind == "fargate")
            || self.provider_id.contains("/fargate-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::taint::TaintEffect;

    #[test]
    fn a_node_that_was_just_seen_counts_as_opened_whatever_another_clock_says() {
        let (key, value) = (UNREGISTERED.to_owned(), String::new());
        let taint = Taint { key, value, effect: TaintEffect::NoExecute };
        let closed = Node { taints: vec![taint], created_ms: 600_000, ..Node::default() };
        assert_eq!(closed.opened_until_ms(0), Some(630_000), "its clock is ten minutes behind");
        assert_eq!(closed.opened_until_ms(601_000), Some(631_000));
        assert_eq!(Node::default().opened_until_ms(0), None, "it shows no taint");
    }
}
