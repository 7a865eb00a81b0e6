//! Facts about EC2 without EC2: instance types, offerings, prices and the formulas that turn a
//! type into Kubernetes labels, capacity and overhead.
//!
//! Invariant: pure. No AWS SDK, no network, no files, no clock; the facts are compiled in, carry
//! the dates of their sources, and a price that no source lists says that it is estimated.
//!
//! ```
//! use longshore_ec2_data::{Dataset, NodeSettings, allocatable};
//!
//! let facts = Dataset::embedded()?;
//! let region = facts.region("eu-west-1")?;
//! let m5_large = facts.instance_type("m5.large").ok_or("no m5.large")?;
//! let price = region.on_demand(&m5_large.name).ok_or("not sold in eu-west-1")?;
//! let room = allocatable(m5_large, &NodeSettings::default());
//! assert!(price.micro_usd_per_hour > 0 && room.pods == 29);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dataset;
mod instance_type;
pub mod labels;
mod node;
mod region;

pub use dataset::{DataError, Dataset, Source};
pub use instance_type::{
    Accelerator, Arch, Ebs, EbsOptimized, Gpu, Hypervisor, InstanceType, LocalStorage, Network,
    NeuronDevice, PlacementStrategy,
};
pub use node::{
    AmiFamily, EfaOnlyInterfaces, KubeletSettings, NodeSettings, Overhead, Reserved,
    ReservedOverrides, Resources, Threshold, allocatable, capacity, eni_limited_pods, overhead,
};
pub use region::{InterruptionBand, Offering, Price, Region, Zone, ZoneOffering};
