//! Which pods were let in to which node already.
//!
//! The scheduler asks again for a node that has waited for its pods for long: those that tolerate
//! its taint by then need no second write.
//!
//! Invariant: a pod is noted once it was written to, and for as long as it waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::index::Index;
use crate::index::pods::PodRow;

/// What each pod was let in by last, by the pod's UID. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Passes(Arc<Mutex<BTreeMap<Arc<str>, String>>>);

impl Passes {
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells pods that a node has let in from those that it has to let in.
    pub(super) fn split(&self, node: &str, pods: Vec<PodRow>) -> (Vec<PodRow>, Vec<PodRow>) {
        pods.into_iter().partition(|pod| self.has(pod, node))
    }

    /// True when a pod has a pass already.
    pub(super) fn has(&self, pod: &PodRow, pass: &str) -> bool {
        self.nodes().get(&pod.uid).is_some_and(|known| known == pass)
    }

    /// A pod tolerates a node's taint from now on.
    pub(super) fn note(&self, pod: &PodRow, node: &str) {
        self.nodes().insert(pod.uid.clone(), node.to_owned());
    }

    /// Forgets pods that do not wait any more.
    pub(super) fn forget(&self, index: &Index) {
        self.nodes().retain(|uid, _| index.is_out(uid));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ObjectReference, Pod};
    use serde_json::json;

    use super::*;

    fn apply(index: &mut Index, uid: &str, node: Option<&str>) {
        let pod = serde_json::from_value::<Pod>(json!({
            "metadata": { "namespace": "default", "name": uid, "uid": uid },
            "spec": { "containers": [], "nodeName": node },
        }));
        index.apply(ObjectReference::default(), pod.map_err(|error| error.to_string()));
    }

    /// How many of the waiting pods a node has let in, and how many not.
    fn split(passes: &Passes, index: &Index, node: &str) -> (usize, usize) {
        let waiting = index.waiting().map(|pod| pod.row.clone()).collect();
        let (before, now) = passes.split(node, waiting);
        (before.len(), now.len())
    }

    #[test]
    fn a_pod_is_written_to_once_for_each_node() {
        let (mut index, passes) = (Index::default(), Passes::default());
        apply(&mut index, "1", None);
        apply(&mut index, "2", None);
        assert_eq!(split(&passes, &index, "a"), (0, 2));
        let first = index.pod("1").map(|pod| pod.row.clone());
        first.iter().for_each(|pod| passes.note(pod, "a"));
        assert_eq!(split(&passes, &index, "a"), (1, 1), "the other's write was cut off");
        assert_eq!(split(&passes, &index, "b"), (0, 2), "another node's taint");
        apply(&mut index, "1", Some("a"));
        passes.forget(&index);
        assert!(passes.nodes().is_empty(), "it is bound");
    }
}
