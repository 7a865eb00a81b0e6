//! The simulated region: AWS wire protocols over a model of capacity, prices and faults.
//!
//! A request goes one way through the modules: `server` reads it, `wire` recognises it, `dispatch`
//! finds its handler, a service (`ec2`, `iam`, `sts`, `sqs`, `ssm`, `pricing`, `eks`) answers it
//! from the `world`, and `wire` writes the reply. `handle` is what a test holds of all this.
//!
//! Invariant: the world is changed by calls, by time and by the handle, in one place, under one
//! lock; one seed and one sequence of calls give one run.

mod calls;
mod catalogue;
mod clock;
mod config;
mod dispatch;
mod ec2;
mod eks;
mod faults;
mod foreign;
mod handle;
pub mod iam;
mod images;
mod offer;
mod orders;
mod pricing;
mod server;
mod simple;
mod sqs;
mod ssm;
mod sts;
mod survey;
mod wire;
mod world;

pub use calls::CallRecord;
pub use catalogue::{TypeFacts, ZoneConfig};
pub use config::{
    ClusterConfig, ImageConfig, PlacementGroupConfig, PrincipalConfig, ProfileConfig, QueueConfig,
    Quotas, RateLimit, RegionConfig, ReservationConfig, RoleConfig, SecurityGroupConfig,
    SubnetConfig, Tags, Timing, Weather,
};
pub use faults::{Fault, LaunchFault};
pub use foreign::Foreign;
pub use handle::{Region, RegionError, RegionHandle};
pub use iam::PolicyError;
pub use images::{KUBERNETES_VERSIONS, RELEASES, Release, nvidia as nvidia_images};
pub use offer::Offer;
pub use orders::{Happening, OrderError, SCHEDULED_CHANGES};
pub use simple::{
    ACCOUNT, CLUSTER, CONTROLLER_KEY, CONTROLLER_ROLE, NODE_KEY, NODE_PROFILE, NODE_ROLE, SPOT_ROLE,
};
pub use survey::{CallCount, Calls, InstanceLine, QueueLine, Since, Survey};
pub use wire::AwsError;
pub use world::{Health, InstanceRecord};
