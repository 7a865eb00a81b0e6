//! One pod: a small row that refers to a shape.
//!
//! Invariant: finished pods are not in the world; absence of a node means it waits for one.

pub use crate::vocabulary::ids::PodKey;
use crate::vocabulary::ids::{NodeName, PodUid, ShapeId};

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
    /// Whether eviction is refused by annotation, and until when.
    pub do_not_disrupt: DoNotDisrupt,
    /// `controller.kubernetes.io/pod-deletion-cost`; 0 when absent.
    pub deletion_cost: i32,
    /// True when it fails: it runs and is not ready after a restart, or it cannot be started.
    pub failing: bool,
    /// True when its workload replaces it before it goes.
    pub surges: bool,
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
