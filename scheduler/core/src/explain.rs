//! Why: what keeps a pod off a new node, what narrowed its choice, what one more would cost, and
//! what keeps a node.
//!
//! Invariant: works from question and answer; nothing here bears on what is planned.

pub(crate) mod choices;
pub(crate) mod near_miss;
mod node;
pub(crate) mod obstacles;
pub(crate) mod pod;

pub use choices::{
    Asked, By, Choice, Narrowing, Neighbour, OneMore, Purchase, ResourceShare, choices, one_more,
};
pub use node::{Fate, Hold, HoldRule, NodeAnswer, explain_nodes};
pub use pod::{PodAnswer, explain_pod, explain_shape};
