//! What becomes of the pods on a node that goes.
//!
//! Invariant: a node that goes as empty is empty, and no instance is ended under a pod that may
//! still run, unless the claim's grace is over.

use serde_json::Value;

use super::going::grace_ms;
use super::{CLAIMS, Judge, Seen};
use crate::clock::EPOCH_MS;

/// What the clocks of Longshore and of the API server may differ when a grace ends, in
/// milliseconds.
const LEFT_MS: i64 = 60_000;

impl Judge {
    /// A claim begins to go.
    pub(super) fn is_empty(&self, cluster: &Seen, claim: &Value, reason: &str) {
        let node = claim["status"]["nodeName"].as_str().unwrap_or_default();
        if reason != "Empty" || node.is_empty() {
            return;
        }
        let pods = pods_on(cluster, node, |pod| pod["metadata"]["deletionTimestamp"].is_null());
        if !pods.is_empty() {
            let claim = claim["metadata"]["name"].as_str().unwrap_or_default();
            let text = format!("claim {claim} of {} goes as Empty with {pods:?}", cluster.label);
            self.violate("a node with pods was taken for empty", text);
        }
    }

    /// Longshore ends an instance.
    pub(super) fn is_drained(&self, cluster: &Seen, instance_id: &str) {
        let now_ms = EPOCH_MS + self.journal.elapsed_ms();
        let (mut node, mut late) = (String::new(), false);
        cluster.handle.visit(CLAIMS, |claim| {
            let provider_id = claim["status"]["providerID"].as_str().unwrap_or_default();
            if provider_id.ends_with(instance_id) {
                claim["status"]["nodeName"].as_str().unwrap_or_default().clone_into(&mut node);
                let since = moment_ms(&claim["metadata"]["deletionTimestamp"]);
                late = since.is_some_and(|since| since + grace_ms(claim) - LEFT_MS <= now_ms);
            }
        });
        if node.is_empty() || late {
            return;
        }
        let may_run = |pod: &Value| {
            let over =
                ["Succeeded", "Failed"].contains(&pod["status"]["phase"].as_str().unwrap_or(""));
            // The time by which it must have ended.
            let until = moment_ms(&pod["metadata"]["deletionTimestamp"]);
            !over && until.is_none_or(|until_ms| now_ms < until_ms)
        };
        let pods = pods_on(cluster, &node, may_run);
        if !pods.is_empty() {
            let text = format!("{instance_id} of {}, node {node}, under {pods:?}", cluster.label);
            self.violate("ended under running pods", text);
        }
    }
}

/// A moment of the API server's, in milliseconds since 1970.
pub(super) fn moment_ms(time: &Value) -> Option<i64> {
    let time: jiff::Timestamp = time.as_str()?.parse().ok()?;
    Some(time.as_millisecond())
}

/// Names of pods of workloads on a node.
fn pods_on(cluster: &Seen, node: &str, which: impl Fn(&Value) -> bool) -> Vec<String> {
    let mut names = Vec::new();
    cluster.handle.visit("pods", |pod| {
        let owner = pod["metadata"]["ownerReferences"][0]["kind"].as_str().unwrap_or_default();
        if pod["spec"]["nodeName"] == node && owner != "DaemonSet" && which(pod) {
            names.extend(pod["metadata"]["name"].as_str().map(ToOwned::to_owned));
        }
    });
    names
}
