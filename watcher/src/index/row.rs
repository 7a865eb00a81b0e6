//! A pod's row: all that the scheduler is told of it, and most of what the watcher itself asks for.
//!
//! Invariant: it is kept once, for the index and for the view; and so are texts that many pods
//! have, where whoever makes the row knows them already. Times are kept to the millisecond.

use std::ops::Deref;
use std::sync::Arc;

use longshore_proto::time::{time_ms, timestamp};
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::PodPhase;

/// A pod's row. Clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRow(Arc<PodFields>);

/// What is in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFields {
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
    /// When it was created, in milliseconds since 1970.
    pub create_ms: Option<i64>,
    /// When it will have ended, in milliseconds since 1970, once its deletion has begun.
    pub end_ms: Option<i64>,
    /// End of `do_not_disrupt` in milliseconds since 1970; none means for ever.
    pub do_not_disrupt_until_ms: Option<i64>,
    /// Its pod-deletion-cost.
    pub deletion_cost: i32,
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
    /// True when it does not come up.
    pub failing: bool,
    /// True when its workload replaces it before it goes.
    pub surges: bool,
}

impl Deref for PodRow {
    type Target = PodFields;

    fn deref(&self) -> &PodFields {
        &self.0
    }
}

impl From<PodFields> for PodRow {
    fn from(fields: PodFields) -> Self {
        Self(Arc::new(fields))
    }
}

impl From<&wire::Pod> for PodRow {
    fn from(row: &wire::Pod) -> Self {
        PodFields::from(row).into()
    }
}

impl From<&wire::Pod> for PodFields {
    fn from(row: &wire::Pod) -> Self {
        Self {
            uid: text(&row.uid),
            namespace: text(&row.namespace),
            name: text(&row.name),
            shape_id: text(&row.shape_id),
            node_name: text(&row.node_name),
            nominated_node: text(&row.nominated_node),
            create_ms: row.create_time.as_ref().map(time_ms),
            end_ms: row.end_time.as_ref().map(time_ms),
            do_not_disrupt_until_ms: row.do_not_disrupt_until.as_ref().map(time_ms),
            deletion_cost: row.deletion_cost,
            phase: row.phase(),
            unschedulable: row.unschedulable,
            nominated_by_us: row.nominated_by_us,
            deleting: row.deleting,
            do_not_disrupt: row.do_not_disrupt,
            failing: row.failing,
            surges: row.surges,
        }
    }
}

impl From<&PodFields> for wire::Pod {
    fn from(row: &PodFields) -> Self {
        Self {
            uid: row.uid.to_string(),
            namespace: row.namespace.to_string(),
            name: row.name.to_string(),
            shape_id: row.shape_id.to_string(),
            node_name: row.node_name.to_string(),
            nominated_node: row.nominated_node.to_string(),
            create_time: row.create_ms.map(timestamp),
            end_time: row.end_ms.map(timestamp),
            do_not_disrupt_until: row.do_not_disrupt_until_ms.map(timestamp),
            deletion_cost: row.deletion_cost,
            phase: row.phase.into(),
            unschedulable: row.unschedulable,
            nominated_by_us: row.nominated_by_us,
            deleting: row.deleting,
            do_not_disrupt: row.do_not_disrupt,
            failing: row.failing,
            surges: row.surges,
        }
    }
}

/// A text to share; most that may be empty are, and take no room then.
pub(super) fn text(text: &str) -> Arc<str> {
    if text.is_empty() { Arc::default() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_is_told_all_of_it() {
        let text = |text: &str| text.to_owned();
        let pod = wire::Pod {
            uid: text("uid"),
            namespace: text("shop"),
            name: text("web-1"),
            shape_id: text("shape"),
            node_name: text("node"),
            phase: PodPhase::Running.into(),
            create_time: Some(timestamp(1_000)),
            unschedulable: true,
            nominated_node: text("other"),
            nominated_by_us: true,
            deleting: true,
            do_not_disrupt: true,
            do_not_disrupt_until: Some(timestamp(2_001)),
            deletion_cost: -3,
            failing: true,
            surges: true,
            end_time: Some(timestamp(3_000)),
        };
        assert_eq!(wire::Pod::from(&*PodRow::from(&pod)), pod);
        let nothing = wire::Pod::default();
        assert_eq!(wire::Pod::from(&*PodRow::from(&nothing)), nothing);
    }
}
