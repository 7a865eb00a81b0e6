//! What fuzz targets share: requirements and questions out of arbitrary bytes.
//!
//! Invariant: small worlds only, so that a run makes many of them; every field of theirs may be
//! odd.

pub mod algebra;
#[cfg(feature = "compute_plan")]
pub mod world;
