//! Instances and the templates they are launched from.
//!
//! Invariant: an order names every offering it accepts; nothing else may be bought for it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use longshore_proto::capacity::v1::InstancePhase;
use longshore_proto::types::v1::CapacityType;

use super::CloudError;

/// Buys, lists and ends instances.
#[async_trait]
pub trait Fleet: Send + Sync + 'static {
    /// Buys as many instances as the order asks for, or fewer and says why. The same client token
    /// buys once only.
    async fn launch(&self, order: &Order) -> Result<FleetOutcome, CloudError>;
    /// All instances that carry a launch id or a pool's name, terminated ones included for as
    /// long as they are listed. Whole, or an error: a page that fails fails it all. Even so, what
    /// is missing here is no evidence of anything.
    async fn instances(&self) -> Result<Vec<Instance>, CloudError>;
    /// Looks instances up by their ids, whatever their tags.
    async fn instances_by_id(&self, instance_ids: &[String]) -> Result<Found, CloudError>;
    /// Instances that carry either mark of a call.
    async fn instances_of_call(&self, marks: CallMarks<'_>) -> Result<Vec<Instance>, CloudError>;
    /// Adds tags to an instance, or gives them these values; its other tags stay.
    async fn tag(
        &self,
        instance_id: &str,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), CloudError>;
    /// Ends instances; a single one that is gone already is no error. Of several, one that cannot
    /// be ended may keep all from it: the caller splits them then. At most 500 at a time.
    async fn terminate(&self, instance_ids: &[String]) -> Result<(), CloudError>;
    /// Creates a launch template unless one of that name exists.
    async fn ensure_template(&self, template: &Template) -> Result<(), CloudError>;
    /// Launch templates made by Longshore in this region.
    async fn templates(&self) -> Result<Vec<TemplateRef>, CloudError>;
    /// Deletes a launch template; one that is gone already is no error.
    async fn delete_template(&self, name: &str) -> Result<(), CloudError>;
}

/// What tells the instances of a call from others: their tag, or the token of the call.
#[derive(Clone, Copy, Debug)]
pub struct CallMarks<'a> {
    /// Key of the tag.
    pub key: &'a str,
    /// Its value.
    pub value: &'a str,
    /// As sent with the call.
    pub client_token: &'a str,
}

/// Instances to buy, one like the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Makes repeating harmless; at most 64 characters.
    pub client_token: String,
    /// How it is bought.
    pub capacity_type: CapacityType,
    /// What is acceptable, by the template it would be launched from.
    pub offers: Vec<TemplateOffers>,
    /// How many; at least 1.
    pub count: u32,
    /// Tags of the instances and their volumes.
    pub tags: BTreeMap<String, String>,
}

/// Offerings to be launched from one template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateOffers {
    /// Name of the launch template.
    pub template: String,
    /// Capacity reservation that the template launches into; empty otherwise.
    pub reservation_id: String,
    /// Offerings, cheapest first.
    pub offers: Vec<FleetOffer>,
}

/// One acceptable offering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetOffer {
    /// Type.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// Subnet in that zone.
    pub subnet_id: String,
    /// Rank by price, 0 the cheapest.
    pub rank: u32,
}

/// What came of an order. Both parts may be there: a fleet reports the pools it found empty even
/// when it launched from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetOutcome {
    /// What was bought: none when nothing was to be had, and at most what was asked for.
    pub bought: Vec<FleetInstance>,
    /// What was not to be had, and why.
    pub shortages: Vec<Shortage>,
    /// Id of the request.
    pub request_id: String,
}

/// An instance just bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetInstance {
    /// Its id.
    pub instance_id: String,
    /// Type.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
}

/// An offering that was not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Type; empty when the error is about all of them.
    pub instance_type: String,
    /// Zone name; empty when the error is about all of them.
    pub zone: String,
    /// Subnet; empty when unknown.
    pub subnet_id: String,
    /// Why.
    pub error: CloudError,
}

/// An instance as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Id.
    pub instance_id: String,
    /// State.
    pub phase: InstancePhase,
    /// Type.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// Zone id, empty when the cloud does not say.
    pub zone_id: String,
    /// How it was bought.
    pub capacity_type: CapacityType,
    /// Capacity reservation it was launched into; empty otherwise.
    pub reservation_id: String,
    /// Name inside the VPC; empty before it has one.
    pub private_dns_name: String,
    /// Image.
    pub image_id: String,
    /// Subnet of its first network interface; empty while unknown.
    pub subnet_id: String,
    /// Security groups of it; empty while unknown.
    pub security_group_ids: Vec<String>,
    /// Milliseconds since 1970.
    pub launch_ms: i64,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

impl Order {
    /// Capacity reservation that an offering of it was launched into; empty otherwise.
    #[must_use]
    pub fn reservation_of(&self, instance_type: &str, zone: &str) -> &str {
        let holds = |template: &&TemplateOffers| {
            template.offers.iter().any(|o| o.instance_type == instance_type && o.zone == zone)
        };
        self.offers.iter().find(holds).map_or("", |template| &template.reservation_id)
    }
}

impl Instance {
    /// One of which nothing is known but its id.
    #[must_use]
    pub fn unseen(instance_id: &str) -> Self {
        Self {
            instance_id: instance_id.to_owned(),
            phase: InstancePhase::Unspecified,
            instance_type: String::new(),
            zone: String::new(),
            zone_id: String::new(),
            capacity_type: CapacityType::Unspecified,
            reservation_id: String::new(),
            private_dns_name: String::new(),
            image_id: String::new(),
            subnet_id: String::new(),
            security_group_ids: Vec::new(),
            launch_ms: 0,
            tags: BTreeMap::new(),
        }
    }

    /// Value of a tag; empty when it has none.
    #[must_use]
    pub fn tag(&self, key: &str) -> &str {
        self.tags.get(key).map_or("", String::as_str)
    }

    /// True while it costs money or may come back.
    #[must_use]
    pub fn alive(&self) -> bool {
        matches!(
            self.phase,
            InstancePhase::Pending | InstancePhase::Running | InstancePhase::Stopped
        )
    }
}

/// What a look-up by id found. An id that is in neither part is one of which nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Instances that are there, terminated ones included.
    pub instances: Vec<Instance>,
    /// Ids that the cloud says it does not know.
    pub unknown: Vec<String>,
}

/// A launch template to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Name; carries a hash of the content.
    pub name: String,
    /// Image.
    pub image_id: String,
    /// Instance profile, by name.
    pub instance_profile: String,
    /// Security groups.
    pub security_group_ids: Vec<String>,
    /// Whether a public address is given; none leaves it to the subnet.
    pub public_address: Option<bool>,
    /// User data in base64; empty means none.
    pub user_data: String,
    /// Volumes; empty means the image's own.
    pub disks: Vec<Disk>,
    /// Metadata service.
    pub metadata: InstanceMetadata,
    /// Detailed monitoring.
    pub detailed_monitoring: bool,
    /// Which capacity reservations are used.
    pub reservations: ReservationUse,
    /// Tags of the template and of the network interfaces made from it.
    pub tags: BTreeMap<String, String>,
}

/// Which capacity reservations instances of a template use.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum ReservationUse {
    /// Whichever open ones they match: EC2's own way.
    #[default]
    Open,
    /// None, so that what is in one is there for who asks for it.
    Never,
    /// This one, or they are not launched.
    Only(String),
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Disk {
    /// Device name.
    pub device_name: String,
    /// Size in GiB; none means the snapshot's.
    pub size_gib: Option<i32>,
    /// Kind of volume, for example gp3.
    pub volume_type: String,
    /// Operations per second.
    pub iops: Option<i32>,
    /// MiB per second.
    pub throughput_mib_per_second: Option<i32>,
    /// Encryption; none means the account's default.
    pub encrypted: Option<bool>,
    /// KMS key.
    pub kms_key_id: Option<String>,
    /// Snapshot.
    pub snapshot_id: Option<String>,
    /// Whether it dies with the instance.
    pub delete_on_termination: bool,
}

/// Settings of the instance metadata service, in EC2's words.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InstanceMetadata {
    /// `enabled` or `disabled`.
    pub endpoint: String,
    /// `enabled` or `disabled`.
    pub ipv6: String,
    /// Hops a response may travel.
    pub hop_limit: i32,
    /// `required` or `optional`.
    pub tokens: String,
}

/// A launch template that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateRef {
    /// Name.
    pub name: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
}
