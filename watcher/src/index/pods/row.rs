//! What the index keeps of a pod's row: as much as the watcher itself asks for.
//!
//! Invariant: the row that the scheduler is sent is in the view, and nowhere else. Texts that many
//! pods have are kept once where whoever makes the row knows them already.

use std::sync::Arc;

use longshore_proto::time::time_ms;
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::PodPhase;

/// A pod's row. Clones share its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRow {
    /// Kubernetes UID.
    pub uid: Arc<str>,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Shape of the pod.
    pub shape_id: Arc<str>,
    /// Node that it is bound to; empty when it is not.
    pub node_name: Arc<str>,
    /// status.nominatedNodeName; empty when none.
    pub nominated_node: Arc<str>,
    /// End of `do_not_disrupt` in milliseconds since 1970; none means for ever.
    pub do_not_disrupt_until_ms: Option<i64>,
    /// Phase.
    pub phase: PodPhase,
    /// True when kube-scheduler has found no node for it.
    pub unschedulable: bool,
    /// True when the nomination was written by Longshore.
    pub nominated_by_us: bool,
    /// True once deletion has begun.
    pub deleting: bool,
    /// True when an annotation refuses its eviction.
    pub do_not_disrupt: bool,
    /// True when its workload replaces it before it goes.
    pub surges: bool,
}

impl From<&wire::Pod> for PodRow {
    fn from(row: &wire::Pod) -> Self {
        Self {
            uid: text(&row.uid),
            namespace: text(&row.namespace),
            name: text(&row.name),
            shape_id: text(&row.shape_id),
            node_name: text(&row.node_name),
            nominated_node: text(&row.nominated_node),
            do_not_disrupt_until_ms: row.do_not_disrupt_until.as_ref().map(time_ms),
            phase: row.phase(),
            unschedulable: row.unschedulable,
            nominated_by_us: row.nominated_by_us,
            deleting: row.deleting,
            do_not_disrupt: row.do_not_disrupt,
            surges: row.surges,
        }
    }
}

/// A text to share; most that may be empty are, and take no room then.
pub(super) fn text(text: &str) -> Arc<str> {
    if text.is_empty() { Arc::default() } else { text.into() }
}
