//! The patch formats of the Kubernetes API, as functions from JSON to JSON.
//!
//! Invariant: a patch either applies whole or not at all.

pub mod fields;
mod lists;
mod strategic;

use json_patch::PatchOperation;
use serde_json::{Map, Value};

use super::error::ApiError;

pub use strategic::overlay;

/// Operations of a JSON patch that are carried out at once.
const OPERATIONS_MAX: usize = 10_000;

/// A parsed patch.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 6902.
    Json(Value),
    /// RFC 7396.
    Merge(Value),
    /// Merge that knows which lists have keys.
    Strategic(Value),
    /// Server-side apply.
    Apply {
        /// The fields the manager wants.
        config: Value,
        /// True to take fields over from other managers.
        force: bool,
    },
}

impl Patch {
    /// The patched object. Server-side apply needs the managers of fields and is not done here:
    /// it merges without them.
    ///
    /// # Errors
    /// BadRequest for what is no patch, PatchRejected for operations that do not fit the object and
    /// TooLarge for too many of them, UnsupportedMediaType for a strategic patch of a custom
    /// object.
    pub fn apply_to(&self, object: &Value, custom: bool) -> Result<Value, ApiError> {
        let mut patched = object.clone();
        match self {
            Self::Json(operations) => apply_operations(&mut patched, operations)?,
            Self::Merge(patch) => merge(&mut patched, patch),
            Self::Strategic(_) if custom => {
                return Err(ApiError::UnsupportedMediaType(
                    "strategic merge patch is not supported for custom resources; use \
                     application/merge-patch+json"
                        .into(),
                ));
            }
            Self::Strategic(patch) => strategic::merge(&mut patched, patch),
            Self::Apply { config, .. } => overlay(&mut patched, config, custom),
        }
        Ok(patched)
    }
}

/// As kube-apiserver does it with evanphx/json-patch: a test for null holds where there is nothing.
fn apply_operations(object: &mut Value, operations: &Value) -> Result<(), ApiError> {
    let operations: json_patch::Patch = serde_json::from_value(operations.clone())
        .map_err(|error| ApiError::BadRequest(format!("error decoding patch: {error}")))?;
    let count = operations.len();
    if count > OPERATIONS_MAX {
        return Err(ApiError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {count}"
        )));
    }
    for operation in &operations.0 {
        if is_absent(object, operation) {
            continue;
        }
        json_patch::patch(object, std::slice::from_ref(operation)).map_err(|error| {
            tracing::debug!(%error, "a JSON patch was rejected");
            ApiError::PatchRejected
        })?;
    }
    Ok(())
}

/// True for a test that a field of a map that is there is not.
fn is_absent(object: &Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let path = test.path.as_str();
    let parent = path.rfind('/').and_then(|end| object.pointer(&path[..end]));
    test.value.is_null() && parent.is_some_and(Value::is_object) && object.pointer(path).is_none()
}

/// RFC 7396: maps merge, null removes, everything else replaces.
pub fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else { return };
    for (field, value) in patch {
        if value.is_null() {
            map.remove(field);
        } else {
            merge(map.entry(field.clone()).or_insert(Value::Null), value);
        }
    }
}
