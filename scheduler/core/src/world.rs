//! The world a plan is made for: pods, nodes, claims, and the view that keeps them.
//!
//! Invariant: objects are facts as last reported; nothing here decides.

pub mod budget;
pub mod buffer;
pub mod claim;
pub mod drawn;
pub mod node;
pub mod pod;
pub mod shape;
pub(crate) mod topology;
pub mod view;
