//! The pricing problem of column generation: the best filling of one bin, a vector knapsack.
//!
//! Invariant: a filling fits its bin and obeys the node rules.

pub(crate) mod exact;
pub(crate) mod filling;
pub(crate) mod fraction;
pub(crate) mod pattern;
