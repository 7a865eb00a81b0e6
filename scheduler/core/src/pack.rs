//! Packing: classes of equal pods onto bins that can be bought, as cheaply as can be found.
//!
//! Invariant: this module knows counts, vectors and prices only. Names, labels and selectors have
//! been resolved to numbers before; the work grows with kinds of pod and of bin, not with pods.

pub(crate) mod column_generation;
pub(crate) mod heuristics;
pub(crate) mod knapsack;
pub(crate) mod lp;
pub(crate) mod problem;
pub(crate) mod solve;
