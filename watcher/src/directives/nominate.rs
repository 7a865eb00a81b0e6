//! Telling kube-scheduler where pods belong.
//!
//! Invariant: only pods that still wait are nominated, never against preemption's own choice; what
//! cannot be nominated is no error, because the pods then merely land less exactly.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::Patch;
use longshore_proto::cluster::v1::NominatePods;
use serde_json::json;

use super::{Directives, Outcome, report_once};
use crate::api::keys::labels::HOSTNAME;
use crate::index::Index;
use crate::index::pods::PodRow;
use crate::patch::{code, params};

/// Nominations written at once.
const CONCURRENCY: usize = 32;
/// How long the watcher's own watch may take to show them; kube-scheduler's watch is as fast. A
/// node that is to be opened does not wait longer: what is not seen then is more likely cleared
/// than late.
const SEEN_WITHIN: Duration = Duration::from_millis(60);

/// A pod and the node it was planned for.
#[derive(Clone, Debug)]
pub(super) struct Nomination {
    /// UID of the pod.
    pub(super) pod: String,
    /// Name of the node.
    pub(super) node: String,
}

impl Nomination {
    /// Each of the pods to the node.
    pub(super) fn all(node: &str, pods: &[String]) -> Vec<Self> {
        pods.iter().map(|pod| Self { pod: pod.clone(), node: node.to_owned() }).collect()
    }
}

impl Directives {
    /// A node that is closed yet gets its pods pinned: nominations would be cleared.
    pub(super) async fn nominate_pods(&self, nominate: &NominatePods) -> Outcome {
        let closed = |node: &Node| self.pass_to(node).is_some();
        if let Some(node) = self.known_node(&nominate.node).filter(closed) {
            Box::pin(self.pin(&node, &nominate.pods)).await;
            return Ok(());
        }
        self.nominate(&Nomination::all(&nominate.node, &nominate.pods)).await;
        Ok(())
    }

    /// Nominates those pods that still wait, and waits until that is seen in the own watch. Returns
    /// how many nominations were written.
    pub(super) async fn nominate(&self, nominations: &[Nomination]) -> usize {
        let open = self.store.read(|index| open(index, nominations));
        let written: Vec<Nomination> = futures::stream::iter(open)
            .map(|(pod, node)| self.nominate_one(pod, node))
            .buffer_unordered(CONCURRENCY)
            .filter_map(std::future::ready)
            .collect()
            .await;
        let seen = |index: &Index| written.iter().all(|written| is_settled(index, written));
        if !self.store.until(SEEN_WITHIN, seen).await {
            tracing::debug!("nominations not seen in time; pods may land elsewhere");
        }
        written.len()
    }

    /// The nomination, when it was written.
    async fn nominate_one(&self, pod: PodRow, node: String) -> Option<Nomination> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let patch = json!({
            "metadata": { "uid": &*pod.uid },
            "status": { "nominatedNodeName": node },
        });
        let _place = self.admission.write().await;
        match api.patch_status(&pod.name, &params(), &Patch::Merge(&patch)).await {
            Ok(_) => {
                tracing::debug!(pod = &*pod.name, node, "pod nominated");
                Some(Nomination { pod: pod.uid.to_string(), node })
            }
            Err(error) => {
                self.report(&error);
                None
            }
        }
    }

    fn report(&self, error: &kube::Error) {
        match code(error) {
            // The pod is gone, or another of that name has taken its place.
            Some(404 | 409 | 422) => {}
            Some(403) => report_once(
                &self.nomination_refused,
                "pods cannot be nominated, so kube-scheduler may place them less tightly than planned; \
                 grant patch on pods/status to mend that",
            ),
            _ => tracing::warn!(%error, "a pod could not be nominated"),
        }
    }
}

/// Pods that wait and may be nominated, each with its node.
pub(super) fn open(index: &Index, nominations: &[Nomination]) -> Vec<(PodRow, String)> {
    let waiting = nominations.iter().filter_map(|nomination| {
        let entry = index.pod(&nomination.pod).filter(|entry| entry.waits())?;
        Some((&entry.row, nomination.node.as_str()))
    });
    let (there, others): (Vec<_>, Vec<_>) =
        waiting.partition(|(pod, node)| *pod.nominated_node == **node);
    let mut together: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (pod, node) in there {
        *together.entry((&*pod.shape_id, node)).or_default() += 1;
    }
    let mut open = Vec::new();
    for (pod, node) in others {
        let count = together.entry((&*pod.shape_id, node)).or_default();
        let free = pod.nominated_node.is_empty() || pod.nominated_by_us;
        if free && *count < together_max(index, &pod.shape_id) {
            *count += 1;
            open.push((pod.clone(), node.to_owned()));
        }
    }
    open
}

/// How many pods of a shape may be nominated to one node at once. Of pods nominated elsewhere
/// kube-scheduler knows nothing when it tries a node, of those nominated to it everything: more of
/// them than a spread over wider domains allows ahead would refuse each other, and for good.
fn together_max(index: &Index, shape: &str) -> usize {
    let spreads = index.shape(shape).map_or(&[][..], |shape| &shape.topology_spread);
    let wide = spreads.iter().filter(|it| !it.schedule_anyway && it.topology_key != HOSTNAME);
    let least = wide.map(|it| usize::try_from(it.max_skew).unwrap_or(1)).min();
    least.unwrap_or(usize::MAX)
}

/// True when the pod shows its nomination, or does not wait any more.
fn is_settled(index: &Index, nomination: &Nomination) -> bool {
    let shown = |pod: &PodRow| *pod.nominated_node == *nomination.node;
    index.pod(&nomination.pod).is_none_or(|entry| !entry.waits() || shown(&entry.row))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::*;

    /// Four pods under a spread of this skew, the first nominated to the node already.
    fn chosen(key: &str, max_skew: i32) -> Vec<String> {
        let mut index = Index::default();
        let spread = json!([{
            "maxSkew": max_skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "a" } },
        }]);
        for uid in 0..4 {
            let nominated = if uid == 0 { "n" } else { "" };
            let pod = serde_json::from_value::<Pod>(json!({
                "metadata": { "namespace": "default", "name": format!("pod-{uid}"),
                    "uid": uid.to_string(), "labels": { "app": "a" } },
                "spec": { "containers": [], "topologySpreadConstraints": spread },
                "status": { "nominatedNodeName": nominated },
            }));
            index.apply(ObjectReference::default(), pod.map_err(|error| error.to_string()));
        }
        let all: Vec<String> = (0..4).map(|uid| uid.to_string()).collect();
        let open = open(&index, &Nomination::all("n", &all));
        open.into_iter().map(|(pod, _)| pod.uid.to_string()).collect()
    }

    #[test]
    fn pods_under_a_wide_spread_are_nominated_by_turns() {
        let zone = "topology.kubernetes.io/zone";
        assert_eq!(chosen(zone, 1), [""; 0], "the one that is nominated goes first");
        assert_eq!(chosen(zone, 2), ["1"]);
        assert_eq!(chosen(HOSTNAME, 1), ["1", "2", "3"]);
    }
}
