//! What a watcher may ask of its API server.
//!
//! Invariant: judged when the watcher asks, not when the request arrives: only the holder of the
//! Lease writes, and a pod that a budget covers goes by eviction until the claim's grace is over.

use http::Method;
use serde_json::Value;

use super::going::evictions_end_ms;
use super::{CLAIMS, Judge, Seen};
use crate::clock::EPOCH_MS;

/// Before the end of a claim's grace a pod may be deleted with what is left of it, in milliseconds:
/// its own grace of 30 s, and what clocks may differ.
const LEFT_MS: i64 = 60_000;

impl Judge {
    /// A watcher asks.
    pub fn asks(&self, (label, identity): (&str, &str), method: &Method, path: &str) {
        let Some(cluster) = self.clusters.iter().find(|cluster| cluster.label == label) else {
            return;
        };
        let lease = path.contains("/leases");
        let review = path.contains("/apis/authorization.k8s.io");
        if method == Method::GET || lease || review {
            return;
        }
        let holder = cluster.holder();
        if !holder.is_empty() && holder != identity {
            let text =
                format!("{identity} asks {method} {path}; {holder} holds the Lease of {label}");
            self.violate("written without the Lease", text);
        }
        if method == Method::DELETE
            && let Some((namespace, pod)) = pod_of(path)
        {
            self.pod_deleted(cluster, namespace, pod);
        }
    }

    fn pod_deleted(&self, cluster: &Seen, namespace: &str, name: &str) {
        let mut pod = Value::Null;
        cluster.handle.visit("pods", |found| {
            let metadata = &found["metadata"];
            if metadata["name"] == name && metadata["namespace"] == namespace {
                pod = found.clone();
            }
        });
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if node.is_empty() || !pod["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        let now_ms = EPOCH_MS + self.journal.elapsed_ms();
        let mut going = None;
        cluster.handle.visit(CLAIMS, |claim| {
            if claim["status"]["nodeName"] == node {
                going = Some(claim.clone());
            }
        });
        let until_ms = going.and_then(|claim| self.evictions_end_ms(cluster, &claim));
        if until_ms.is_none_or(|until_ms| now_ms < until_ms - LEFT_MS) {
            let text =
                format!("pod {name} of {} on {node}, grace until {until_ms:?}", cluster.label);
            self.violate("a pod was deleted instead of evicted", text);
        }
    }

    /// When the pods of a claim may be deleted; nothing while it does not go.
    fn evictions_end_ms(&self, cluster: &Seen, claim: &Value) -> Option<i64> {
        let since = claim["metadata"]["deletionTimestamp"].as_str()?;
        let since_ms = since.parse::<jiff::Timestamp>().ok()?.as_millisecond();
        let name = claim["metadata"]["name"].as_str()?;
        Some(evictions_end_ms(claim, since_ms, self.reclaimed_ms(cluster, name)))
    }
}

impl Seen {
    /// Who holds the watchers' Lease; empty when nobody does.
    pub(super) fn holder(&self) -> String {
        let mut holder = String::new();
        self.handle.visit("leases.coordination.k8s.io", |lease| {
            if lease["metadata"]["name"] == "longshore-watcher" {
                let named = lease["spec"]["holderIdentity"].as_str();
                named.unwrap_or_default().clone_into(&mut holder);
            }
        });
        holder
    }
}

/// Namespace and name of the pod itself that a path names.
fn pod_of(path: &str) -> Option<(&str, &str)> {
    let (_, rest) = path.split_once("/namespaces/")?;
    let (namespace, rest) = rest.split_once("/pods/")?;
    (!rest.contains('/')).then_some((namespace, rest))
}
