//! Plans: what is asked, what is answered, and the straight line between.
//!
//! Invariant: a plan is complete. Every pod to place is in `placements` or in `unplaced`; every
//! launch names its closed set of offerings; every disruption names where its pods go.

mod types;

pub use types::{
    Candidate, Disruption, Effort, NewNode, Placement, Plan, PlanInput, Target, Unplaced,
};
