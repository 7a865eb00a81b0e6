//! The actuator against a simulated region, over gRPC on one side and AWS's protocols on the other.
//!
//! Invariant: nothing is reached by a short cut, and nothing sleeps to wait: tests wait for what
//! the watch shows.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as the tests themselves do"
)]

mod calls;
mod election;
mod failures;
mod interruptions;
mod launching;
mod panics;
mod reservations;
mod shown;
mod world;
