//! Provisioner v1alpha5: the first API's NodePool. Still read, so that clusters that hold it keep
//! working; new ones use NodePool.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::aws_node_template::AWSNodeTemplateSpec;
use super::kubelet::{self, KubeletConfiguration};
use super::primitive::ResourceList;
use super::requirement::Requirement;
use super::schema::{date_time, lenient_conditions, rules};
use super::taint::Taint;

/// What a Provisioner asks for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha5",
    kind = "Provisioner",
    plural = "provisioners",
    category = "karpenter",
    status = "ProvisionerStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Provisioner describes a kind of node that may be launched, in the first API. Use \
           NodePool.",
    printcolumn = r#"{"name": "Template", "type": "string", "jsonPath": ".spec.providerRef.name"}"#,
    printcolumn = r#"{"name": "Weight", "type": "string",
        "jsonPath": ".spec.weight", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    (
        "!has(self.provider) || !has(self.providerRef)",
        "set provider or providerRef, not both",
    ),
    (
        "!has(self.ttlSecondsAfterEmpty) || !has(self.consolidation) \
         || !has(self.consolidation.enabled) || !self.consolidation.enabled",
        "ttlSecondsAfterEmpty and consolidation exclude each other",
    ),
])))]
pub struct ProvisionerSpec {
    /// Annotations of the nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of the nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints, for as long as the node lives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Taints that something else removes after start-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub startup_taints: Vec<Taint>,
    /// What instances must satisfy. Without any on the type, the first API takes linux, amd64,
    /// on-demand, and categories c, m and r of generations above 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "requirements")]
    pub requirements: Vec<Requirement>,
    /// Kubelet configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "kubelet::legacy")]
    pub kubelet_configuration: Option<KubeletConfiguration>,
    /// How instances are made, in-line; excludes providerRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub provider: Option<Value>,
    /// How instances are made; excludes provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<ProviderReference>,
    /// Seconds after which an empty node goes; missing means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_empty: Option<i64>,
    /// Age in seconds at which a node is drained; missing means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_until_expired: Option<i64>,
    /// Upper limits on what its nodes have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Provisioners of larger weight are tried first; missing counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// Whether nodes go or are replaced to save money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation: Option<Consolidation>,
}

impl ProvisionerSpec {
    /// The in-line provider, read as the template it stands for; none without one.
    ///
    /// # Errors
    /// When a field of it has the wrong type; the API server does not look inside.
    pub fn inline_template(&self) -> Option<Result<AWSNodeTemplateSpec, serde_json::Error>> {
        self.provider.as_ref().map(AWSNodeTemplateSpec::deserialize)
    }
}

/// Names an AWSNodeTemplate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderReference {
    /// API version; ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind; missing means AWSNodeTemplate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name.
    pub name: String,
}

/// Upper limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Resource name to the most of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: ResourceList,
}

/// Whether nodes go or are replaced to save money.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consolidation {
    /// They do; missing means they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// What a Provisioner amounts to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionerStatus {
    /// Sum of the capacity of its nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: ResourceList,
    /// When it last launched a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "date_time")]
    pub last_scale_time: Option<Time>,
    /// State, one entry for each aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "lenient_conditions")]
    pub conditions: Vec<Condition>,
}

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// As in the first API: six operators, no `minValues`.
fn requirements(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = Vec::<Requirement>::json_schema(generator);
    if let Some(Value::Object(properties)) = schema.pointer_mut("/items/properties") {
        properties.remove("minValues");
        properties["operator"] = serde_json::json!({
            "type": "string",
            "description": "How the label's value relates to `values`.",
            "enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"],
        });
    }
    schema
}
