//! Tests of the planner as its callers see it.
//!
//! Invariant: one binary; each module is one way of looking at plans.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

mod bounds;
mod checks;
mod crowds;
mod cuts;
mod disruptions;
mod explanations;
mod mixtures;
mod objective;
mod objects;
mod orders;
mod random;
mod render;
mod requirements;
mod scenario;
mod scenarios;
mod shapes;
mod words;
mod worlds;
