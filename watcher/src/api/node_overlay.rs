//! NodeOverlay v1alpha1: corrections to the price or capacity of instance types.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::primitive::ResourceList;
use super::requirement::{self, Requirement};
use super::schema::{conditions, rules};

/// What a NodeOverlay changes, and for which instance types.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    plural = "nodeoverlays",
    shortname = "overlays",
    category = "karpenter",
    status = "NodeOverlayStatus",
    derive = "PartialEq",
    doc = "NodeOverlay corrects the price, or adds to the capacity, of the instance types it \
           matches.",
    printcolumn = r#"{"name": "Ready", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Weight", "type": "integer",
        "jsonPath": ".spec.weight", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[(
    "!has(self.price) || !has(self.priceAdjustment)",
    "set price or priceAdjustment, not both",
)])))]
pub struct NodeOverlaySpec {
    /// Instance types it applies to.
    #[schemars(schema_with = "requirement::of_node_overlay")]
    pub requirements: Vec<Requirement>,
    /// Price in dollars an hour, in place of the list price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub price: Option<String>,
    /// Change of the price: dollars an hour (`+0.5`, `-0.5`) or a share (`+10%`, down to `-100%`).
    /// No price falls below zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = concat!(
        r"^([+-]([0-9]+(\.[0-9]+)?|\.[0-9]+)|\+([0-9]+(\.[0-9]+)?|\.[0-9]+)%",
        r"|-[0-9]{1,2}(\.[0-9]+)?%|-100%)$"
    )))]
    pub price_adjustment: Option<String>,
    /// Extended resources that the instances have beside what EC2 says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-validations" = rules(&[(
        "self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",
        "cpu, memory, ephemeral-storage and pods follow from the instance type",
    )])))]
    pub capacity: ResourceList,
    /// Of several overlays that match, the one of largest weight wins; missing counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub weight: Option<i32>,
}

/// Whether a NodeOverlay is in effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeOverlayStatus {
    /// State, one entry for each aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}
