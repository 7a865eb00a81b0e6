//! One pod: a small row that refers to a shape.
//!
//! Invariant: finished pods are not in the world; absence of a node means it waits for one.

pub use crate::vocabulary::ids::PodKey;
use crate::vocabulary::ids::{NodeName, PodUid, ShapeId};

/// A pod that ends within this long leaves its room before a node that is launched now is there, in
/// milliseconds: the grace that Kubernetes gives pods by default, and a little more.
const ENDS_SOON_MS: i64 = 40_000;
/// A pod whose end is overdue by this much, in milliseconds, is not known to end at all: its
/// kubelet has killed it by then, or does nothing.
const OVERDUE_MS: i64 = 5_000;

/// A pod that has not finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Namespace and name.
    pub key: PodKey,
    /// Kubernetes UID.
    pub uid: PodUid,
    /// Shape; it is in the view before the first pod that uses it.
    pub shape: ShapeId,
    /// Node it is bound to.
    pub node: Option<NodeName>,
    /// Phase.
    pub phase: PodPhase,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// True when kube-scheduler has marked it unschedulable.
    pub unschedulable: bool,
    /// Node it is nominated to, whoever nominated it.
    pub nominated_node: Option<NodeName>,
    /// True when the nomination is preemption's, not ours: kube-scheduler is at work on it.
    pub preempting: bool,
    /// True once deletion has begun.
    pub deleting: bool,
    /// When it will have ended at the latest, in milliseconds since 1970: its deletion has begun,
    /// or its owner is known to be about to begin it. None when nothing is known of its end.
    pub ends_ms: Option<i64>,
    /// Whether eviction is refused by annotation, and until when.
    pub do_not_disrupt: DoNotDisrupt,
    /// `controller.kubernetes.io/pod-deletion-cost`; 0 when absent.
    pub deletion_cost: i32,
    /// True when it fails: it runs and is not ready after a restart, or it cannot be started.
    pub failing: bool,
    /// True when its workload replaces it before it goes.
    pub surges: bool,
}

impl Pod {
    /// Until when, in milliseconds since 1970, others may count on the room of this pod, which is
    /// about to end; none when they may not.
    #[must_use]
    pub fn frees_until_ms(&self, now_ms: i64) -> Option<i64> {
        let until_ms = self.ends_ms?.saturating_add(OVERDUE_MS);
        let soon = self.ends_ms? <= now_ms.saturating_add(ENDS_SOON_MS);
        (soon && now_ms < until_ms).then_some(until_ms)
    }
}

/// Phase of a pod's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPhase {
    /// Not running yet, bound or not.
    #[default]
    Pending,
    /// Bound and started.
    Running,
}

/// `karpenter.sh/do-not-disrupt` and its legacy spelling `do-not-evict`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DoNotDisrupt {
    /// Not asked for.
    #[default]
    No,
    /// In force for as long as the pod lives.
    Always,
    /// In force until then, in milliseconds since 1970.
    UntilMs(i64),
}

impl DoNotDisrupt {
    /// True while it is in force.
    #[must_use]
    pub fn in_force(self, now_ms: i64) -> bool {
        match self {
            Self::No => false,
            Self::Always => true,
            Self::UntilMs(until_ms) => now_ms < until_ms,
        }
    }
}
