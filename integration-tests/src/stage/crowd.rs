//! A class, a pool and a crowd of pods that each need a node of their own, so that launches can be
//! counted.
//!
//! Invariant: whoever applies them gets as many nodes as pods, and none of these is ended by
//! choice.

use longshore_lab::region::{CLUSTER, NODE_PROFILE};
use serde_json::{Value, json};

/// A requirement of the pool: the families of instances.
#[must_use]
pub fn families(names: &[&str]) -> Value {
    json!({
        "key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": names,
    })
}

/// A class for the lab's network.
#[must_use]
pub fn class() -> Value {
    let terms = json!([{ "tags": { "karpenter.sh/discovery": CLUSTER } }]);
    json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": { "name": "default" },
        "spec": {
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": terms,
            "securityGroupSelectorTerms": terms,
            "instanceProfile": NODE_PROFILE,
        },
    })
}

/// That class, with the images of a release.
#[must_use]
pub fn class_of(release: &str) -> Value {
    let mut class = class();
    class["spec"]["amiSelectorTerms"] = json!([{ "alias": format!("al2023@{release}") }]);
    class
}

/// The first class, and a pool with these requirements whose nodes stay.
#[must_use]
pub fn supply(requirements: &[Value]) -> [Value; 2] {
    let pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": "default" },
        "spec": {
            "template": { "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default",
                },
                "expireAfter": "Never",
                "requirements": requirements,
            }},
            "disruption": { "consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never" },
        },
    });
    [class(), pool]
}

/// A Deployment with the label `app` of its name; none of its pods goes to a node with another of
/// any crowd.
#[must_use]
pub fn workload(name: &str, pods: u32) -> Value {
    let labels = json!({ "app": name, "crowd": "yes" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "replicas": pods,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "affinity": { "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [{
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": { "matchLabels": { "crowd": "yes" } },
                        }],
                    }},
                    "containers": [{
                        "name": "pause",
                        "image": "registry.k8s.io/pause:3.10",
                        "resources": { "requests": { "cpu": "500m", "memory": "256Mi" } },
                    }],
                },
            },
        },
    })
}
