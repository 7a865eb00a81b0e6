//! Tests of the planner as its callers see it.
//!
//! Invariant: one binary; each module is one way of looking at plans.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

/// Plants the defects that `LONGSHORE_PLANTED` names, in a build that can.
pub fn plant() {
    #[cfg(feature = "planted")]
    {
        #[expect(clippy::disallowed_methods, reason = "a test that can be told to fail")]
        let names = std::env::var("LONGSHORE_PLANTED").unwrap_or_default();
        longshore_core::planted::plant(names.split(',').map(ToOwned::to_owned));
    }
}

mod bounds;
mod checks;
mod crowds;
mod cuts;
mod explanations;
mod mixtures;
mod objective;
mod objects;
mod random;
mod render;
mod requirements;
mod scenario;
mod scenarios;
mod shapes;
mod words;
mod worlds;
