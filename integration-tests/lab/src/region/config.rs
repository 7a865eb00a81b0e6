//! What a region is before the first call: account, network, images, roles, types, timing.
//!
//! Invariant: plain data. Everything that later changes lives in the world made from it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::catalogue::{TypeFacts, ZoneConfig};

/// Tags as EC2 keeps them.
pub type Tags = BTreeMap<String, String>;

/// Everything a region starts from. `RegionConfig::simple` gives one that works; fields are public
/// so that a test says only how it differs.
#[derive(Clone, Debug)]
pub struct RegionConfig {
    /// Region name, for example `us-east-1`.
    pub name: String,
    /// Twelve-digit account id.
    pub account_id: String,
    /// Source of every id, delay, price and interruption: one seed is one run.
    pub seed: u64,
    /// Delays.
    pub timing: Timing,
    /// Movements of the spot market.
    pub weather: Weather,
    /// Most vCPUs that may run at once.
    pub quotas: Quotas,
    /// Zones of the region.
    pub zones: Vec<ZoneConfig>,
    /// Id of the only VPC.
    pub vpc_id: String,
    /// Subnets of the VPC.
    pub subnets: Vec<SubnetConfig>,
    /// Security groups of the VPC.
    pub security_groups: Vec<SecurityGroupConfig>,
    /// Machine images.
    pub images: Vec<ImageConfig>,
    /// SSM parameters by name.
    pub parameters: BTreeMap<String, String>,
    /// IAM roles.
    pub roles: Vec<RoleConfig>,
    /// IAM instance profiles.
    pub instance_profiles: Vec<ProfileConfig>,
    /// Who may call, by access key id.
    pub principals: Vec<PrincipalConfig>,
    /// SQS queues.
    pub queues: Vec<QueueConfig>,
    /// EKS clusters.
    pub clusters: Vec<ClusterConfig>,
    /// Instance types sold here, with their prices.
    pub instance_types: Vec<TypeFacts>,
    /// On-demand capacity reservations.
    pub reservations: Vec<ReservationConfig>,
    /// Placement groups.
    pub placement_groups: Vec<PlacementGroupConfig>,
    /// Tokens per API (`ec2:CreateFleet`); an API without an entry is not limited.
    pub rate_limits: BTreeMap<String, RateLimit>,
}

/// Delays of the region, all in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Shortest time from launch to `running`.
    pub boot_min_ms: u32,
    /// Longest time from launch to `running`; the seed picks within the two.
    pub boot_max_ms: u32,
    /// From `shutting-down` to `terminated`.
    pub shutdown_ms: u32,
    /// How long a new instance stays invisible to describe calls.
    pub visible_after_ms: u32,
    /// How long EC2 does not know of a new instance profile.
    pub profile_visible_after_ms: u32,
    /// From a spot interruption warning to the end of the instance.
    pub spot_notice_ms: u32,
    /// How long a terminated instance is still listed.
    pub listed_after_end_ms: u32,
}

/// Movements of the spot market; the default is calm: listed prices, no interruptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// Time between two changes of a spot price; `None` holds prices still.
    pub price_step_ms: Option<u32>,
    /// Most that a spot price moves away from the listed one, in percent, below 100.
    pub price_swing_percent: u32,
    /// Mean life of a spot instance until it is interrupted; lives are spread evenly between zero
    /// and twice the mean. `None` interrupts only on request.
    pub spot_mean_life_ms: Option<u32>,
}

/// vCPU quotas per market; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Running on-demand vCPUs.
    pub on_demand_vcpus: Option<u32>,
    /// Running spot vCPUs.
    pub spot_vcpus: Option<u32>,
}

/// A request token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Tokens that return in a second.
    pub refill_per_second: u32,
    /// Most tokens the bucket holds.
    pub burst: u32,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubnetConfig {
    /// Id, `subnet-` and 17 hexadecimal digits or any text a test likes.
    pub id: String,
    /// Zone name.
    pub zone: String,
    /// IPv4 block; instances get addresses out of it.
    pub cidr: String,
    /// Addresses free at the start.
    pub free_addresses: u32,
    /// Tags.
    pub tags: Tags,
}

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityGroupConfig {
    /// Group id.
    pub id: String,
    /// Group name.
    pub name: String,
    /// Tags.
    pub tags: Tags,
}

/// A machine image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageConfig {
    /// Image id.
    pub id: String,
    /// Image name.
    pub name: String,
    /// Account that owns it.
    pub owner_id: String,
    /// Owner alias (`amazon`), when it has one.
    pub owner_alias: Option<String>,
    /// EC2 architecture: `x86_64` or `arm64`.
    pub architecture: String,
    /// Creation time, RFC 3339 with milliseconds.
    pub creation_date: String,
    /// Deprecation time, when it has one.
    pub deprecation_time: Option<String>,
    /// Tags.
    pub tags: Tags,
}

/// An IAM role with what it may do.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleConfig {
    /// Role name.
    pub name: String,
    /// IAM path, `/` for most.
    pub path: String,
    /// Policy documents attached to it, in IAM's JSON.
    pub policies: Vec<Value>,
}

/// An instance profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileConfig {
    /// Profile name.
    pub name: String,
    /// IAM path.
    pub path: String,
    /// Role inside, by name.
    pub role: Option<String>,
    /// Tags.
    pub tags: Tags,
}

/// A caller: an access key id that acts as a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalConfig {
    /// Access key id found in the signature.
    pub access_key_id: String,
    /// Role it acts as, by name.
    pub role: String,
    /// Session name, the last part of the caller's ARN.
    pub session: String,
}

/// An SQS queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Queue name.
    pub name: String,
    /// How long a message is kept, in seconds.
    pub retention_s: u32,
    /// Default time a received message stays hidden, in seconds.
    pub visibility_s: u32,
    /// Whether EventBridge rules send EC2 and Health events here.
    pub receives_events: bool,
}

/// An EKS cluster as DescribeCluster shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Cluster name.
    pub name: String,
    /// API server URL.
    pub endpoint: String,
    /// Certificate authority, base64 of PEM.
    pub certificate_authority: String,
    /// Kubernetes minor version, for example `1.34`.
    pub version: String,
    /// IPv4 range of services.
    pub service_cidr: String,
    /// ARNs of the roles that access entries let in as Linux nodes.
    pub node_roles: Vec<String>,
}

/// An on-demand capacity reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationConfig {
    /// Id, `cr-…`.
    pub id: String,
    /// Instance type reserved.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// Instances reserved.
    pub total: u32,
    /// Tags.
    pub tags: Tags,
}

/// A placement group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementGroupConfig {
    /// Id, `pg-…`.
    pub id: String,
    /// Name.
    pub name: String,
    /// `cluster`, `spread` or `partition`.
    pub strategy: String,
    /// Partitions of a partition group.
    pub partitions: Option<u32>,
}

impl Default for Timing {
    /// Fast enough for tests: boots in 20 to 60 ms, everything else at once or nearly.
    fn default() -> Timing {
        Timing {
            boot_min_ms: 20,
            boot_max_ms: 60,
            shutdown_ms: 20,
            visible_after_ms: 0,
            profile_visible_after_ms: 0,
            spot_notice_ms: 120_000,
            listed_after_end_ms: 3_600_000,
        }
    }
}

impl Timing {
    /// Delays as met in life: 18 to 35 s to `running`, half a second before a describe sees it.
    pub fn realistic() -> Timing {
        Timing {
            boot_min_ms: 18_000,
            boot_max_ms: 35_000,
            shutdown_ms: 30_000,
            visible_after_ms: 500,
            profile_visible_after_ms: 8_000,
            ..Timing::default()
        }
    }
}
