//! AWSNodeTemplate v1alpha1: the first API's way to say how instances are made. Still read, so that
//! clusters that hold it keep working; new ones use EC2NodeClass.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ec2_node_class_status::{Ami, SecurityGroup, Subnet};
use super::instance_options::{HttpTokens, Switch, VolumeType};
use super::primitive::Quantity;

/// How instances are made. The same fields, with `apiVersion` and `kind`, are the in-line
/// `provider` of a Provisioner.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.k8s.aws",
    version = "v1alpha1",
    kind = "AWSNodeTemplate",
    plural = "awsnodetemplates",
    category = "karpenter",
    status = "AWSNodeTemplateStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "AWSNodeTemplate says how EC2 instances are made, in the first API. Use EC2NodeClass."
)]
#[serde(rename_all = "camelCase")]
pub struct AWSNodeTemplateSpec {
    /// Only in-line in a Provisioner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Only in-line in a Provisioner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How user data is written: AL2, AL2023 (when missing), Bottlerocket, Ubuntu, Windows2019,
    /// Windows2022 or Custom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<String>,
    /// Images by tags; the keys aws-ids, aws::ids, aws::name and aws::owners select by these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ami_selector: BTreeMap<String, String>,
    /// Subnets by tags, with wildcards and comma lists; aws-ids and aws::ids select by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subnet_selector: BTreeMap<String, String>,
    /// Security groups by tags, as subnetSelector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub security_group_selector: BTreeMap<String, String>,
    /// Instance profile of the nodes; missing means the cluster's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// The user's own launch template, by name; excludes what it would say itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_template: Option<String>,
    /// The user's own part of user data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// Tags of everything that is created.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Volumes; missing means the AMI family's defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block_device_mappings: Vec<LegacyBlockDeviceMapping>,
    /// The instance metadata service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_options: Option<LegacyMetadataOptions>,
    /// Whether CloudWatch gets figures each minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// Reserved by EC2 Fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// One volume of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyBlockDeviceMapping {
    /// Device name, such as /dev/xvda.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<LegacyBlockDevice>,
}

/// An EBS volume. What is missing keeps EC2's own default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyBlockDevice {
    /// Whether it dies with the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether it is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Provisioned operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// KMS key.
    #[serde(rename = "kmsKeyID", default, skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// Snapshot it starts from.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Provisioned throughput in MiB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// Size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<Quantity>,
    /// Kind of volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,
}

/// The instance metadata service. Missing as a whole means tokens and two hops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyMetadataOptions {
    /// Whether it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_endpoint: Option<Switch>,
    /// Whether it answers over IPv6.
    #[serde(rename = "httpProtocolIPv6", default, skip_serializing_if = "Option::is_none")]
    pub http_protocol_ipv6: Option<Switch>,
    /// Network hops an answer may travel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_put_response_hop_limit: Option<i64>,
    /// Whether requests need a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_tokens: Option<HttpTokens>,
}

/// What an AWSNodeTemplate was resolved to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSNodeTemplateStatus {
    /// Subnets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Subnet>,
    /// Security groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroup>,
    /// Images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amis: Vec<Ami>,
}
