//! Constructive heuristics and improvement.
//!
//! Invariant: whatever they return obeys limits and node rules.

pub(crate) mod affinity;
pub(crate) mod greedy;
pub(crate) mod improve;
pub(crate) mod insert;
pub(crate) mod max_heap;
pub(crate) mod part;
pub(crate) mod tail;
pub(crate) mod task;
pub(crate) mod vector_fit;
