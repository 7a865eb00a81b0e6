//! The regional actuator: buys what plans ask for, and tells what there is to buy.
//!
//! Invariant: one leader per account and region; every effect is in the ledger before it is asked
//! of EC2, carries an idempotency key, and is bought from the plan's closed list of offerings only.
//!
//! The straight line: [`service`] checks and records, [`ledger`] keeps, [`reconcile`] compares with
//! the [`inventory`], `work` carries out through [`cloud`] (AWS in [`ec2`]), [`board`] shows.

pub mod audit;
pub mod board;
pub mod catalogue;
pub mod cloud;
pub mod config;
pub mod ec2;
pub mod election;
pub mod etcd;
pub mod events;
pub mod fair;
pub mod interruptions;
pub mod inventory;
pub mod leader;
pub mod leadership;
pub mod ledger;
pub mod nodeclass;
pub mod pace;
pub mod policy;
pub mod reconcile;
pub mod service;
mod start;
#[cfg(test)]
mod testing;
pub mod wire;
mod work;

pub use config::{ActuatorArgs, Args, Config, Sharing, Tuning};
pub use etcd::EtcdArgs;
pub use start::{Sole, Started, start_permitted, start_with};
#[cfg(feature = "aws")]
pub use start::{connect, run, start};
