//! Telling kube-scheduler where pods belong.
//!
//! Invariant: only pods that still wait are nominated, never against preemption's own choice; what
//! cannot be nominated is no error, because the pods then merely land less exactly.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use longshore_proto::cluster::v1::NominatePods;
use longshore_proto::types::v1 as wire;
use serde_json::json;

use super::{Directives, Outcome};
use crate::index::Index;
use crate::names;
use crate::patch::code;

/// Nominations written at once.
const CONCURRENCY: usize = 16;
/// How long the watcher's own watch may take to show them. kube-scheduler's watch is as fast.
const SEEN_WITHIN: Duration = Duration::from_millis(500);

impl Directives {
    pub(super) async fn nominate_pods(&self, nominate: &NominatePods) -> Outcome {
        self.nominate(&nominate.node, &nominate.pods).await;
        Ok(())
    }

    /// Nominates those of `pods` that still wait, and waits until that is seen in the own watch.
    pub(super) async fn nominate(&self, node: &str, pods: &[String]) {
        let open = self.store.read(|index| open(index, node, pods));
        let written: Vec<String> = futures::stream::iter(open)
            .map(|pod| self.nominate_one(node, pod))
            .buffer_unordered(CONCURRENCY)
            .filter_map(std::future::ready)
            .collect()
            .await;
        let seen = |index: &Index| written.iter().all(|uid| is_settled(index, uid, node));
        if !self.store.until(SEEN_WITHIN, seen).await {
            tracing::warn!(node, "nominations not seen in time; pods may land elsewhere");
        }
    }

    /// The UID of the pod, when its nomination was written.
    async fn nominate_one(&self, node: &str, pod: wire::Pod) -> Option<String> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let patch = json!({
            "metadata": { "uid": pod.uid },
            "status": { "nominatedNodeName": node },
        });
        let params = PatchParams {
            field_manager: Some(names::FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        match api.patch_status(&pod.name, &params, &Patch::Merge(&patch)).await {
            Ok(_) => {
                tracing::debug!(pod = pod.name, node, "pod nominated");
                Some(pod.uid)
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
            Some(403) => {
                if !self.nomination_refused.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "pods cannot be nominated, so kube-scheduler may place them less tightly \
                         than planned; grant patch on pods/status to mend that"
                    );
                }
            }
            _ => tracing::warn!(%error, "a pod could not be nominated"),
        }
    }
}

/// Those of the pods that wait and may be nominated to the node.
fn open(index: &Index, node: &str, pods: &[String]) -> Vec<wire::Pod> {
    let pods = pods.iter().filter_map(|uid| index.pod(uid)).filter(|pod| pod.waits());
    let free = |pod: &wire::Pod| {
        pod.nominated_node.is_empty() || (pod.nominated_by_us && pod.nominated_node != node)
    };
    pods.map(|pod| &pod.row).filter(|pod| free(pod)).cloned().collect()
}

/// True when the pod shows its nomination, or does not wait any more.
fn is_settled(index: &Index, uid: &str, node: &str) -> bool {
    index.pod(uid).is_none_or(|pod| !pod.waits() || pod.row.nominated_node == node)
}
