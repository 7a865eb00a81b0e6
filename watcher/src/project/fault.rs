//! What is wrong with an object: which one, which field, what, and the way out.
//!
//! Invariant: a fault never stops more than the object it names.

use std::fmt;

/// An object that cannot be projected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {field}: {problem}")]
pub struct Fault {
    /// The object, as Kind/name or Kind/namespace/name.
    pub object: String,
    /// Path of the field in the object.
    pub field: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a field. The text names the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The object does not match its schema.
    #[error("cannot be read: {0}; compare the object with the schema of its CRD")]
    Undecodable(String),
    /// A required field is absent.
    #[error("is missing; set it")]
    Missing,
    /// An operator that does not exist.
    #[error(
        "operator {0:?} is unknown; use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte, \
         spelled like this"
    )]
    UnknownOperator(String),
    /// Values that do not suit their operator.
    #[error("operator {operator} needs {needs}, but has {values:?}")]
    Values {
        /// The operator.
        operator: String,
        /// What it needs.
        needs: &'static str,
        /// What it has.
        values: Vec<String>,
    },
    /// A quantity that cannot be parsed.
    #[error("{0:?} is not a quantity; write it like 500m, 2 or 512Mi")]
    Quantity(String),
    /// A quantity below zero.
    #[error("{0:?} is negative; resources are zero or more")]
    Negative(String),
    /// A duration that cannot be parsed.
    #[error("{0:?} is not a duration; write it like 30s, 10m, 1h30m or Never")]
    Duration(String),
    /// A taint effect that does not exist.
    #[error("effect {0:?} is unknown; use NoSchedule, PreferNoSchedule or NoExecute")]
    Effect(String),
    /// A value outside a closed set.
    #[error("{value:?} is unknown; use {allowed}")]
    Unknown {
        /// The value.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A budget that is neither a count nor a percentage.
    #[error("{0:?} is neither a count like 5 nor a percentage like 10%")]
    Budget(String),
    /// Two fields of which only one may be set.
    #[error("cannot be combined with {0}; remove one of the two")]
    Exclusive(&'static str),
    /// A minimum of values that is out of range.
    #[error("minValues {0} is out of range; use 1 to 50")]
    MinValues(i64),
}

/// A problem and its field, before the object is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    field: String,
    problem: Problem,
}

impl FieldFault {
    /// A problem with `field`.
    pub fn new(field: impl Into<String>, problem: Problem) -> Self {
        Self { field: field.into(), problem }
    }

    /// The same, below `parent`.
    #[must_use]
    pub fn within(self, parent: impl fmt::Display) -> Self {
        let separator = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        Self { field: format!("{parent}{separator}{}", self.field), problem: self.problem }
    }

    /// The same, in `object`.
    #[must_use]
    pub fn of(self, object: impl Into<String>) -> Fault {
        Fault { object: object.into(), field: self.field, problem: self.problem }
    }
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

/// Result of a projection below the level of a whole object.
pub type FieldResult<T> = Result<T, FieldFault>;
