//! In which order pods under a hard spread over zones, or anything wider than a host, are let in.
//!
//! kube-scheduler refuses a pod that would put its zone ahead of another by more than maxSkew, and
//! then leaves it alone for up to ten seconds. It tries pods in the order in which they were let
//! in. So no zone is let ahead: a pod counts from the moment on that it is let in, bound or not.
//!
//! Invariant: order only. Who is let in to which node is decided elsewhere, and nobody waits for
//! longer than [`WITHIN`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use tokio::time::Instant;

use crate::index::Index;
use crate::index::pods::PodRow;
use crate::names::HOSTNAME;

/// How long a pod may wait for its turn: a zone may have nodes that the pods cannot go to, and
/// then no turn ever comes to it.
pub(super) const WITHIN: Duration = Duration::from_secs(5);
/// How old the count of pods may be, and how often those that wait ask again.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// As many times as long as a count took, the next waits: where thousands of pods run, counting
/// them every moment would take a good part of a processor.
const RESTS: u32 = 20;

/// A shape, and a topology key that its pods spread over.
type Group = (Arc<str>, String);

/// Whose turn it is. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// When it is to be counted anew.
    look_at: Option<Instant>,
    /// Pods of each domain that are bound, or were let in.
    counts: BTreeMap<Group, BTreeMap<String, i64>>,
    /// Pods that were let in and are not bound yet, with their domains.
    let_in: BTreeMap<Arc<str>, Vec<(Group, String)>>,
}

impl Turns {
    /// Takes those out of `waiting` that may be let in to a node now.
    pub(super) fn take(
        &self,
        index: &Index,
        node: &Node,
        waiting: &mut Vec<PodRow>,
    ) -> Vec<PodRow> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        if state.look_at.is_none_or(|at| at <= began) {
            state.look(index);
            state.look_at = Some(began + LOOK_EVERY.max(began.elapsed() * RESTS));
        }
        // Here the node's domain only gains pods: whose shape was refused once need not ask again.
        let mut refused = BTreeSet::new();
        let (now, later) = std::mem::take(waiting).into_iter().partition(|pod| {
            let admitted = !refused.contains(&pod.shape_id) && state.admits(index, node, pod);
            if !admitted {
                refused.insert(pod.shape_id.clone());
            }
            admitted
        });
        *waiting = later;
        now
    }
}

/// True when pods of a shape take turns.
pub(super) fn takes_turns(index: &Index, shape: &str) -> bool {
    spreads(index, shape).next().is_some()
}

/// How many pods of each shape that takes turns are bound to each node.
fn bound_by_shape(index: &Index) -> BTreeMap<&Arc<str>, BTreeMap<&Arc<str>, i64>> {
    let mut bound: BTreeMap<_, Option<BTreeMap<_, i64>>> = BTreeMap::new();
    for pod in index.pods().map(|pod| &pod.row) {
        let nodes = bound
            .entry(&pod.shape_id)
            .or_insert_with(|| takes_turns(index, &pod.shape_id).then(BTreeMap::new));
        if let Some(nodes) = nodes {
            *nodes.entry(&pod.node_name).or_default() += 1;
        }
    }
    bound.into_iter().filter_map(|(shape, nodes)| Some((shape, nodes?))).collect()
}

/// The topology keys that pods of a shape must spread over, hosts apart, and how unevenly they may.
fn spreads<'i>(index: &'i Index, shape: &str) -> impl Iterator<Item = (&'i str, i64)> {
    let all = index.shape(shape).into_iter().flat_map(|shape| &shape.topology_spread);
    let hard = all.filter(|it| !it.schedule_anyway && it.topology_key != HOSTNAME);
    hard.map(|it| (it.topology_key.as_str(), i64::from(it.max_skew.max(1))))
}

impl State {
    /// Counts anew.
    fn look(&mut self, index: &Index) {
        self.let_in.retain(|uid, _| index.is_out(uid));
        self.counts.clear();
        let mut domains: BTreeMap<&str, BTreeMap<&Arc<str>, &str>> = BTreeMap::new();
        for (shape, bound) in bound_by_shape(index) {
            for (key, _) in spreads(index, shape) {
                let domains =
                    domains.entry(key).or_insert_with(|| index.node_labels(key).collect());
                let empty = domains.values().map(|domain| ((*domain).to_owned(), 0));
                let counts = self.counts.entry((shape.clone(), key.to_owned()));
                let counts = counts.or_insert_with(|| empty.collect());
                for (node, pods) in &bound {
                    let domain = domains.get(node);
                    if let Some(count) = domain.and_then(|domain| counts.get_mut(*domain)) {
                        *count += pods;
                    }
                }
            }
        }
        for (group, domain) in self.let_in.values().flatten() {
            let counts = self.counts.entry(group.clone()).or_default();
            *counts.entry(domain.clone()).or_default() += 1;
        }
    }

    /// Whether a pod may be let in to a node, and counts it there if so.
    fn admits(&mut self, index: &Index, node: &Node, pod: &PodRow) -> bool {
        let mut places = Vec::new();
        for (key, skew) in spreads(index, &pod.shape_id) {
            let Some(domain) = node.labels().get(key) else { continue };
            let group = (pod.shape_id.clone(), key.to_owned());
            let counts = self.counts.get(&group);
            let own = counts.and_then(|counts| counts.get(domain)).copied().unwrap_or(0);
            let least = counts.and_then(|counts| counts.values().min()).copied().unwrap_or(0);
            if own + 1 - least > skew {
                return false;
            }
            places.push((group, domain.clone()));
        }
        for (group, domain) in &places {
            *self.counts.entry(group.clone()).or_default().entry(domain.clone()).or_default() += 1;
        }
        self.let_in.insert(pod.uid.clone(), places);
        true
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ObjectReference, Pod};
    use serde_json::{Value, json};

    use super::*;

    const ZONE: &str = "topology.kubernetes.io/zone";

    fn applied(index: &mut Index, pod: Value) {
        let pod = serde_json::from_value::<Pod>(pod);
        index.apply(ObjectReference::default(), pod.map_err(|error| error.to_string()));
    }

    fn node(name: &str, zone: &str) -> Node {
        let labels = json!({ ZONE: zone });
        let node = json!({ "metadata": { "name": name, "uid": name, "labels": labels } });
        serde_json::from_value(node).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Six pods under a spread over zones, the first bound to a node of zone a; two zones.
    fn index(skew: i64, anyway: bool) -> Index {
        let mut index = Index::default();
        for node in [node("na", "a"), node("nb", "b")] {
            index.apply(ObjectReference::default(), Ok(node));
        }
        let how = if anyway { "ScheduleAnyway" } else { "DoNotSchedule" };
        let spread = json!([{ "maxSkew": skew, "topologyKey": ZONE, "whenUnsatisfiable": how,
            "labelSelector": { "matchLabels": { "app": "a" } } }]);
        for uid in 0..6 {
            let node = (uid == 0).then_some("na");
            applied(
                &mut index,
                json!({
                    "metadata": { "namespace": "default", "name": format!("pod-{uid}"),
                        "uid": uid.to_string(), "labels": { "app": "a" } },
                    "spec": { "containers": [], "nodeName": node,
                        "topologySpreadConstraints": spread },
                }),
            );
        }
        index
    }

    fn pods(index: &Index, uids: std::ops::Range<u8>) -> Vec<PodRow> {
        let entry = |uid: u8| index.pod(&uid.to_string()).map(|entry| entry.row.clone());
        uids.filter_map(entry).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn no_zone_is_let_ahead_by_more_than_the_skew() {
        let (index, turns) = (index(1, false), Turns::default());
        let (mut a, mut b) = (pods(&index, 1..3), pods(&index, 3..6));
        assert!(turns.take(&index, &node("na", "a"), &mut a).is_empty(), "a has one already");
        assert_eq!(turns.take(&index, &node("nb", "b"), &mut b).len(), 2, "one more than a");
        assert_eq!(turns.take(&index, &node("na", "a"), &mut a).len(), 2, "as many as b, one more");
        assert_eq!(turns.take(&index, &node("nb", "b"), &mut b).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn pods_that_were_let_in_count_until_they_go() {
        let (mut index, turns) = (index(1, false), Turns::default());
        let mut b = pods(&index, 3..6);
        assert_eq!(turns.take(&index, &node("nb", "b"), &mut b).len(), 2);
        for uid in 3..6 {
            index.forget::<Pod>(&("default".to_owned(), format!("pod-{uid}")));
        }
        tokio::time::advance(LOOK_EVERY).await;
        let mut a = pods(&index, 1..3);
        assert!(turns.take(&index, &node("na", "a"), &mut a).is_empty(), "b has none again");
    }

    #[test]
    fn only_a_hard_spread_over_more_than_hosts_takes_turns() {
        for (anyway, takes) in [(false, true), (true, false)] {
            let index = index(1, anyway);
            let shape = index.pod("1").map(|entry| entry.row.shape_id.clone()).unwrap_or_default();
            assert_eq!(takes_turns(&index, &shape), takes);
        }
    }
}
