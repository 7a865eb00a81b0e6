//! IAM as far as an autoscaler meets it: evaluation, refusals that decode, profiles.
//!
//! Invariant: every call is allowed or refused by evaluating policy documents, never by a switch.

mod condition;
mod context;
mod denial;
mod evaluate;
mod pattern;
mod policy;
pub mod profiles;

pub use context::Context;
pub use denial::{Denial, decode, encode};
pub use evaluate::{Ask, Verdict, evaluate};
pub use pattern::matches;
pub use policy::{Policy, PolicyError};
