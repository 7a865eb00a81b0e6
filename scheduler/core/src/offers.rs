//! What can be bought: every offering of every pool, priced, with what it leaves for pods.
//!
//! Invariant: nothing here looks at which pods wait; it says what any pod could get.

pub(crate) mod candidates;
pub(crate) mod choice;
pub(crate) mod closed;
pub(crate) mod market;
pub(crate) mod objective;
pub(crate) mod overlay;
pub(crate) mod priced;
pub(crate) mod substitutes;

pub use candidates::{LaunchQuery, launch_candidates};
pub use choice::CANDIDATES_MAX;
pub use closed::closed_pools;
pub use objective::Objective;
pub use overlay::{Overlaid, overlaid};
