//! The simulated cluster as real clients see it.
//!
//! Invariant: nothing sleeps; every wait is for an event on a watch, under one deadline.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as the tests themselves do"
)]

mod access;
mod deletion;
mod kubelet;
mod ownership;
mod patching;
mod scheduling;
mod support;
mod watching;
mod workloads;
