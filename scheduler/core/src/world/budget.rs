//! DaemonSets and PodDisruptionBudgets: what weighs on nodes and what holds evictions back.
//!
//! Invariant: a pod covered by two disruption budgets cannot be evicted, as in the eviction API.

use crate::vocabulary::ids::{ObjectKey, ShapeId};
use crate::vocabulary::requirements::selector::LabelSelector;
use crate::world::pod::{Pod, PodPhase};
use crate::world::shape::PodShape;

/// A DaemonSet: its pod's requests weigh on every node it would run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonSet {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Shape of its pods; `is_daemon` is true.
    pub shape: ShapeId,
}

/// A PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Pods it covers; none selects none.
    pub selector: Option<LabelSelector>,
    /// Evictions allowed now.
    pub disruptions_allowed: i64,
    /// True when it can never allow one (maxUnavailable 0 or minAvailable 100 %).
    pub fully_blocking: bool,
    /// True when it lets pods go that run and are not ready.
    pub lets_unready_go: bool,
}

impl DisruptionBudget {
    /// True when it covers pods of the shape.
    #[must_use]
    pub fn covers(&self, shape: &PodShape) -> bool {
        self.key.namespace == shape.namespace
            && self.selector.as_ref().is_some_and(|selector| selector.selects(&shape.labels))
    }

    /// True when it must allow the eviction of a pod that it covers: of one that is replaced first,
    /// or cannot even start, nobody asks, of one that runs and is not ready it may have been told
    /// not to mind.
    #[must_use]
    pub fn minds(&self, pod: &Pod) -> bool {
        let unready = pod.failing && (pod.phase == PodPhase::Pending || self.lets_unready_go);
        !pod.surges && !unready
    }
}
