//! CapacityBuffer v1beta1: room that is kept free for pods to come.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::primitive::ResourceList;
use super::schema::{conditions, rules};

/// The strategy that keeps nodes running for the buffer.
pub const ACTIVE_CAPACITY: &str = "buffer.x-k8s.io/active-capacity";

/// How much room a CapacityBuffer keeps, and for which pods.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "autoscaling.x-k8s.io",
    version = "v1beta1",
    kind = "CapacityBuffer",
    plural = "capacitybuffers",
    shortname = "cb",
    namespaced,
    status = "CapacityBufferStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "CapacityBuffer keeps room free for pods to come, on nodes that run already.",
    printcolumn = r#"{"name": "Replicas", "type": "integer", "jsonPath": ".status.replicas"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"ReadyForProvisioning\")].status"}"#,
    printcolumn = r#"{"name": "Provisioned", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"Provisioning\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    (
        "!has(self.podTemplateRef) || !has(self.scalableRef)",
        "set podTemplateRef or scalableRef, not both",
    ),
    (
        "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
        "with podTemplateRef, set replicas or limits",
    ),
])))]
pub struct CapacityBufferSpec {
    /// How the room is kept; the default, and the only one there is, keeps nodes running for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ACTIVE_CAPACITY))]
    pub provisioning_strategy: Option<String>,
    /// PodTemplate of the pods that there must be room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalReference>,
    /// Workload whose pods there must be room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableReference>,
    /// Number of pods; with `percentage`, the larger of both counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Number of pods as a percentage of the workload's replicas, at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub percentage: Option<i32>,
    /// Most that all pods of the buffer may request together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: ResourceList,
}

/// An object in the buffer's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalReference {
    /// Name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// A workload in the buffer's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalableReference {
    /// API group, without a version.
    #[serde(default)]
    pub api_group: String,
    /// Kind: Deployment, StatefulSet or ReplicaSet.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What has become of a CapacityBuffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// PodTemplate that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalReference>,
    /// Its generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// Number of pods that there must be room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// How the room is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// State, one entry for each aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}
