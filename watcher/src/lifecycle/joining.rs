//! Nodes that have not registered: what their claims wait for.
//!
//! Invariant: nothing is said while an instance may still be booting; afterwards the condition
//! Registered says what is missing, once for each thing.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;

use super::Step;
use crate::api::NodeClaim;
use crate::api::keys::conditions;
use crate::index::Index;
use crate::names;
use crate::project::claim::condition;
use crate::project::node::is_ready;

/// How long an instance may boot before its claim says that no node has joined, in milliseconds.
const BOOT_MS: i64 = 3 * 60_000;

/// What unregistered nodes call for.
#[must_use]
pub fn steps(index: &Index, now_ms: i64) -> Vec<Step> {
    index.claims().filter_map(|claim| step(index, claim, now_ms)).collect()
}

fn step(index: &Index, claim: &NodeClaim, now_ms: i64) -> Option<Step> {
    let status = claim.status.as_ref()?;
    let launched = condition(&status.conditions, conditions::LAUNCHED)?;
    let registered = condition(&status.conditions, conditions::REGISTERED).is_some();
    let late = now_ms - launched.0.as_millisecond() >= BOOT_MS;
    if registered || !late || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let id = status.provider_id.as_deref().filter(|id| !id.is_empty())?;
    let nodes: Vec<Node> = index.nodes_with_provider_id(id).collect();
    let (reason, message) = missing(id, &nodes);
    let said = status
        .conditions
        .iter()
        .any(|c| c.type_ == conditions::REGISTERED && c.reason == reason && c.message == message);
    let kind = conditions::REGISTERED;
    (!said).then(|| Step::Await { claim: claim.name_any(), kind, reason, message })
}

fn missing(id: &str, nodes: &[Node]) -> (&'static str, String) {
    match nodes {
        [] => (
            "NodeNotFound",
            format!(
                "no node with provider id {id} has joined; look at the instance's console output, at its user \
                 data, and whether its role may join and it reaches the API server"
            ),
        ),
        [node] => {
            let name = node.name_any();
            let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
            let marked = taints.into_iter().any(|taint| taint.key == names::UNREGISTERED_TAINT);
            if !is_ready(node) {
                (
                    "NodeNotReady",
                    format!("node {name} has joined and is not ready; see its conditions"),
                )
            } else if marked {
                (
                    "StartupTaintsExist",
                    format!("node {name} is ready and still has start-up taints"),
                )
            } else {
                let key = names::UNREGISTERED_TAINT;
                (
                    "UnregisteredTaintMissing",
                    format!(
                        "node {name} has joined without the taint {key}; register nodes with it"
                    ),
                )
            }
        }
        several => {
            let names: Vec<String> = several.iter().map(|node| node.name_any()).collect();
            let names = names.join(", ");
            (
                "MultipleNodesFound",
                format!("nodes {names} have provider id {id}; delete all but one"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOW_MS, apply, claim, node};
    use super::*;
    use serde_json::{Value, json};

    fn waits(nodes: &[Value]) -> Option<(&'static str, String)> {
        let mut index = Index::default();
        let mut launched =
            claim(json!({ "status": { "nodeName": "", "providerID": "aws:///a/i-1" } }));
        let conditions = launched["status"]["conditions"].as_array_mut().unwrap();
        conditions.retain(|condition| condition["type"] == "Launched");
        apply::<NodeClaim>(&mut index, launched);
        for extra in nodes {
            apply::<Node>(&mut index, node(extra.clone()));
        }
        // It was launched an hour before.
        assert!(steps(&index, NOW_MS - 60 * 60_000 + BOOT_MS - 1).is_empty());
        let step = steps(&index, NOW_MS).pop()?;
        let Step::Await { kind, reason, message, .. } = step else { panic!("{step:?}") };
        assert_eq!(kind, "Registered");
        Some((reason, message))
    }

    #[test]
    fn what_keeps_a_node_from_registering_is_said() {
        let joined = |name: &str, ready: &str, taints: Value| {
            json!({
                "metadata": { "name": name },
                "spec": { "providerID": "aws:///a/i-1", "taints": taints },
                "status": { "conditions": [{ "type": "Ready", "status": ready }] },
            })
        };
        let unregistered =
            || json!([{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }]);
        let reason = |nodes: &[Value]| waits(nodes).map(|(reason, _)| reason);
        assert_eq!(reason(&[]), Some("NodeNotFound"));
        assert_eq!(reason(&[joined("a", "False", unregistered())]), Some("NodeNotReady"));
        assert_eq!(reason(&[joined("a", "True", unregistered())]), Some("StartupTaintsExist"));
        assert_eq!(reason(&[joined("a", "True", json!([]))]), Some("UnregisteredTaintMissing"));
        let two = [joined("a", "True", json!([])), joined("b", "True", json!([]))];
        let (reason, message) = waits(&two).unwrap();
        assert_eq!(reason, "MultipleNodesFound");
        assert!(message.starts_with("nodes a, b have provider id aws:///a/i-1"), "{message}");
    }
}
