//! Why a request at the control port had no effect.
//!
//! Invariant: each refusal has a kind for programs, words for people, and the way out.

use http::StatusCode;
use serde_json::{Value, json};
use thiserror::Error;

use super::server::BODY_BYTES_MAX;
use crate::region::OrderError;

/// Paths, and the methods they take.
pub const PATHS: [(&str, &str); 7] = [
    ("/", "GET"),
    ("/state", "GET"),
    ("/calls", "GET"),
    ("/faults", "POST, DELETE"),
    ("/capacity", "POST"),
    ("/prices", "POST"),
    ("/interruptions", "POST"),
];

/// A refusal.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Nothing is served at this path.
    #[error("nothing is served at {0}")]
    UnknownPath(String),
    /// The path is served, but not for this method.
    #[error("{path} does not take {method}")]
    WrongMethod {
        /// The path.
        path: String,
        /// The method.
        method: String,
        /// Those it takes, separated by commas.
        methods: &'static str,
    },
    /// A parameter of the query is unknown or cannot be read.
    #[error("the query cannot be used: {0}")]
    Query(String),
    /// The body is longer than any order needs to be.
    #[error("the body is longer than {BODY_BYTES_MAX} bytes")]
    TooLong,
    /// The body did not arrive whole.
    #[error("the body did not arrive: {0}")]
    CutOff(String),
    /// The body is not what this path takes.
    #[error("the body cannot be used: {0}")]
    Body(serde_json::Error),
    /// The order would have no effect.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// An answer cannot be written, which is a bug.
    #[error("the answer cannot be written: {0}")]
    Bug(serde_json::Error),
}

impl Refusal {
    /// HTTP's status of it.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::UnknownPath(_) => StatusCode::NOT_FOUND,
            Self::WrongMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Query(_) | Self::Body(_) | Self::CutOff(_) => StatusCode::BAD_REQUEST,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Order(OrderError::Ending(_)) => StatusCode::CONFLICT,
            Self::Order(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Bug(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The methods that would have been taken, where that was it.
    pub(super) const fn methods(&self) -> Option<&'static str> {
        if let Self::WrongMethod { methods, .. } = self { Some(methods) } else { None }
    }

    /// As it is sent.
    pub(super) fn json(&self) -> Value {
        json!({ "error": {
            "kind": self.kind(),
            "message": self.to_string(),
            "what_to_do": self.what_to_do(),
        } })
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::UnknownPath(_) => "unknown-path",
            Self::WrongMethod { .. } => "wrong-method",
            Self::Query(_) => "unusable-query",
            Self::TooLong => "body-too-long",
            Self::CutOff(_) => "body-cut-off",
            Self::Body(_) => "unusable-body",
            Self::Order(OrderError::UnknownApi { .. }) => "unknown-api",
            Self::Order(OrderError::NotSold { .. }) => "unknown-offering",
            Self::Order(OrderError::NoInstances) => "no-instances",
            Self::Order(OrderError::UnknownInstances(_)) => "unknown-instances",
            Self::Order(OrderError::Ending(_)) => "instances-ending",
            Self::Order(OrderError::OnDemand(_)) => "instances-on-demand",
            Self::Order(OrderError::OutOfRange { .. }) => "out-of-range",
            Self::Bug(_) => "bug",
        }
    }

    fn what_to_do(&self) -> String {
        match self {
            Self::UnknownPath(_) => {
                let paths: Vec<&str> = PATHS.iter().map(|(path, _)| *path).collect();
                format!("ask one of {}; GET / shows an example of each", paths.join(", "))
            }
            Self::WrongMethod { methods, .. } => format!("use {methods}; GET / shows examples"),
            Self::Query(_) => {
                "only GET /calls takes one: since=NUMBER, the `next` of an earlier answer, or \
                 since=TIME as in 2026-09-01T12:00:00Z"
                    .to_owned()
            }
            Self::TooLong => "split the order: each may name fewer instances".to_owned(),
            Self::CutOff(_) => "send it again, whole".to_owned(),
            Self::Body(_) => "send JSON as in the example of GET /".to_owned(),
            Self::Order(error) => error.what_to_do(),
            Self::Bug(_) => "report it".to_owned(),
        }
    }
}
