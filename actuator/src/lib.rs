//! The regional actuator: buys what plans ask for, and tells what there is to buy.
//!
//! Invariant: one leader per account and region; every effect is in the ledger before it is asked
//! of EC2, carries an idempotency key, and is bought from the plan's closed list of offerings only.

pub mod cloud;
pub mod ec2;
pub mod election;
pub mod ledger;
