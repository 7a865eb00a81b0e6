//! What stands in the way of ending a node by choice.

use k8s_openapi::api::core::v1::ObjectReference;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::api::NodeClaim;
use crate::index::Watched;

fn put<W: Watched + DeserializeOwned>(index: &mut Index, object: Value) {
    let reference: ObjectReference = serde_json::from_value(object["metadata"].clone()).unwrap();
    index.apply(reference, serde_json::from_value::<W>(object).map_err(|e| e.to_string()));
}

fn notes(key: &str) -> Value {
    if key.is_empty() { json!({}) } else { json!({ key: "true" }) }
}

/// A claim, its node and one pod, each with this annotation.
fn world(claim: &str, node: &str, pod: &str, owner: &str) -> Index {
    let mut index = Index::default();
    let class = json!({ "group": "g", "kind": "EC2NodeClass", "name": "c" });
    put::<NodeClaim>(
        &mut index,
        json!({
            "metadata": { "name": "c1", "annotations": notes(claim) },
            "spec": { "requirements": [], "nodeClassRef": class },
            "status": { "nodeName": "n1" },
        }),
    );
    put::<Node>(&mut index, json!({ "metadata": { "name": "n1", "annotations": notes(node) } }));
    let owners = json!([{ "apiVersion": "v1", "kind": owner, "name": "o", "uid": "o",
        "controller": true }]);
    put::<Pod>(
        &mut index,
        json!({
            "metadata": { "namespace": "default", "name": "p", "uid": "1",
                "annotations": notes(pod), "ownerReferences": owners },
            "spec": { "nodeName": "n1", "containers": [] },
        }),
    );
    index
}

#[test]
fn a_decision_stands_as_long_as_what_it_rests_on() {
    let mark = "karpenter.sh/do-not-disrupt";
    let first = "karpenter.sh/do-not-consolidate";
    let cases = [
        (world("", "", "", "ReplicaSet"), vec!["1"], ""),
        (world("", "", "", "ReplicaSet"), vec![], "Pod default/p has come to node n1"),
        (world("", "", "", "DaemonSet"), vec![], ""),
        (world("", "", mark, "ReplicaSet"), vec!["1"], "Pod default/p has the annotation"),
        (world("", "", mark, "DaemonSet"), vec![], "Pod default/p has the annotation"),
        (world("", mark, "", "ReplicaSet"), vec!["1"], "Node n1 has the annotation"),
        (
            world("", first, "", "ReplicaSet"),
            vec!["1"],
            "Node n1 has the annotation karpenter.sh/do-not-consolidate",
        ),
        (world(mark, "", "", "ReplicaSet"), vec!["1"], "NodeClaim c1 has the annotation"),
    ];
    for (index, pods, expected) in cases {
        let assumes = Assumption { pods: pods.into_iter().map(str::to_owned).collect() };
        match check(&index, "c1", &assumes, Now::default()) {
            Ok(()) => assert_eq!(expected, ""),
            Err(error) => {
                let (_, reason) = error.class();
                assert_eq!(reason, "ASSUMPTION_FAILED");
                assert!(!expected.is_empty() && error.to_string().starts_with(expected), "{error}");
            }
        }
    }
}
