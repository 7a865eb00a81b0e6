//! The simulated region, spoken to over its wire as any SDK speaks to it.
//!
//! Invariant: what a client cannot see is asserted only through the handle.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as the tests themselves do"
)]

mod access;
mod control;
mod events;
mod facts;
mod faults;
mod fleet;
mod program;
mod support;
mod walkthroughs;
