//! What users of both contenders write: a class, a pool, Deployments and their disruption budgets.
//!
//! Invariant: both are given the same objects.

use serde_json::{Value, json};

use crate::stage::crowd::class;

/// Requests of a pod: thousandths of a core, and MiB.
pub type Requests = (i64, i64);

/// The small pod of most cases.
pub const SMALL: Requests = (250, 512);

/// What makes a pool differ from the others.
#[derive(Clone, Debug)]
pub struct Pool {
    /// What may be bought: `on-demand`, `spot`.
    pub markets: &'static [&'static str],
    /// Requirements besides.
    pub more: Vec<Value>,
    /// Share of nodes that may go at a time.
    pub budget: &'static str,
    /// How old a node may become.
    pub expire_after: &'static str,
}

impl Default for Pool {
    fn default() -> Self {
        let (budget, expire_after) = ("10%", "Never");
        Self { markets: &["on-demand"], more: Vec::new(), budget, expire_after }
    }
}

/// A class and a pool: Linux on amd64, categories c, m and r, newer than the second generation,
/// emptied as soon as that saves anything.
#[must_use]
pub fn supply(pool: &Pool) -> Vec<Value> {
    let mut requirements = vec![
        requirement("kubernetes.io/os", "In", &["linux"]),
        requirement("kubernetes.io/arch", "In", &["amd64"]),
        requirement("karpenter.sh/capacity-type", "In", pool.markets),
        requirement("karpenter.k8s.aws/instance-category", "In", &["c", "m", "r"]),
        requirement("karpenter.k8s.aws/instance-generation", "Gt", &["2"]),
    ];
    requirements.extend(pool.more.iter().cloned());
    let pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": "default" },
        "spec": {
            "template": { "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default",
                },
                "expireAfter": pool.expire_after,
                "requirements": requirements,
            }},
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "0s",
                "budgets": [{ "nodes": pool.budget }],
            },
        },
    });
    vec![class(), pool]
}

/// A requirement of a pool.
#[must_use]
pub fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({ "key": key, "operator": operator, "values": values })
}

/// A Deployment of plain pods, with the label `app` of its name.
#[must_use]
pub fn deployment(name: &str, replicas: u32, (cpu_millis, memory_mib): Requests) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{
                    "name": "pause",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": { "requests": {
                        "cpu": format!("{cpu_millis}m"), "memory": format!("{memory_mib}Mi"),
                    }},
                }]},
            },
        },
    })
}

/// The same, with further fields of its pods' spec.
#[must_use]
pub fn with(mut deployment: Value, field: &str, value: Value) -> Value {
    deployment["spec"]["template"]["spec"][field] = value;
    deployment
}

/// A condition that the pods of an app spread over the values of a label.
#[must_use]
pub fn spread(app: &str, key: &str, skew: u32) -> Value {
    json!([{
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": app } },
    }])
}

/// A condition that no two pods of an app share a node.
#[must_use]
pub fn apart(app: &str) -> Value {
    json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": { "matchLabels": { "app": app } },
    }]}})
}

/// The class with the images of a release.
#[must_use]
pub fn class_of(release: &str) -> Value {
    let mut class = class();
    class["spec"]["amiSelectorTerms"] = json!([{ "alias": format!("al2023@{release}") }]);
    class
}

/// So many pods of an app may be away, a count or a percentage.
#[must_use]
pub fn disruption_budget(app: &str, max_unavailable: &Value) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": app, "namespace": "default" },
        "spec": { "maxUnavailable": max_unavailable, "selector": { "matchLabels": { "app": app } } },
    })
}
