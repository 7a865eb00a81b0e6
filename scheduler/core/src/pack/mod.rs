//! Packing: rows of equal pods onto bins that can be bought, as cheaply as can be found.
//!
//! Invariant: this module knows counts, vectors and prices only. Names, labels and selectors have been
//! resolved to numbers before; the work grows with kinds of pod and of bin, not with pods.

pub(crate) mod centre;
pub(crate) mod columns;
pub(crate) mod company;
pub(crate) mod cover;
pub(crate) mod deal;
pub(crate) mod dive;
pub(crate) mod exact;
pub(crate) mod filling;
pub(crate) mod greedy;
pub(crate) mod improve;
pub(crate) mod insert;
pub(crate) mod ledger;
pub(crate) mod lp;
pub(crate) mod next;
pub(crate) mod part;
pub(crate) mod pattern;
pub(crate) mod price_sets;
pub(crate) mod prices;
pub(crate) mod problem;
pub(crate) mod rules;
pub(crate) mod shelf;
pub(crate) mod skyline;
pub(crate) mod solve;
pub(crate) mod tail;
pub(crate) mod values;
pub(crate) mod vector;
