//! The watcher between a simulated cluster and a scripted scheduler.
//!
//! Invariant: nothing sleeps; every wait is for a message or a watch event, under one deadline.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as the tests themselves do"
)]

mod buffers;
mod claims;
mod drain;
mod foresight;
mod karpenter;
mod leaks;
mod nodes;
mod objects;
mod pins;
mod reports;
mod reservations;
mod scheduler;
mod session;
mod support;
