//! Kubernetes objects to wire types: pure functions, one module for each kind of object.
//!
//! Invariant: no IO and no clock. Equal objects give equal wire types, so a shape's id is a hash of
//! its content. Requests round up and capacities down, here and nowhere else.

pub mod affinity;
pub mod ailment;
mod annotation;
pub mod attachments;
pub mod budget;
pub mod buffer;
pub mod claim;
pub mod daemon_set;
pub mod devices;
pub mod drift;
pub mod duration;
pub mod extract;
pub mod fault;
pub mod labels;
pub mod legacy;
pub mod node;
pub mod node_class;
pub mod node_template;
pub mod overlay;
pub mod owner;
pub mod pod;
pub mod pool;
pub mod quantity;
pub mod requests;
pub mod requirement;
pub mod rollout;
pub mod shape;
pub mod surroundings;
pub mod volume_terms;
pub mod volumes;

pub use fault::{Fault, Problem};
pub use surroundings::Surroundings;

#[cfg(test)]
mod tests;
