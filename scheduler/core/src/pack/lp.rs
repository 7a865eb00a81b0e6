//! Linear programmes.
//!
//! Invariant: deterministic; results guide, proofs are made of integers elsewhere.

pub(crate) mod prices;
pub(crate) mod simplex;
