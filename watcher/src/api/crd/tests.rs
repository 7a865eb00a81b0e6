//! Tests of the generated definitions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{
    AWSNodeTemplate, CapacityBuffer, EC2NodeClass, NodeClaim, NodeOverlay, NodePool, Provisioner,
    unknown_fields,
};
use super::{Kind, decode};

/// Visits every schema of a definition, with its path.
fn walk(schema: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(property, &format!("{path}.{name}"), visit);
    }
    for nested in ["items", "additionalProperties"] {
        if schema[nested].is_object() {
            walk(&schema[nested], &format!("{path}.{nested}"), visit);
        }
    }
}

#[test]
fn files_under_deploy_are_those_generated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds");
    for kind in Kind::ALL {
        let file = fs::read_to_string(folder.join(kind.file_name())).unwrap();
        assert!(
            file == kind.file_content().unwrap(),
            "{} is stale: run `cargo run -p longshore-watcher --bin crds -- deploy/crds`",
            kind.file_name()
        );
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), Kind::ALL.len(), "a file too many");
}

#[test]
fn kinds_name_their_definitions() {
    for kind in Kind::ALL {
        let spec = kind.definition().spec;
        assert_eq!(spec.names.kind, kind.name());
        assert_eq!(format!("{}/{}", spec.group, spec.versions[0].name), kind.api_version());
        let object = json!({ "apiVersion": kind.api_version(), "kind": kind.name() });
        assert_eq!(Kind::of(&object), Some(kind));
    }
    assert_eq!(
        Kind::of(&json!({ "apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool" })),
        None
    );
}

#[test]
fn schemas_are_structural_and_documented() {
    for kind in Kind::ALL {
        let schema = json!(kind.schema());
        walk(&schema, kind.name(), &mut |path, schema| {
            let typed =
                schema["type"].is_string() || schema["x-kubernetes-int-or-string"] == json!(true);
            assert!(typed, "{path} has no type: {schema}");
            assert!(schema.get("nullable").is_none(), "{path} is nullable");
            for word in ["anyOf", "oneOf", "allOf", "not", "$ref"] {
                assert!(schema.get(word).is_none(), "{path} uses {word}");
            }
            let documented = schema["description"].is_string()
                || path.ends_with("items")
                || path.ends_with("additionalProperties")
                || path.ends_with("metadata");
            assert!(documented, "{path} has no description");
        });
    }
}

#[test]
fn every_rule_has_a_message() {
    let mut rules = 0;
    for kind in Kind::ALL {
        walk(&json!(kind.schema()), kind.name(), &mut |path, schema| {
            for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
                rules += 1;
                assert!(rule["message"].is_string(), "{path}: {rule}");
            }
        });
    }
    assert!(rules > 80, "only {rules} rules");
}

#[test]
fn an_empty_field_counts_as_missing_and_defaults_are_filled_in() {
    let pool: NodePool = decode(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
        "spec": {
            "weight": null,
            "limit": { "cpu": 20 },
            "template": {
                "metadata": null,
                "spec": {
                    "requirements": [{ "key": "kubernetes.io/arch", "operator": "Exists" }],
                    "nodeClassRef":
                        { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                },
            },
        },
    }))
    .unwrap();
    assert_eq!(pool.spec.weight, None);
    assert!(pool.spec.template.metadata.is_empty());
    let hours = pool.spec.template.spec.expire_after.duration().unwrap().as_secs() / 3600;
    assert_eq!(hours, 720);
    assert_eq!(pool.spec.disruption.budgets[0].nodes, "10%");
    assert!(pool.spec.disruption.consolidate_after.duration().unwrap().is_zero());
}

#[test]
fn limits_may_be_numbers_or_text() {
    let spec = json!({
        "limits": { "resources": { "cpu": 1000, "memory": "80Gi", "example.com/x": 0.5 } },
    });
    let provisioner: Provisioner =
        decode(json!({ "metadata": { "name": "dev" }, "spec": spec })).unwrap();
    let limits = provisioner.spec.limits.unwrap().resources;
    assert_eq!(limits["cpu"].parsed().unwrap().to_string(), "1000");
    assert_eq!(limits["memory"].0, "80Gi");
    assert_eq!(limits["example.com/x"].0, "0.5");
}

#[test]
fn names_with_capitals_keep_them() {
    let class: EC2NodeClass = decode(json!({
        "metadata": { "name": "default" },
        "spec": {
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": [{ "id": "subnet-1" }],
            "securityGroupSelectorTerms": [{ "name": "nodes" }],
            "role": "nodes",
            "associatePublicIPAddress": true,
            "kubelet": { "clusterDNS": ["10.0.0.10"], "cpuCFSQuota": false },
            "blockDeviceMappings": [{ "ebs": { "volumeSize": "20Gi", "kmsKeyID": "k" } }],
        },
    }))
    .unwrap();
    assert_eq!(class.spec.associate_public_ip_address, Some(true));
    assert_eq!(class.spec.kubelet.as_ref().unwrap().cluster_dns, ["10.0.0.10"]);
    assert_eq!(class.spec.kubelet.as_ref().unwrap().cpu_cfs_quota, Some(false));
    let disk = class.spec.block_device_mappings[0].ebs.as_ref().unwrap();
    assert_eq!(disk.kms_key_id.as_deref(), Some("k"));
    assert_eq!(class.spec.metadata_options.http_put_response_hop_limit, 1);
}

#[test]
fn a_claim_encodes_to_what_it_was_decoded_from() {
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "default-x" },
        "spec": {
            "requirements": [
                { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"] },
            ],
            "resources": { "requests": { "cpu": "250m" } },
            "nodeClassRef":
                { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "terminationGracePeriod": "1h30m",
            "expireAfter": "Never",
        },
        "status": { "providerID": "aws:///zone/i-1", "conditions": [{
            "type": "Launched", "status": "True", "reason": "Launched", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] },
    });
    let decoded: NodeClaim = decode(claim.clone()).unwrap();
    assert_eq!(decoded.spec.expire_after.duration(), None);
    assert_eq!(json!(decoded), claim);
}

/// See cases.yaml.
#[derive(Deserialize)]
struct Cases {
    bases: BTreeMap<String, Value>,
    accepted: Vec<Case>,
    refused: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    kind: String,
    patch: Value,
}

impl Cases {
    fn object(&self, case: &Case) -> (Kind, Value) {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == case.kind).unwrap();
        let mut spec = self.bases[&case.kind].clone();
        merge(&mut spec, &case.patch);
        let object = json!({
            "apiVersion": kind.api_version(), "kind": kind.name(), "metadata": { "name": "x" },
            "spec": spec,
        });
        (kind, object)
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else { return target.clone_from(patch) };
    for (name, field) in fields {
        if field.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name], field);
        }
    }
}

#[test]
fn what_the_api_server_accepts_decodes() {
    let cases: Cases = serde_saphyr::from_str(include_str!("cases.yaml")).unwrap();
    for case in &cases.accepted {
        let (kind, object) = cases.object(case);
        let decoded = match kind {
            Kind::NodePool => decode::<NodePool>(object).map(|object| json!(object)),
            Kind::NodeClaim => decode::<NodeClaim>(object).map(|object| json!(object)),
            Kind::NodeOverlay => decode::<NodeOverlay>(object).map(|object| json!(object)),
            Kind::CapacityBuffer => decode::<CapacityBuffer>(object).map(|object| json!(object)),
            Kind::EC2NodeClass => decode::<EC2NodeClass>(object).map(|object| json!(object)),
            Kind::Provisioner => decode::<Provisioner>(object).map(|object| json!(object)),
            Kind::AWSNodeTemplate => decode::<AWSNodeTemplate>(object).map(|object| json!(object)),
        };
        assert!(decoded.is_ok(), "{} {}: {decoded:?}", case.kind, case.patch);
    }
}

#[test]
fn cases_are_refused_for_what_they_say_not_for_slips() {
    let cases: Cases = serde_saphyr::from_str(include_str!("cases.yaml")).unwrap();
    for case in cases.accepted.iter().chain(&cases.refused) {
        let (kind, object) = cases.object(case);
        assert_eq!(unknown_fields(kind, &object), [], "{} {}", case.kind, case.patch);
    }
}
