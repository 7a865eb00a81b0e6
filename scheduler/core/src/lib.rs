//! Longshore's planner: given a cluster, its pools and what a region sells, decide what to launch,
//! where each pod goes, and which nodes are no longer worth their price.
//!
//! Invariant: pure and total. [`plan`] reads no clock, does no IO, never fails and never waits;
//! equal input gives an equal plan, byte for byte. What cannot be placed is an answer with reasons.
//!
//! Read in this order: [`vocabulary`] (the words), [`world`] (the facts), [`plan`] (the straight
//! line from facts to decisions), then `pack` and `disrupt`. [`check`] and [`certificate`] trust
//! none of it.

pub mod answer;
pub mod bound;
pub mod check;
mod disrupt;
pub mod explain;
mod model;
pub mod offers;
mod pack;
mod place;
mod plan;
pub mod question;
pub mod reason;
mod topology;
pub mod vocabulary;
pub mod world;

use longshore_planted as planted;

pub use bound::certificate;
pub use plan::{plan, plan_in_steps};
pub use vocabulary::catalogue::capacity_group;
pub use vocabulary::requirements::{requirement, selector};
pub use vocabulary::{catalogue, ids, labels, overlay, pool, requirements, resources, taint};
