//! Tests of the advice about objects.

use serde_json::{Value, json};

use super::{Warning, unknown_fields, warnings};
use crate::api::Kind;

fn messages(kind: Kind, object: &Value) -> Vec<String> {
    unknown_fields(kind, object).iter().map(ToString::to_string).collect()
}

#[test]
fn a_slip_is_named_with_what_was_meant() {
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": { "name": "default", "labels": { "any": "thing" } },
        "spec": {
            "limit": { "cpu": 20, "memory": "80Gi" },
            "weight": null,
            "requirements": [],
            "template": {
                "metadata": null,
                "spec": { "taints": [{ "key": "a", "effect": "NoSchedule", "vaule": "b" }] },
            },
            "zzz": 1,
        },
        "status": {},
    });
    assert_eq!(
        messages(Kind::NodePool, &pool),
        [
            "spec.limit is unknown and will be ignored; did you mean limits?",
            "spec.requirements is unknown and will be ignored; did you mean \
         spec.template.spec.requirements?",
            "spec.template.spec.taints[0].vaule is unknown and will be ignored; \
         did you mean value?",
            "spec.zzz is unknown and will be ignored",
        ]
    );
}

#[test]
fn free_maps_and_raw_objects_are_not_searched() {
    let provisioner = json!({
        "spec": {
            "labels": { "anything": "goes" },
            "provider": { "apiVersion": "x", "whatever": { "goes": true } },
            "limits": { "resources": { "nvidia.com/gpu": 2 } },
        },
    });
    assert!(messages(Kind::Provisioner, &provisioner).is_empty());
}

#[test]
fn a_pool_without_limits_is_told() {
    let no_limit = |kind, object: Value| warnings(kind, &object) == [Warning::NoLimit(kind)];
    assert!(no_limit(Kind::NodePool, json!({ "spec": {} })));
    assert!(no_limit(Kind::NodePool, json!({ "spec": { "limits": {} } })));
    assert!(no_limit(Kind::Provisioner, json!({ "spec": { "limits": {} } })));
    assert!(!no_limit(Kind::NodePool, json!({ "spec": { "limits": { "nodes": 3 } } })));
    assert!(!no_limit(Kind::NodePool, json!({ "spec": { "replicas": 3 } })));
    assert!(!no_limit(Kind::EC2NodeClass, json!({ "spec": {} })));
}
