//! Which pods were let in to which node already.
//!
//! The scheduler asks again for a node that has waited for its pods for long: those that tolerate
//! its taint by then need no second write. The pod itself says so, also what a watcher before this
//! one wrote; what was written a moment ago, and has not come back yet, is remembered.
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
    fn written(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when a pod has a pass already.
    pub(super) fn has(&self, index: &Index, pod: &PodRow, pass: &str) -> bool {
        let known = index.pod(&pod.uid).map(|pod| &pod.facts.passes);
        known.is_some_and(|known| known.iter().any(|known| known == pass))
            || self.written().get(&pod.uid).is_some_and(|written| written == pass)
    }

    /// A pod has a pass from now on.
    pub(super) fn note(&self, pod: &PodRow, pass: &str) {
        self.written().insert(pod.uid.clone(), pass.to_owned());
    }

    /// Forgets pods that do not wait any more.
    pub(super) fn forget(&self, index: &Index) {
        self.written().retain(|uid, _| index.is_out(uid));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ObjectReference, Pod};
    use serde_json::json;

    use super::*;

    /// A pod as the watch tells of it, with what it tolerates of closed nodes.
    fn apply(index: &mut Index, uid: &str, node: Option<&str>, passes: &[&str]) {
        let key = "karpenter.sh/unregistered";
        let other = json!({ "key": "example.com/team", "value": "a" });
        let all = json!({ "key": key, "operator": "Exists" });
        let passes = passes.iter().map(|pass| json!({ "key": key, "value": pass }));
        let pod = serde_json::from_value::<Pod>(json!({
            "metadata": { "namespace": "default", "name": uid, "uid": uid },
            "spec": {
                "containers": [],
                "nodeName": node,
                "tolerations": passes.chain([other, all]).collect::<Vec<_>>(),
            },
        }));
        index.apply(ObjectReference::default(), pod.map_err(|error| error.to_string()));
    }

    /// UIDs of the waiting pods that have a pass.
    fn having(passes: &Passes, index: &Index, pass: &str) -> Vec<String> {
        let waiting = index.waiting().map(|pod| &pod.row);
        let having = waiting.filter(|pod| passes.has(index, pod, pass));
        having.map(|pod| pod.uid.to_string()).collect()
    }

    #[test]
    fn a_pod_is_written_to_once_for_each_node() {
        let (mut index, passes) = (Index::default(), Passes::default());
        apply(&mut index, "1", None, &[]);
        apply(&mut index, "2", None, &[]);
        assert_eq!(having(&passes, &index, "a"), [""; 0]);
        let first = index.pod("1").map(|pod| pod.row.clone());
        first.iter().for_each(|pod| passes.note(pod, "a"));
        assert_eq!(having(&passes, &index, "a"), ["1"], "the other's write was cut off");
        assert_eq!(having(&passes, &index, "b"), [""; 0], "another node's taint");
        apply(&mut index, "1", Some("a"), &["a"]);
        passes.forget(&index);
        assert!(passes.written().is_empty(), "it is bound");
    }

    #[test]
    fn what_another_watcher_wrote_is_not_written_again() {
        let (mut index, passes) = (Index::default(), Passes::default());
        apply(&mut index, "1", None, &["a", "b"]);
        apply(&mut index, "2", None, &["b"]);
        assert_eq!(having(&passes, &index, "a"), ["1"]);
        assert_eq!(having(&passes, &index, "b"), ["1", "2"], "planned anew since");
        assert_eq!(having(&passes, &index, "a-team"), [""; 0]);
        assert!(index.pod("1").is_some_and(|pod| pod.facts.passes.len() == 2));
        apply(&mut index, "1", Some("a"), &["a", "b"]);
        assert!(index.pod("1").is_some_and(|pod| pod.facts.passes.is_empty()), "no use any more");
    }
}
