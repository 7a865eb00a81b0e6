//! Node classes that are being deleted: Karpenter puts a finalizer on each, which nobody would take
//! off once it has gone.
//!
//! Invariant: one is let go only when no claim uses it, nor any that cannot be read.

use kube::ResourceExt as _;

use super::Step;
use crate::api::EC2NodeClass;
use crate::api::crd::Kind;
use crate::api::keys::finalizers::NODE_CLASS_TERMINATION;
use crate::index::Index;

/// What the deletion of node classes calls for.
#[must_use]
pub fn steps(index: &Index) -> Vec<Step> {
    let classes = index.pools().all_classes().filter(|class| is_held(class));
    let free = classes.filter(|class| !is_used(index, &class.name_any()));
    free.map(|class| Step::ReleaseClass { class: class.name_any() }).collect()
}

fn is_held(class: &EC2NodeClass) -> bool {
    let held = class.finalizers().iter().any(|finalizer| finalizer == NODE_CLASS_TERMINATION);
    class.metadata.deletion_timestamp.is_some() && held
}

fn is_used(index: &Index, class: &str) -> bool {
    let kind = Kind::EC2NodeClass.to_string();
    let uses = |claim: &crate::api::NodeClaim| {
        let reference = &claim.spec.node_class_ref;
        reference.name == class && reference.kind == kind
    };
    index.hides_claims() || index.claims().any(|claim| uses(claim))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::NodeClaim;
    use crate::index::Watched;

    fn apply<W: Watched + serde::de::DeserializeOwned>(index: &mut Index, object: Value) {
        let object = serde_json::from_value::<W>(object);
        index.apply(ObjectReference::default(), object.map_err(|error| error.to_string()));
    }

    fn class(finalizer: &str, deleted: Value) -> Value {
        json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": { "name": "d", "finalizers": [finalizer], "deletionTimestamp": deleted },
            "spec": { "amiSelectorTerms": [{ "alias": "al2023@latest" }], "role": "r",
                "subnetSelectorTerms": [{ "id": "subnet-1" }],
                "securityGroupSelectorTerms": [{ "id": "sg-1" }] } })
    }

    fn claim(class: &str) -> Value {
        json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": "c" },
            "spec": { "requirements": [], "nodeClassRef": {
                "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class } } })
    }

    #[test]
    fn a_deleted_class_is_let_go_once_no_claim_uses_it() {
        let (ours, now) = (NODE_CLASS_TERMINATION, json!("2026-01-01T00:00:00Z"));
        let free = vec![Step::ReleaseClass { class: "d".to_owned() }];
        let table = [
            (class(ours, now.clone()), None, free.clone()),
            (class(ours, now.clone()), Some(claim("other")), free),
            (class(ours, now.clone()), Some(claim("d")), Vec::new()),
            (class(ours, Value::Null), None, Vec::new()),
            (class("example.com/other", now), None, Vec::new()),
        ];
        let unreadable = json!({ "metadata": { "name": "c" }, "spec": 1 });
        let table = table.into_iter().chain([(
            class(ours, json!("2026-01-01T00:00:00Z")),
            Some(unreadable),
            Vec::new(),
        )]);
        for (class, claim, expected) in table {
            let mut index = Index::default();
            apply::<EC2NodeClass>(&mut index, class);
            claim.into_iter().for_each(|claim| apply::<NodeClaim>(&mut index, claim));
            assert_eq!(steps(&index), expected);
        }
    }
}
