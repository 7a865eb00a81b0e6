//! What the ledger keeps, in the form it is kept: protobuf messages that newer builds can extend.
//!
//! Invariant: a field number is never reused; a record that cannot be decoded is an error of the
//! store, not a record to skip.

use longshore_proto::capacity::v1::{InterruptionKind, LaunchPhase};
use longshore_proto::types::v1::{CapacityType, ClusterFacts, Launch, NodeClass};
use prost::{Enumeration, Message};

use crate::cloud::{FleetOffer, Order, TemplateOffers};

/// Where a launch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Phase {
    /// Recorded; EC2 was not asked, or its answer is unknown.
    Pending = 0,
    /// EC2 has launched an instance.
    Launched = 1,
    /// The instance is to be terminated.
    Terminating = 2,
    /// The instance is gone.
    Terminated = 3,
    /// Nothing was launched and nothing will be.
    Failed = 4,
}

/// One launch, from the plan that asked for it to the end of its instance.
#[derive(Clone, PartialEq, Message)]
pub struct LaunchRecord {
    /// What was asked for. Candidates are dropped once they are of no more use.
    #[prost(message, optional, tag = "1")]
    pub launch: Option<Launch>,
    /// Cluster it is for.
    #[prost(string, tag = "2")]
    pub cluster_id: String,
    /// Where it stands.
    #[prost(enumeration = "Phase", tag = "3")]
    pub phase: i32,
    /// Number of the latest call to EC2; part of its client token. 0 before the first.
    #[prost(uint32, tag = "4")]
    pub attempts: u32,
    /// Capacity type of a call whose answer is not recorded; unspecified when there is none.
    #[prost(enumeration = "CapacityType", tag = "5")]
    pub asked: i32,
    /// Capacity types that EC2 could not give, in the order they were asked for.
    #[prost(enumeration = "CapacityType", repeated, tag = "6")]
    pub refused: Vec<i32>,
    /// Instance, once launched.
    #[prost(string, tag = "7")]
    pub instance_id: String,
    /// Request id of the call that launched it.
    #[prost(string, tag = "8")]
    pub ec2_request_id: String,
    /// Why it failed, machine-readable.
    #[prost(string, tag = "9")]
    pub reason: String,
    /// Why it failed, for people.
    #[prost(string, tag = "10")]
    pub message: String,
    /// Whether another plan may succeed where it failed.
    #[prost(bool, tag = "11")]
    pub retryable: bool,
    /// Milliseconds since 1970 after which it may not be asked for any more.
    #[prost(int64, tag = "12")]
    pub expire_ms: i64,
    /// Milliseconds since 1970 of the latest move.
    #[prost(int64, tag = "13")]
    pub changed_ms: i64,
    /// True when it was called off before its instance was known.
    #[prost(bool, tag = "14")]
    pub cancelled: bool,
    /// What EC2 announced about its instance, at most one of each kind.
    #[prost(message, repeated, tag = "15")]
    pub interruptions: Vec<InterruptionRecord>,
    /// Plan that asked for it.
    #[prost(string, tag = "16")]
    pub plan_id: String,
    /// Trace that asked for its termination; empty when none did.
    #[prost(string, tag = "17")]
    pub termination_traceparent: String,
    /// What the call whose answer is not recorded asks for: repeated as it is, since its token
    /// stands for exactly that. None once the answer is known.
    #[prost(message, optional, tag = "18")]
    pub order: Option<OrderRecord>,
    /// True once its instance is not wanted any more, whatever becomes of it.
    #[prost(bool, tag = "19")]
    pub ending: bool,
    /// True when its instance's end is concluded from absence alone: nobody saw it end.
    #[prost(bool, tag = "20")]
    pub vanished: bool,
    /// True when another autoscaler launched its instance; the launch id is made up then.
    #[prost(bool, tag = "21")]
    pub adopted: bool,
    /// The latest call, when it was one for several launches: id of its [`BatchRecord`].
    /// Kept for as long as the launch, since its instance carries it.
    #[prost(string, tag = "22")]
    pub batch_id: String,
    /// True when a process whose ledger is lost may have asked for it by itself: it is asked for in
    /// the same way again, by the same token.
    #[prost(bool, tag = "23")]
    pub alone: bool,
    /// Who sent the plan that asked for it.
    #[prost(string, tag = "24")]
    pub caller: String,
}

/// A call for several launches, byte for byte as it is made and made again.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BatchRecord {
    /// Its id: client token of the call, and value of the tag of its instances.
    #[prost(string, tag = "1")]
    pub batch_id: String,
    /// How is bought.
    #[prost(enumeration = "CapacityType", tag = "2")]
    pub capacity_type: i32,
    /// What is asked for.
    #[prost(message, optional, tag = "3")]
    pub order: Option<OrderRecord>,
    /// Launches, in order; as many instances are asked for.
    #[prost(string, repeated, tag = "4")]
    pub launch_ids: Vec<String>,
    /// Milliseconds since 1970 at which it was recorded.
    #[prost(int64, tag = "5")]
    pub made_ms: i64,
}

/// A call to EC2 as it was made; how many it asked for is said by who made it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct OrderRecord {
    /// What was acceptable, by the template it would be launched from.
    #[prost(message, repeated, tag = "1")]
    pub templates: Vec<TemplateRecord>,
    /// Tags of the instance and its volumes.
    #[prost(btree_map = "string, string", tag = "2")]
    pub tags: std::collections::BTreeMap<String, String>,
}

/// Offerings that were to be launched from one template.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TemplateRecord {
    /// Name of the launch template.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Offerings, cheapest first.
    #[prost(message, repeated, tag = "2")]
    pub offers: Vec<OfferRecord>,
    /// Capacity reservation that it launches into; empty otherwise.
    #[prost(string, tag = "3")]
    pub reservation_id: String,
}

/// One offering that was acceptable.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct OfferRecord {
    /// Type.
    #[prost(string, tag = "1")]
    pub instance_type: String,
    /// Zone name.
    #[prost(string, tag = "2")]
    pub zone: String,
    /// Subnet in that zone.
    #[prost(string, tag = "3")]
    pub subnet_id: String,
    /// Rank by price, 0 the cheapest.
    #[prost(uint32, tag = "4")]
    pub rank: u32,
}

impl From<&Order> for OrderRecord {
    fn from(order: &Order) -> Self {
        let offer = |offer: &FleetOffer| OfferRecord {
            instance_type: offer.instance_type.clone(),
            zone: offer.zone.clone(),
            subnet_id: offer.subnet_id.clone(),
            rank: offer.rank,
        };
        let template = |template: &TemplateOffers| TemplateRecord {
            name: template.template.clone(),
            offers: template.offers.iter().map(offer).collect(),
            reservation_id: template.reservation_id.clone(),
        };
        Self { templates: order.offers.iter().map(template).collect(), tags: order.tags.clone() }
    }
}

impl OrderRecord {
    /// The call, for so many instances.
    #[must_use]
    pub fn call(&self, client_token: String, capacity_type: CapacityType, count: u32) -> Order {
        let offers = self.templates.iter().map(template_offers).collect();
        Order { client_token, capacity_type, offers, count, tags: self.tags.clone() }
    }
}

fn template_offers(template: &TemplateRecord) -> TemplateOffers {
    let offer = |offer: &OfferRecord| FleetOffer {
        instance_type: offer.instance_type.clone(),
        zone: offer.zone.clone(),
        subnet_id: offer.subnet_id.clone(),
        rank: offer.rank,
    };
    let offers = template.offers.iter().map(offer).collect();
    TemplateOffers {
        template: template.name.clone(),
        reservation_id: template.reservation_id.clone(),
        offers,
    }
}

/// An announcement by EC2.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct InterruptionRecord {
    /// What was announced.
    #[prost(enumeration = "InterruptionKind", tag = "1")]
    pub kind: i32,
    /// Milliseconds since 1970 at which EC2 announced it.
    #[prost(int64, tag = "2")]
    pub time_ms: i64,
}

/// What is known of a cluster.
#[derive(Clone, PartialEq, Message)]
pub struct ClusterRecord {
    /// Facts that nodes need to join.
    #[prost(message, optional, tag = "1")]
    pub facts: Option<ClusterFacts>,
    /// Its node classes.
    #[prost(message, repeated, tag = "2")]
    pub node_classes: Vec<NodeClass>,
    /// Milliseconds since 1970 at which somebody wrote for it last, by day; 0 when an older version
    /// recorded it.
    #[prost(int64, tag = "3")]
    pub seen_ms: i64,
}

/// The newest writer of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Message)]
pub struct FenceRecord {
    /// Epoch of its session.
    #[prost(uint64, tag = "1")]
    pub session_epoch: u64,
    /// Number of its plan.
    #[prost(uint64, tag = "2")]
    pub plan_seq: u64,
}

impl LaunchRecord {
    /// A launch that has just been asked for.
    #[must_use]
    pub fn new(launch: Launch, cluster_id: &str, expire_ms: i64, now_ms: i64) -> Self {
        Self {
            launch: Some(launch),
            cluster_id: cluster_id.to_owned(),
            expire_ms,
            changed_ms: now_ms,
            ..Self::default()
        }
    }

    /// Id of the launch.
    #[must_use]
    pub fn launch_id(&self) -> &str {
        self.launch.as_ref().map_or("", |launch| &launch.launch_id)
    }

    /// Claim it is for.
    #[must_use]
    pub fn claim(&self) -> &str {
        self.launch.as_ref().map_or("", |launch| &launch.claim)
    }

    /// EC2 client token of the latest call: the same call repeated launches nothing twice.
    #[must_use]
    pub fn client_token(&self) -> String {
        if !self.batch_id.is_empty() {
            return self.batch_id.clone();
        }
        format!("{}-{}", self.launch_id(), self.attempts)
    }

    /// True when it waits for the answer to this call for several launches.
    #[must_use]
    pub fn waits_for(&self, batch_id: &str) -> bool {
        self.outcome_unknown() && self.batch_id == batch_id
    }

    /// True when a call was made whose answer is not recorded.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.phase() == Phase::Pending && self.asked() != CapacityType::Unspecified
    }

    /// The call for this launch alone whose answer is not recorded, byte for byte as it was made;
    /// none when there is none, when an older version made it, or when it was one for several
    /// launches.
    #[must_use]
    pub fn unanswered(&self) -> Option<Order> {
        let order = self.order.as_ref().filter(|_| self.outcome_unknown())?;
        Some(order.call(self.client_token(), self.asked(), 1))
    }

    /// True while it is believed to have an instance.
    #[must_use]
    pub fn living(&self) -> bool {
        matches!(self.phase(), Phase::Launched | Phase::Terminating)
    }

    /// True when nothing will change any more.
    #[must_use]
    pub fn finished(&self) -> bool {
        matches!(self.phase(), Phase::Terminated | Phase::Failed)
    }

    /// The phase as clients know it.
    #[must_use]
    pub fn wire_phase(&self) -> LaunchPhase {
        match self.phase() {
            Phase::Pending => LaunchPhase::Pending,
            Phase::Launched | Phase::Terminating => LaunchPhase::Launched,
            Phase::Terminated => LaunchPhase::Terminated,
            Phase::Failed => LaunchPhase::Failed,
        }
    }
}
