//! Tests of the advice about objects.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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
fn free_maps_are_not_searched() {
    let provisioner = json!({
        "spec": {
            "labels": { "anything": "goes" },
            "limits": { "resources": { "nvidia.com/gpu": 2 } },
        },
    });
    assert!(messages(Kind::Provisioner, &provisioner).is_empty());
}

#[test]
fn an_in_line_provider_is_searched_as_the_template_it_stands_for() {
    let provisioner = json!({
        "spec": {
            "provider": {
                "apiVersion": "extensions.karpenter.sh/v1alpha1", "kind": "AWS",
                "httpTokens": "required",
                "subnetSelector": { "Name": "private-*" },
                "subnetSelectr": {},
            },
        },
    });
    assert_eq!(
        messages(Kind::Provisioner, &provisioner),
        [
            "spec.provider.httpTokens is unknown and will be ignored; did you mean \
         spec.provider.metadataOptions.httpTokens?",
            "spec.provider.subnetSelectr is unknown and will be ignored; did you mean \
         subnetSelector?",
        ]
    );
}

#[test]
fn a_field_on_which_nothing_acts_is_told() {
    let told = |spec: Value| {
        let warnings = warnings(Kind::EC2NodeClass, &json!({ "spec": spec }));
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let disk = |ebs: Value| json!({ "blockDeviceMappings": [{ "ebs": {} }, { "ebs": ebs }] });
    assert_eq!(
        told(json!({ "placementGroupSelector": { "name": "g" }, "context": "fleet-1" })),
        [
            "spec.placementGroupSelector is not acted on yet: instances are launched in no placement group",
            "spec.context is not acted on yet: EC2 Fleet is called without it",
        ]
    );
    assert_eq!(told(disk(json!({ "volumeInitializationRate": 100 }))).len(), 1);
    let without = [disk(json!({ "volumeSize": "20Gi" })), json!({ "networkInterfaces": [] })];
    for spec in without {
        assert_eq!(told(spec), [""; 0]);
    }
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

#[test]
fn examples_earn_the_warnings_they_are_there_to_show() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/examples");
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for example in fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|e| e.path().is_dir()) {
        for file in fs::read_dir(example.path()).unwrap().map(Result::unwrap) {
            let object: Value =
                serde_saphyr::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
            let Some(kind) = Kind::of(&object) else { continue };
            let name = example.file_name().into_string().unwrap();
            let lines = warnings(kind, &object).into_iter().map(|warning| format!("{warning}"));
            told.entry(name).or_default().extend(lines);
        }
    }
    let no_limit =
        |field| format!("this pool has no limit; set spec.{field} to bound what it may cost");
    let limit = "spec.limit is unknown and will be ignored; did you mean limits?".to_owned();
    let expected = [
        ("devices", vec![]),
        ("objects", vec![]),
        ("w0", vec![no_limit("limits.resources")]),
        ("w1", vec![limit, no_limit("limits")]),
        ("w1-fixed", vec![]),
        ("w2", vec![]),
        ("w2-v1", vec![]),
        ("w3", vec![no_limit("limits.resources")]),
    ];
    assert_eq!(told, expected.map(|(name, lines)| (name.to_owned(), lines)).into());
}
