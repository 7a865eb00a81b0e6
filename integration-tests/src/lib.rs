//! What the integration tests, the demo and the bench are made of.
//!
//! Invariant: nothing here is part of a program that runs in a cluster; tests bring their own
//! cluster, region and network, and take them away again.

pub mod agree;
pub mod bench;
pub mod clusters;
pub mod demo;
pub mod parts;
pub mod stage;
pub mod trace;
