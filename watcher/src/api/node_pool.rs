//! NodePool v1: a kind of node that may be launched, its limits, and when it may be disrupted.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::primitive::{DurationOrNever, PlainDuration, ResourceList};
use super::reference::NodeClassReference;
use super::requirement::template_labels;
use super::requirement::{self, Requirement};
use super::schema::{conditions, rules};
use super::taint::Taint;

/// What a NodePool asks for.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    category = "karpenter",
    status = "NodePoolStatus",
    derive = "PartialEq",
    doc = "NodePool describes a kind of node that may be launched, its limits, and when it may be \
           disrupted.",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    printcolumn = r#"{"name": "NodeClass", "type": "string",
        "jsonPath": ".spec.template.spec.nodeClassRef.name"}"#,
    printcolumn = r#"{"name": "Nodes", "type": "string", "jsonPath": ".status.nodes"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Weight", "type": "integer",
        "jsonPath": ".spec.weight", "priority": 1}"#,
    printcolumn = r#"{"name": "CPU", "type": "string",
        "jsonPath": ".status.resources.cpu", "priority": 1}"#,
    printcolumn = r#"{"name": "Memory", "type": "string",
        "jsonPath": ".status.resources.memory", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    (
        "has(self.replicas) == has(oldSelf.replicas)",
        "replicas may be neither added nor removed; make a new NodePool instead",
    ),
    (
        "!has(self.replicas) || !has(self.limits) || size(self.limits) == 0 \
         || (size(self.limits) == 1 && 'nodes' in self.limits)",
        "with replicas, only limits.nodes may be set",
    ),
    ("!has(self.replicas) || !has(self.weight)", "weight has no meaning with replicas"),
])))]
pub struct NodePoolSpec {
    /// What its nodes look like.
    pub template: NodePoolTemplate,
    /// When its nodes may be disrupted.
    #[serde(default)]
    #[schemars(extend("default" = json!({ "consolidateAfter": "0s" })))]
    pub disruption: Disruption,
    /// Upper limits on the sum of its nodes' capacity; the key `nodes` bounds their number.
    /// A resource without an entry is not limited.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: ResourceList,
    /// Pools of larger weight are tried first; missing counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// Keeps this many nodes whatever the pods; missing means as many as the pods need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// What the nodes of a pool look like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolTemplate {
    /// Labels and annotations of the nodes.
    #[serde(default, skip_serializing_if = "TemplateMetadata::is_empty")]
    pub metadata: TemplateMetadata,
    /// Everything else.
    pub spec: NodePoolTemplateSpec,
}

/// Labels and annotations of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "template_labels")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "granular"))]
    pub annotations: BTreeMap<String, String>,
}

impl TemplateMetadata {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty()
    }
}

/// Taints, requirements, node class and lifetime of the nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolTemplateSpec {
    /// Taints, for as long as the node lives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Vec<Taint>,
    /// Taints that something else removes after start-up; pods are planned as if they were gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Vec<Taint>,
    /// What instances must satisfy, together with what their pods ask for.
    #[schemars(schema_with = "requirement::of_node_pool")]
    pub requirements: Vec<Requirement>,
    /// How instances are made.
    #[schemars(extend("x-kubernetes-validations" = rules(&[
        ("self.group == oldSelf.group", "the group of a node class reference is immutable"),
        ("self.kind == oldSelf.kind", "the kind of a node class reference is immutable"),
    ])))]
    pub node_class_ref: NodeClassReference,
    /// Longest drain, after which pods are deleted whatever their budgets; missing means as long
    /// as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<PlainDuration>,
    /// Age at which a node is drained, or Never.
    #[serde(default = "DurationOrNever::thirty_days")]
    pub expire_after: DurationOrNever,
}

/// When the nodes of a pool may be disrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Quiet time after the last pod came or went before a node is considered, or Never.
    #[serde(default = "no_wait")]
    pub consolidate_after: DurationOrNever,
    /// Which nodes may go to save money.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many nodes may be disrupted at once; the strictest of the active ones counts.
    #[serde(default = "ten_percent")]
    #[schemars(
        length(max = 50),
        extend(
            "default" = json!([{ "nodes": "10%" }]),
            "x-kubernetes-list-type" = "atomic",
            "x-kubernetes-validations" = rules(&[(
                "self.all(x, has(x.schedule) == has(x.duration))",
                "schedule and duration are set together or not at all",
            )]),
        )
    )]
    pub budgets: Vec<Budget>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidate_after: no_wait(),
            consolidation_policy: ConsolidationPolicy::default(),
            budgets: ten_percent(),
        }
    }
}

fn no_wait() -> DurationOrNever {
    std::time::Duration::ZERO.into()
}

fn ten_percent() -> Vec<Budget> {
    vec![Budget { nodes: Budget::default_nodes(), reasons: None, schedule: None, duration: None }]
}

/// Which nodes may go to save money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConsolidationPolicy {
    /// Those without pods.
    WhenEmpty,
    /// Also those whose pods fit elsewhere, or on something cheaper.
    #[default]
    WhenEmptyOrUnderutilized,
    /// As above, where the saving outweighs the disruption.
    Balanced,
}

/// How many nodes of a pool may be disrupted at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// A number (`5`) or a share (`10%`) of the pool's nodes; shares round up.
    #[serde(default = "Budget::default_nodes")]
    #[schemars(regex(pattern = r"^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub nodes: String,
    /// Reasons it covers; missing covers all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// When it becomes active: five fields of cron, or @hourly and its like, in UTC; missing means
    /// always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = concat!(
        r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)",
        r"|\S+\s+\S+\s+\S+\s+\S+\s+\S+)$"
    )))]
    pub schedule: Option<String>,
    /// How long it stays active: hours and minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+h|[0-9]+m|[0-9]+h[0-9]+m)(0s)?$"))]
    pub duration: Option<PlainDuration>,
}

impl Budget {
    fn default_nodes() -> String {
        "10%".to_owned()
    }
}

/// Why nodes are disrupted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum DisruptionReason {
    /// Its pods fit elsewhere, or on something cheaper.
    Underutilized,
    /// It has no pods.
    Empty,
    /// It is no longer what its pool or class asks for.
    Drifted,
}

impl DisruptionReason {
    /// As the API writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Underutilized => "Underutilized",
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
        }
    }
}

/// What a NodePool amounts to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// Sum of the capacity of its nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: ResourceList,
    /// Number of its nodes.
    #[serde(default)]
    pub nodes: i64,
    /// Generation of the node class that was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// State, one entry for each aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}
