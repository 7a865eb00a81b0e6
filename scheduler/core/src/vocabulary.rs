//! The words every other module speaks: ids, resources, requirements, taints, catalogue, pools.
//!
//! Invariant: plain values without behaviour that depends on the world, time or order of arrival.

pub mod catalogue;
pub mod ids;
pub mod labels;
pub mod overlay;
pub mod pool;
pub mod requirements;
pub mod resources;
pub mod taint;
