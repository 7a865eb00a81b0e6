//! EC2NodeClass v1: how instances are made, where they stand and what they boot.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ec2_node_class_status::EC2NodeClassStatus;
use super::instance_options::{
    BlockDeviceMapping, ConnectionTracking, CpuOptions, InstanceStorePolicy, MetadataOptions,
    NetworkInterface, block_device_rules, network_interface_rules,
};
use super::keys::labels;
use super::kubelet::KubeletConfiguration;
use super::schema::rules;
use super::selector::{
    AmiSelectorTerm, CapacityReservationSelectorTerm, PlacementGroupSelector,
    SecurityGroupSelectorTerm, SubnetSelectorTerm, ami_term_rules, capacity_reservation_term_rules,
    node_class_family_rules, security_group_term_rules, subnet_term_rules,
};

/// How instances are made.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.k8s.aws",
    version = "v1",
    kind = "EC2NodeClass",
    plural = "ec2nodeclasses",
    shortname = "ec2nc",
    shortname = "ec2ncs",
    category = "karpenter",
    status = "EC2NodeClassStatus",
    derive = "PartialEq",
    doc = "EC2NodeClass says how EC2 instances are made: their images, network, role, disks and \
           kubelet.",
    printcolumn = r#"{"name": "Ready", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Role", "type": "string", "jsonPath": ".spec.role", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = node_class_family_rules()))]
pub struct EC2NodeClassSpec {
    /// Subnets; alternatives.
    #[schemars(
        length(max = 30),
        extend("x-kubernetes-validations" = subnet_term_rules())
    )]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// Security groups; all that match are attached.
    #[schemars(
        length(max = 30),
        extend("x-kubernetes-validations" = security_group_term_rules())
    )]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Capacity reservations that may be used; alternatives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 30),
        extend("x-kubernetes-validations" = capacity_reservation_term_rules())
    )]
    pub capacity_reservation_selector_terms: Vec<CapacityReservationSelectorTerm>,
    /// Placement group of the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules(&[(
        "has(self.name) != has(self.id)",
        "select the placement group by name or by id, exactly one of them",
    )])))]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Whether instances get a public address; missing leaves it to the subnet.
    #[serde(rename = "associatePublicIPAddress", default, skip_serializing_if = "Option::is_none")]
    pub associate_public_ip_address: Option<bool>,
    /// Address prefixes given to the first network interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ip_prefix_count: Option<i32>,
    /// Images; alternatives.
    #[schemars(
        length(min = 1, max = 30),
        extend("x-kubernetes-validations" = ami_term_rules())
    )]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// How user data is written; needed where no term is an alias, which implies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<AmiFamily>,
    /// The user's own part of user data, merged as the AMI family does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// Role of the nodes, for which an instance profile is kept; excludes instanceProfile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        extend("x-kubernetes-validations" = rules(&[("self != ''", "role may not be empty")]))
    )]
    pub role: Option<String>,
    /// Instance profile of the nodes; excludes role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules(&[
        ("self != ''", "instanceProfile may not be empty"),
    ])))]
    pub instance_profile: Option<String>,
    /// Tags of everything that is created.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-validations" = tag_rules()))]
    pub tags: BTreeMap<String, String>,
    /// Kubelet configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<KubeletConfiguration>,
    /// Volumes; missing means the AMI family's defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-validations" = block_device_rules()))]
    pub block_device_mappings: Vec<BlockDeviceMapping>,
    /// What becomes of instance store volumes; missing leaves them alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// Network interfaces; missing means one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 150), extend("x-kubernetes-validations" = network_interface_rules()))]
    pub network_interfaces: Vec<NetworkInterface>,
    /// Whether CloudWatch gets figures each minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// The instance metadata service.
    #[serde(default)]
    #[schemars(extend("default" = json!(MetadataOptions::default())))]
    pub metadata_options: MetadataOptions,
    /// Idle time-outs of tracked connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules(&[(
        "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
        "connectionTracking must set at least one time-out",
    )])))]
    pub connection_tracking: Option<ConnectionTracking>,
    /// Reserved by EC2 Fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Processor options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
}

/// How user data is written and which devices an image expects.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum AmiFamily {
    /// Amazon Linux 2.
    AL2,
    /// Amazon Linux 2023.
    AL2023,
    /// Bottlerocket.
    Bottlerocket,
    /// Windows Server 2019.
    Windows2019,
    /// Windows Server 2022.
    Windows2022,
    /// Windows Server 2025.
    Windows2025,
    /// User data is passed on as it stands.
    Custom,
}

impl AmiFamily {
    /// As the API writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AL2 => "AL2",
            Self::AL2023 => "AL2023",
            Self::Bottlerocket => "Bottlerocket",
            Self::Windows2019 => "Windows2019",
            Self::Windows2022 => "Windows2022",
            Self::Windows2025 => "Windows2025",
            Self::Custom => "Custom",
        }
    }
}

fn tag_rules() -> serde_json::Value {
    let set_by_us = [
        "eks:eks-cluster-name",
        labels::NODE_POOL,
        "karpenter.sh/nodeclaim",
        labels::EC2_NODE_CLASS,
    ];
    let reserved = format!("self.all(k, !(k in {}))", json!(set_by_us));
    rules(&[
        ("self.all(k, k != '')", "a tag's key may not be empty"),
        (
            "self.all(k, !k.startsWith('kubernetes.io/cluster'))",
            "tags kubernetes.io/cluster/* say who owns an instance and are set for you",
        ),
        (
            &reserved,
            "eks:eks-cluster-name, karpenter.sh/nodepool, karpenter.sh/nodeclaim and \
             karpenter.k8s.aws/ec2nodeclass are set for you",
        ),
    ])
}
