//! Options of an instance: disks, metadata service, network interfaces, connections, processor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::primitive::Quantity;
use super::schema::rules;

/// One volume of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// Device name, such as /dev/xvda.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules(&[
        (
            "has(self.snapshotID) || has(self.volumeSize)",
            "a volume needs a volumeSize or a snapshotID",
        ),
        (
            "!has(self.volumeInitializationRate) \
             || (has(self.snapshotID) && self.snapshotID != '')",
            "volumeInitializationRate needs a snapshotID",
        ),
    ])))]
    pub ebs: Option<BlockDevice>,
    /// Whether it is the one that backs ephemeral storage; at most one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<bool>,
}

/// An EBS volume. What is missing keeps EC2's own default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDevice {
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
    /// Rate in MiB/s at which the snapshot is read in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub volume_initialization_rate: Option<i32>,
    /// Size in Gi, G, Ti or T.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", regex(pattern = concat!(
        r"^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi",
        r"|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G",
        r"|([1-9]|[1-4][0-9]|5[0-8])Ti|([1-9]|[1-5][0-9]|6[0-4])T)$"
    )))]
    pub volume_size: Option<Quantity>,
    /// Kind of volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,
}

/// Kind of EBS volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VolumeType {
    /// Magnetic.
    Standard,
    /// Provisioned operations.
    Io1,
    /// Provisioned operations, durable.
    Io2,
    /// General purpose.
    Gp2,
    /// General purpose, independent of size.
    Gp3,
    /// Cold disk.
    Sc1,
    /// Throughput disk.
    St1,
}

impl VolumeType {
    /// As EC2 writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Io1 => "io1",
            Self::Io2 => "io2",
            Self::Gp2 => "gp2",
            Self::Gp3 => "gp3",
            Self::Sc1 => "sc1",
            Self::St1 => "st1",
        }
    }
}

/// What becomes of instance store volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstanceStorePolicy {
    /// Striped into one, for ephemeral storage.
    RAID0,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// On.
    Enabled,
    /// Off.
    Disabled,
}

impl Switch {
    /// As EC2 writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
        }
    }

    const fn enabled() -> Self {
        Self::Enabled
    }

    const fn disabled() -> Self {
        Self::Disabled
    }
}

/// The instance metadata service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// Whether it answers.
    #[serde(default = "Switch::enabled")]
    pub http_endpoint: Switch,
    /// Whether it answers over IPv6.
    #[serde(rename = "httpProtocolIPv6", default = "Switch::disabled")]
    pub http_protocol_ipv6: Switch,
    /// Network hops an answer may travel; 1 keeps it from pods.
    #[serde(default = "one_hop")]
    #[schemars(range(min = 1, max = 64))]
    pub http_put_response_hop_limit: i64,
    /// Whether requests need a token.
    #[serde(default)]
    pub http_tokens: HttpTokens,
}

impl Default for MetadataOptions {
    fn default() -> Self {
        Self {
            http_endpoint: Switch::Enabled,
            http_protocol_ipv6: Switch::Disabled,
            http_put_response_hop_limit: one_hop(),
            http_tokens: HttpTokens::Required,
        }
    }
}

const fn one_hop() -> i64 {
    1
}

/// Whether requests to the metadata service need a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpTokens {
    /// They do.
    #[default]
    Required,
    /// They do not.
    Optional,
}

impl HttpTokens {
    /// As EC2 writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
        }
    }
}

/// One network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// Network card it is attached to.
    #[schemars(range(min = 0))]
    pub network_card_index: i32,
    /// Position on the card.
    #[schemars(range(min = 0))]
    pub device_index: i32,
    /// What it carries.
    pub interface_type: InterfaceType,
}

/// What a network interface carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceType {
    /// IP.
    Interface,
    /// Elastic fabric only.
    EfaOnly,
}

/// Idle time-outs of tracked connections, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTracking {
    /// Established TCP connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 432_000))]
    pub tcp_established_timeout: Option<i32>,
    /// UDP flows with more than one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 180))]
    pub udp_stream_timeout: Option<i32>,
    /// Other UDP flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 60))]
    pub udp_timeout: Option<i32>,
}

/// Processor options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// Whether instances may run virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested_virtualization: Option<Switch>,
}

pub(super) fn block_device_rules() -> Value {
    rules(&[(
        "self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1",
        "at most one volume may be the root volume",
    )])
}

pub(super) fn network_interface_rules() -> Value {
    rules(&[
        (
            "self.size() == 0 || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0 \
             && x.interfaceType == 'interface')",
            "an interface of type interface is needed at card 0, device 0",
        ),
        (
            "self.all(x, self.exists_one(y, y.networkCardIndex == x.networkCardIndex \
             && y.deviceIndex == x.deviceIndex))",
            "two interfaces may not have the same card and device",
        ),
        (
            "self.all(x, x.interfaceType != 'efa-only' || self.exists_one(y, \
             y.networkCardIndex == x.networkCardIndex && y.interfaceType == 'efa-only'))",
            "a card takes at most one interface of type efa-only",
        ),
    ])
}
