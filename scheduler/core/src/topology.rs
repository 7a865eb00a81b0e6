//! Rules of pods about other pods and domains, resolved before packing: spreads, affinity,
//! preferences.
//!
//! Invariant: what leaves here are pods with fixed requirements; packing knows no topology but
//! rules about one node.

pub(crate) mod affinity_cycles;
pub(crate) mod binding_rules;
pub(crate) mod density;
pub(crate) mod preferences;
pub(crate) mod split;
pub(crate) mod split_shapes;
pub(crate) mod water_fill;
