//! The only translation between the wire's messages and the planner's types.
//!
//! Invariant: what arrives is validated here, once; the planner never sees a malformed object. A
//! refusal names the object, the field and the way out.

pub mod catalogue;
pub mod explanation;
pub mod node;
pub mod object;
pub mod overlay;
pub mod plan;
pub mod pod;
pub mod pool;
pub mod requirement;
pub mod resources;

pub use longshore_proto::time::{time_ms, timestamp};
use std::fmt;

/// An object, or a part of one, that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {field}: {problem}")]
pub struct WireError {
    /// Object, as kind and name; empty until the object is known.
    pub object: String,
    /// Field inside it.
    pub field: String,
    /// What is wrong and the way out.
    pub problem: String,
}

impl WireError {
    /// A problem with a field of an object that the caller will name.
    #[must_use]
    pub fn field(field: &str, problem: impl fmt::Display) -> Self {
        Self { object: String::new(), field: field.to_owned(), problem: problem.to_string() }
    }

    /// The same problem, inside `field` of a larger part.
    #[must_use]
    pub fn within(mut self, field: &str) -> Self {
        self.field = format!("{field}.{}", self.field);
        self
    }

    /// The same problem of a named object.
    #[must_use]
    pub fn of(mut self, kind: &str, name: &str) -> Self {
        self.object = format!("{kind} {name}");
        self
    }
}

/// A wire string, where empty means absent.
fn optional(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
