//! The patch formats of the Kubernetes API, as functions from JSON to JSON.
//!
//! Invariant: a patch either applies whole or not at all.

pub mod fields;
mod lists;
mod strategic;

use serde_json::{Map, Value};

use super::error::ApiError;

pub use strategic::overlay;

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
    /// BadRequest or Invalid for patches that do not fit the object, UnsupportedMediaType for a
    /// strategic patch of a custom object.
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

fn apply_operations(object: &mut Value, operations: &Value) -> Result<(), ApiError> {
    let operations: json_patch::Patch = serde_json::from_value(operations.clone())
        .map_err(|error| ApiError::BadRequest(format!("error decoding patch: {error}")))?;
    json_patch::patch(object, &operations).map_err(|error| ApiError::Invalid {
        kind: object["kind"].as_str().unwrap_or_default().to_owned(),
        name: super::object::name(object).to_owned(),
        field: "patch".into(),
        message: format!("the server rejected our request due to an error in our request: {error}"),
    })
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
