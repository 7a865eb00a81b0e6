//! What the actuator wants of a cloud, in its own words.
//!
//! Invariant: no AWS type crosses this line; simulations implement it without a network.

mod access;
mod error;
mod fleet;
mod guarded;
mod market;
mod measured;
mod messages;
mod network;

pub use access::{Access, Caller, NewProfile, Profile};
pub use error::{Class, CloudError};
pub use fleet::{
    CallMarks, Disk, Fleet, FleetInstance, FleetOffer, FleetOutcome, Found, Instance,
    InstanceMetadata, Order, ReservationUse, Shortage, Template, TemplateOffers, TemplateRef,
};
pub use guarded::{Guarded, Permit};
pub use market::{Listing, Market, SpotPrice, TypeInZone};
pub use measured::{Calls, Measured};
pub use messages::{Messages, QueueMessage};
pub use network::{CapacityReservation, EksCluster, Image, Network, SecurityGroup, Subnet};

/// Tag that carries the launch id: what makes an instance ours.
pub const TAG_LAUNCH: &str = "longshore.dev/launch-id";
/// Tag that carries the client token of a call for several launches. Which of them an instance is
/// for is tagged later, once it is decided.
pub const TAG_BATCH: &str = "longshore.dev/batch-id";
/// Tag that carries the cluster id.
pub const TAG_CLUSTER: &str = "longshore.dev/cluster-id";
/// Tag that carries the NodeClaim.
pub const TAG_CLAIM: &str = "karpenter.sh/nodeclaim";
/// Tag that people see first.
pub const TAG_NAME: &str = "Name";
/// Tag that carries the NodePool.
pub const TAG_POOL: &str = "karpenter.sh/nodepool";
/// Tag that carries the node class.
pub const TAG_CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
/// Tag that carries the cluster's name.
pub const TAG_CLUSTER_NAME: &str = "eks:eks-cluster-name";

/// Everything a region's cloud does.
pub trait Cloud: Fleet + Network + Access + Market + Messages {}

impl<T: Fleet + Network + Access + Market + Messages> Cloud for T {}
