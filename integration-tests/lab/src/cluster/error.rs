//! Refusals of the API server, as the `Status` objects that real clients know.
//!
//! Invariant: every refusal carries the HTTP code, the machine-readable reason and the details a
//! real API server would send.

use serde_json::{Value, json};
use thiserror::Error;

/// Why the API server refused a request.
#[derive(Clone, Debug, Error)]
pub enum ApiError {
    /// No such object.
    #[error("{resource} \"{name}\" not found")]
    NotFound {
        /// Plural and group, `deployments.apps`.
        resource: String,
        /// Object's name.
        name: String,
    },
    /// The path names no resource that is served.
    #[error("the server could not find the requested resource")]
    NoResource,
    /// An object of that name is there already.
    #[error("{resource} \"{name}\" already exists")]
    AlreadyExists {
        /// Plural and group.
        resource: String,
        /// Object's name.
        name: String,
    },
    /// The object moved on, or a precondition does not hold.
    #[error("Operation cannot be fulfilled on {resource} \"{name}\": {message}")]
    Conflict {
        /// Plural and group.
        resource: String,
        /// Object's name.
        name: String,
        /// What does not hold.
        message: String,
    },
    /// Server-side apply met fields that other managers own.
    #[error("Apply failed with {} conflict(s): {}", .fields.len(), .fields.join(", "))]
    ApplyConflict {
        /// One line for each field: manager and path.
        fields: Vec<String>,
    },
    /// The object breaks a rule of its kind.
    #[error("{kind} \"{name}\" is invalid: {field}: {message}")]
    Invalid {
        /// Kind of the object.
        kind: String,
        /// Object's name.
        name: String,
        /// Path of the offending field.
        field: String,
        /// Why.
        message: String,
    },
    /// A test of a JSON patch fails, or one of its operations does not fit the object.
    #[error("the server rejected our request due to an error in our request")]
    PatchRejected,
    /// The request asks for more than is done at once.
    #[error("Request entity is too large: {0}")]
    TooLarge(String),
    /// The request could not be understood.
    #[error("{0}")]
    BadRequest(String),
    /// The verb is not served here.
    #[error("the server does not allow this method on the requested resource")]
    MethodNotAllowed,
    /// The content type of a patch is not known.
    #[error("the body of the request was in an unknown format: {0}")]
    UnsupportedMediaType(String),
    /// The caller lacks the right.
    #[error("{0}")]
    Forbidden(String),
    /// The resource version asked for was compacted away.
    #[error("too old resource version: {asked} ({oldest})")]
    Expired {
        /// Resource version of the request.
        asked: u64,
        /// Oldest one that is still known.
        oldest: u64,
    },
    /// A disruption budget stands against an eviction.
    #[error("Cannot evict pod as it would violate the pod's disruption budget.")]
    DisruptionBudget {
        /// The cause's message, which names the budget.
        message: String,
        /// Hint when to come back; none when only a human or a controller can help.
        retry_after_seconds: Option<u32>,
    },
    /// A scripted fault, or a rule the API server answers with 500.
    #[error("{0}")]
    Internal(String),
    /// A scripted overload.
    #[error("the server is currently unable to handle the request")]
    Unavailable,
}

impl ApiError {
    /// HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::NotFound { .. } | Self::NoResource => 404,
            Self::AlreadyExists { .. } | Self::Conflict { .. } | Self::ApplyConflict { .. } => 409,
            Self::Invalid { .. } | Self::PatchRejected => 422,
            Self::TooLarge(_) => 413,
            Self::BadRequest(_) => 400,
            Self::MethodNotAllowed => 405,
            Self::UnsupportedMediaType(_) => 415,
            Self::Forbidden(_) => 403,
            Self::Expired { .. } => 410,
            Self::DisruptionBudget { .. } => 429,
            Self::Internal(_) => 500,
            Self::Unavailable => 503,
        }
    }

    /// `metav1.StatusReason`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound { .. } | Self::NoResource => "NotFound",
            Self::AlreadyExists { .. } => "AlreadyExists",
            Self::Conflict { .. } | Self::ApplyConflict { .. } => "Conflict",
            Self::Invalid { .. } | Self::PatchRejected => "Invalid",
            Self::TooLarge(_) => "RequestEntityTooLarge",
            Self::BadRequest(_) => "BadRequest",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::UnsupportedMediaType(_) => "UnsupportedMediaType",
            Self::Forbidden(_) => "Forbidden",
            Self::Expired { .. } => "Expired",
            Self::DisruptionBudget { .. } => "TooManyRequests",
            Self::Internal(_) => "InternalError",
            Self::Unavailable => "ServiceUnavailable",
        }
    }

    /// The `Status` object of this refusal.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.to_string(),
            "reason": self.reason(),
            "code": self.code(),
        });
        if let Some(details) = self.details() {
            status["details"] = details;
        }
        status
    }

    /// Seconds of the `Retry-After` header, when one is due.
    pub fn retry_after_seconds(&self) -> Option<u32> {
        if let Self::DisruptionBudget { retry_after_seconds, .. } = self {
            *retry_after_seconds
        } else {
            None
        }
    }

    fn details(&self) -> Option<Value> {
        match self {
            Self::NotFound { resource, name }
            | Self::AlreadyExists { resource, name }
            | Self::Conflict { resource, name, .. } => {
                let (kind, group) = resource.split_once('.').unwrap_or((resource, ""));
                Some(match group {
                    "" => json!({ "name": name, "kind": kind }),
                    _ => json!({ "name": name, "group": group, "kind": kind }),
                })
            }
            Self::ApplyConflict { fields } => {
                let cause =
                    |field: &String| json!({ "reason": "FieldManagerConflict", "message": field });
                Some(json!({ "causes": fields.iter().map(cause).collect::<Vec<_>>() }))
            }
            Self::Invalid { kind, name, field, message } => Some(json!({
                "name": name,
                "kind": kind,
                "causes": [{ "reason": "FieldValueInvalid", "message": message, "field": field }],
            })),
            Self::DisruptionBudget { message, retry_after_seconds } => {
                let mut details =
                    json!({ "causes": [{ "reason": "DisruptionBudget", "message": message }] });
                if let Some(seconds) = retry_after_seconds {
                    details["retryAfterSeconds"] = json!(seconds);
                }
                Some(details)
            }
            // A real API server names neither object nor operation.
            Self::PatchRejected => Some(json!({})),
            Self::NoResource
            | Self::TooLarge(_)
            | Self::BadRequest(_)
            | Self::MethodNotAllowed
            | Self::UnsupportedMediaType(_)
            | Self::Forbidden(_)
            | Self::Expired { .. }
            | Self::Internal(_)
            | Self::Unavailable => None,
        }
    }
}
