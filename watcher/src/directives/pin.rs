//! Letting planned pods onto their node while it is closed to all others, and before it is there.
//!
//! Invariant: the taint karpenter.sh/unregistered of a joined node carries the name of its claim,
//! and a pinned pod tolerates it with that value only. So kube-scheduler may try pods in any order
//! and retry them as often as it likes: nobody else finds room there. What cannot be pinned is
//! nominated instead.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod, Toleration};
use kube::{Api, ResourceExt as _};
use longshore_proto::cluster::v1::PinPods;
use serde_json::json;
use tokio::time::Instant;

use super::{Directives, Outcome, report_once, turns};
use crate::args::Placement;
use crate::index::Index;
use crate::index::pods::PodRow;
use crate::names;
use crate::patch::{Part, code, edit, operate};

/// Pods pinned at once.
const CONCURRENCY: usize = 32;
/// Longest that kube-scheduler leaves a pod alone which it could not place (its
/// podMaxBackoffSeconds).
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// How long a node stays closed when none of its pinned pods is bound: its own pods would find
/// strangers in their places if it opened while kube-scheduler lets them wait. Time for two tries:
/// the first may be made before kube-scheduler has heard of the node, and news of it may be late.
pub(super) const BOUND_WITHIN: Duration = Duration::from_secs(20);
/// How often it is looked whether pods are bound.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const _: () = assert!(BOUND_WITHIN.as_secs() >= 2 * BACK_OFF_MAX.as_secs());

/// Most characters of a taint's value.
const VALUE_MAX: usize = 63;

/// Makes the taint that closes a node carry the name of its claim, so that single pods can tolerate
/// it; the hostname where that name is too long. A node that has neither is closed to all pods
/// alike.
pub(super) fn close(node: &mut Node, claim: &str) {
    let name = pass_of(claim).or_else(|| node.labels().get(names::HOSTNAME).cloned());
    let taints = node.spec.as_mut().and_then(|spec| spec.taints.as_mut()).into_iter().flatten();
    for taint in taints.filter(|taint| taint.key == names::UNREGISTERED_TAINT) {
        taint.value = name.clone().or(taint.value.take());
    }
}

/// What lets pods in to the node of a claim, whether it is there or not; nothing where a taint
/// cannot say it.
fn pass_of(claim: &str) -> Option<String> {
    (claim.len() <= VALUE_MAX).then(|| claim.to_owned())
}

/// What lets pods in to a node: the value of the taint that closes it. Nothing when it is open, or
/// closed to all alike.
fn pass(node: &Node) -> Option<String> {
    let taints = node.spec.as_ref()?.taints.iter().flatten();
    let mut closing = taints.filter(|taint| taint.key == names::UNREGISTERED_TAINT);
    closing.next()?.value.clone().filter(|value| !value.is_empty())
}

/// What a pod with a pass tolerates.
fn toleration(pass: &str) -> Toleration {
    Toleration {
        key: Some(names::UNREGISTERED_TAINT.to_owned()),
        operator: Some("Equal".to_owned()),
        value: Some(pass.to_owned()),
        ..Toleration::default()
    }
}

impl Directives {
    /// What lets pods in to a closed node one by one; nothing where none is let in so.
    pub(super) fn pass_to(&self, node: &Node) -> Option<String> {
        (self.placement == Placement::Pin).then(|| pass(node)).flatten()
    }

    /// Lets pods in to the node that a claim will have: kube-scheduler finds it once it is ready.
    /// Those that take turns wait until it is known what it counts for.
    pub(super) async fn pin_pods(&self, pin: &PinPods) -> Outcome {
        self.store.update(|index| index.plan_more(&pin.claim, &pin.pods));
        let pass = pass_of(&pin.claim).filter(|_| self.placement == Placement::Pin);
        let Some(pass) = pass else { return Ok(()) };
        let (_, mut now) = self.split(&pass, &pin.pods);
        self.store.read(|index| now.retain(|pod| !turns::takes_turns(index, &pod.shape_id)));
        let pinned = self.pin_free(now, &pass).await.map_or(0, |pinned| pinned.len());
        tracing::debug!(claim = pin.claim, pods = pinned, "pods pinned early");
        Ok(())
    }

    /// Of pods that wait, those that have the pass and those that have not.
    fn split(&self, pass: &str, pods: &[String]) -> (Vec<PodRow>, Vec<PodRow>) {
        self.store.read(|index| {
            self.passes.forget(index);
            let has = |pod: &PodRow| self.passes.has(index, pod, pass);
            pinnable(index, pods).into_iter().partition(has)
        })
    }

    /// Pins pods to a closed node and waits until they are bound, or until none of them was for a
    /// while.
    pub(super) async fn pin(&self, node: &Node, pods: &[String]) {
        let Some(pass) = self.pass_to(node) else { return };
        let _pinning = self.admission.pins();
        let name = node.name_any();
        let (before, now) = self.split(&pass, pods);
        let (mut by_turns, free): (Vec<_>, Vec<_>) = self.store.read(|index| {
            now.into_iter().partition(|pod| turns::takes_turns(index, &pod.shape_id))
        });
        let mut pinned: Vec<String> = before.iter().map(|pod| pod.uid.to_string()).collect();
        let Some(free) = self.pin_free(free, &pass).await else { return };
        pinned.extend(free);
        let began = Instant::now();
        while !by_turns.is_empty() {
            let next = match began.elapsed() < turns::WITHIN {
                true => self.store.read(|index| self.turns.take(index, node, &mut by_turns)),
                false => std::mem::take(&mut by_turns),
            };
            pinned.extend(self.pin_all(next, &pass).await);
            if !by_turns.is_empty() {
                tokio::time::sleep(turns::LOOK_EVERY).await;
            }
        }
        tracing::debug!(node = name, pods = pinned.len(), before = before.len(), "pods pinned");
        self.await_bound(pinned).await;
    }

    /// UIDs of the pods that were pinned; none when the first was not, which tells whether pods may
    /// be pinned at all.
    async fn pin_free(&self, mut pods: Vec<PodRow>, pass: &str) -> Option<Vec<String>> {
        let Some(first) = pods.pop() else { return Some(Vec::new()) };
        let mut pinned = vec![self.pin_one(first, pass).await?];
        pinned.extend(self.pin_all(pods, pass).await);
        Some(pinned)
    }

    /// UIDs of the pods that were pinned.
    async fn pin_all(&self, pods: Vec<PodRow>, pass: &str) -> Vec<String> {
        let pinned = futures::stream::iter(pods)
            .map(|pod| self.pin_one(pod, pass))
            .buffer_unordered(CONCURRENCY);
        pinned.filter_map(std::future::ready).collect().await
    }

    /// UID of the pod, when it was pinned: here, or by a directive that came before.
    async fn pin_one(&self, pod: PodRow, pass: &str) -> Option<String> {
        let _place = self.admission.write().await;
        if self.store.read(|index| self.passes.has(index, &pod, pass)) {
            return Some(pod.uid.to_string());
        }
        match self.let_in(&pod, &toleration(pass)).await {
            Ok(pinned) => pinned.then(|| {
                self.passes.note(&pod, pass);
                pod.uid.to_string()
            }),
            Err(error) => {
                if code(&error) == Some(403) {
                    report_once(
                        &self.pinning_refused,
                        "pods cannot be pinned to new nodes and are nominated instead, which is less \
                         exact; grant patch on pods to mend that",
                    );
                } else {
                    tracing::warn!(%error, pod = &*pod.name, "a pod could not be pinned");
                }
                None
            }
        }
    }

    /// Adds the toleration; false when the pod is gone or another has its name. One request, unless
    /// the pod has no list of tolerations yet: the API server gives one to every pod, where its
    /// defaults are not turned off.
    async fn let_in(&self, pod: &PodRow, pass: &Toleration) -> kube::Result<bool> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let appended = json!([
            { "op": "test", "path": "/metadata/uid", "value": &*pod.uid },
            { "op": "add", "path": "/spec/tolerations/-", "value": pass },
        ]);
        match operate(&api, &pod.name, appended).await {
            Ok(_) => return Ok(true),
            Err(error) if code(&error) == Some(404) => return Ok(false),
            Err(error) if code(&error) != Some(422) => return Err(error),
            Err(_) => {}
        }
        let found = edit(&api, &pod.name, Part::Main, None, |found: &mut Pod| {
            if found.metadata.uid.as_deref() == Some(&*pod.uid) {
                let spec = found.spec.get_or_insert_default();
                let tolerations = spec.tolerations.get_or_insert_default();
                if !tolerations.contains(pass) {
                    tolerations.push(pass.clone());
                }
            }
        });
        Ok(found.await?.and_then(|found| found.metadata.uid).is_some_and(|uid| *uid == *pod.uid))
    }

    /// Waits until pods are bound, or none of them was for a while. Looked at from time to time: a
    /// hundred nodes may wait, and each would look at its pods at every change of anything.
    async fn await_bound(&self, mut pods: Vec<String>) {
        let mut since = Instant::now();
        loop {
            let before = pods.len();
            self.store.read(|index| pods.retain(|uid| index.is_out(uid)));
            if pods.len() < before {
                since = Instant::now();
            }
            if pods.is_empty() || since.elapsed() >= BOUND_WITHIN {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Pods that wait and are not preemption's to place.
fn pinnable(index: &Index, pods: &[String]) -> Vec<PodRow> {
    let waiting = pods.iter().filter(|uid| index.is_out(uid)).filter_map(|uid| index.pod(uid));
    let rows = waiting.map(|pod| &pod.row);
    rows.filter(|pod| pod.nominated_node.is_empty() || pod.nominated_by_us).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(claim: &str, labels: &serde_json::Value, taints: &serde_json::Value) -> Node {
        let node = json!({"metadata": {"name": "n", "labels": labels}, "spec": {"taints": taints}});
        let mut node = serde_json::from_value(node).unwrap_or_else(|error| panic!("{error}"));
        close(&mut node, claim);
        node
    }

    #[test]
    fn a_closed_node_lets_in_who_tolerates_the_name_of_its_claim() {
        let closed = json!([
            {"key": "example.com/other", "effect": "NoSchedule"},
            {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
        ]);
        let named = json!({"kubernetes.io/hostname": "host-1"});
        assert_eq!(pass(&node("claim-1", &named, &closed)).as_deref(), Some("claim-1"));
        let long = "c".repeat(64);
        assert_eq!(pass(&node(&long, &named, &closed)).as_deref(), Some("host-1"), "no value");
        let nameless = node(&long, &json!({}), &closed);
        assert_eq!(pass(&nameless), None, "nothing tells it from other closed nodes");
        let open = json!([{"key": "example.com/other", "effect": "NoSchedule"}]);
        assert_eq!(pass(&node("claim-1", &named, &open)), None);
    }
}
