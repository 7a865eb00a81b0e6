//! When a node that has joined takes pods.
//!
//! Invariant: whatever a node waits for, it opens at a time after it was first seen, or seen fit,
//! that is a constant.

use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::types::v1::NodeClaim;

use super::{Joined, Step, World};

/// A node is registered once nothing but karpenter.sh/unregistered repels pods, so that taking this
/// taint off is what opens it, with its pods nominated. Kubernetes takes off its own start-up
/// taints at a time of its choosing; a nomination for a node still closed would be lost by then.
/// After this many milliseconds the node is registered all the same: a network plug-in whose
/// DaemonSet does not tolerate the taint would otherwise never come up.
pub(super) const START_PATIENCE_MS: i64 = 30 * 1000;
/// A node that is fit waits until a plan knows that, which fills it with pods of nodes that are
/// still to come; and when it has room even so, until fit nodes that have less are open, so that
/// their pods do not go there. At most this many milliseconds: several times what a plan takes on a
/// machine that is busy with other things.
pub(super) const OPEN_PATIENCE_MS: i64 = 10 * 1000;
/// For each node that opens, kube-scheduler tries all pods again that wait, and those that find no
/// place wait longer each time, ten seconds in the end: were the nodes of a burst to open one by
/// one, pods would wait long after the last. So those to which pods come in any order open in
/// batches: one that is fit waits for others this long, in milliseconds.
pub(super) const GATHER_MS: i64 = 3 * 1000;
/// Least number of nodes that are waited for.
pub(super) const GATHERED_MIN: usize = 8;

impl World<'_> {
    pub(super) fn may_open(&self, claim: &NodeClaim, node: &Joined) -> bool {
        let Some(fit_ms) = node.fit_ms else {
            return self.session_ms - node.seen_ms >= START_PATIENCE_MS;
        };
        let turn = |claim: &NodeClaim| self.turns.get(claim.name.as_str()).copied();
        let goes_first = |other: &NodeClaim, own: i64| {
            other.register_time.is_none()
                && !other.deleting
                && turn(other).is_some_and(|theirs| theirs < own)
        };
        let first = |own| !self.claims.values().any(|other| goes_first(other, own));
        self.session_ms - fit_ms >= OPEN_PATIENCE_MS
            || turn(claim).is_some_and(|own| self.pins_pods || own == 0 || first(own))
    }

    /// True while nodes that are fit wait for others, which have just joined: many, and as many as
    /// are fit.
    pub(super) fn gathers_nodes(&self) -> bool {
        let joining = self.claims.values().filter(|claim| claim.register_time.is_none());
        let joined = joining.filter(|claim| !claim.deleting).filter_map(|claim| self.node(claim));
        let (fit, mut coming): (Vec<_>, Vec<_>) = joined.partition(|node| node.fit_ms.is_some());
        coming.retain(|node| self.session_ms - node.seen_ms < START_PATIENCE_MS);
        self.any_order && coming.len() >= GATHERED_MIN.max(fit.len())
    }

    /// True for the opening of a node that has not been fit for long enough to go without others.
    pub(super) fn is_gathered(&self, step: &Step) -> bool {
        let Step::Direct { claim, action } = step else { return false };
        let node = self.claims.get(claim).and_then(|claim| self.node(claim));
        let fit_ms = node.and_then(|node| node.fit_ms);
        matches!(**action, Action::RegisterNode(_))
            && fit_ms.is_some_and(|fit_ms| self.session_ms - fit_ms < GATHER_MS)
    }
}
