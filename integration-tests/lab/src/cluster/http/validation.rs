//! Unknown fields of custom objects: refused, warned of or ignored, as `fieldValidation` asks.
//!
//! Invariant: whatever is asked for, unknown fields are never stored.

use axum::response::Response;
use bytes::Bytes;
use http::HeaderValue;
use http::header::WARNING;
use serde_json::Value;

use crate::cluster::error::ApiError;
use crate::cluster::server::Target;

/// Unknown fields of a body, as paths; nothing for built-in kinds and bodies that are no objects.
///
/// # Errors
/// BadRequest naming the fields when `fieldValidation` is `Strict`.
pub(super) fn unknown_fields(
    target: &Target,
    validation: &str,
    body: &Bytes,
) -> Result<Vec<String>, ApiError> {
    let Some(schema) = target.resource.schemas.get(&target.version) else { return Ok(Vec::new()) };
    let Ok(mut object) = serde_json::from_slice::<Value>(body) else { return Ok(Vec::new()) };
    let unknown = schema.admit(&mut object);
    match validation {
        "Ignore" => Ok(Vec::new()),
        "Strict" if !unknown.is_empty() => {
            let (kind, version) = (&target.resource.kind, &target.version);
            let fields: Vec<String> =
                unknown.iter().map(|field| format!("unknown field \"{field}\"")).collect();
            Err(ApiError::BadRequest(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding \
                 error: {}",
                fields.join(", ")
            )))
        }
        _ => Ok(unknown),
    }
}

/// Adds a warning for each unknown field, which kubectl prints.
pub(super) fn warn_of(unknown: &[String], mut response: Response) -> Response {
    for field in unknown {
        let text = format!("299 - \"unknown field \\\"{field}\\\"\"");
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}
