//! Column generation (Gilmore and Gomory, 1961): restricted master, dual values, and the dive to
//! whole bins.
//!
//! Invariant: deterministic; what it finds is checked as any other solution.

pub(crate) mod columns;
pub(crate) mod covering;
pub(crate) mod dive;
pub(crate) mod dual_values;
mod pricing;
pub(crate) mod stability_centre;
