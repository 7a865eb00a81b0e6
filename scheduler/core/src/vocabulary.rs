//! The words every other module speaks: ids, resources, requirements, taints, catalogue, pools.
//!
//! Invariant: plain values without behaviour that depends on the world, time or order of arrival.

pub mod capacity_group;
pub mod catalogue;
pub mod ids;
pub mod labels;
pub mod overlay;
pub mod pool;
pub mod requirement;
pub mod requirements;
pub mod resources;
pub mod selector;
pub mod sold;
pub mod taint;
