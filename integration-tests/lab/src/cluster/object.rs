//! Kubernetes objects as JSON, and the few accessors everybody needs.
//!
//! Invariant: an object that passed [`check_shape`] is a map whose `metadata`, `spec` and `status`
//! are maps where present, so that indexing below them never fails.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::ApiError;

/// Refuses bodies on which later indexing would be unsound.
///
/// # Errors
/// [`ApiError::BadRequest`] naming the field that is not a map.
pub fn check_shape(object: &Value) -> Result<(), ApiError> {
    if !object.is_object() {
        return Err(ApiError::BadRequest("the body must be a JSON object".into()));
    }
    let wrong = |field: &str| !matches!(object[field], Value::Object(_) | Value::Null);
    match ["metadata", "spec", "status"].into_iter().find(|field| wrong(field)) {
        Some(field) => Err(ApiError::BadRequest(format!("{field}: expected a map"))),
        None => check_metadata(&object["metadata"]),
    }
}

fn check_metadata(metadata: &Value) -> Result<(), ApiError> {
    let strings = |field: &str| {
        let value = &metadata[field];
        value.is_null() || value.as_object().is_some_and(|map| map.values().all(Value::is_string))
    };
    match ["labels", "annotations"].into_iter().find(|field| !strings(field)) {
        Some(field) => {
            Err(ApiError::BadRequest(format!("metadata.{field}: every value must be a string")))
        }
        None => Ok(()),
    }
}

/// `metadata.name`, empty when absent.
pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// `metadata.namespace`, empty when absent.
pub fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// `metadata.uid`, empty when absent.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// One label's value.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key].as_str()
}

/// One annotation's value.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// A JSON map of strings as a map; other values are left out.
pub fn string_map(value: &Value) -> BTreeMap<String, String> {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Elements of a JSON list; nothing for any other value.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// True when deletion has been asked for.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Names in `metadata.finalizers`.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    items(&object["metadata"]["finalizers"]).iter().filter_map(Value::as_str)
}

/// The owner that manages this object.
pub fn controller_of(object: &Value) -> Option<&Value> {
    items(&object["metadata"]["ownerReferences"]).iter().find(|owner| owner["controller"] == true)
}

/// The condition of one type in `status.conditions`.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(&object["status"]["conditions"]).iter().find(|condition| condition["type"] == kind)
}

/// True when the condition of that type stands at `True`.
pub fn condition_is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Sets a condition, keeping `lastTransitionTime` while its status does not change.
pub fn set_condition(object: &mut Value, condition: Value, now: &str) {
    let mut condition = condition;
    let kept = self::condition(object, condition["type"].as_str().unwrap_or_default())
        .filter(|old| old["status"] == condition["status"])
        .map(|old| old["lastTransitionTime"].clone());
    condition["lastTransitionTime"] = kept.unwrap_or_else(|| Value::from(now));
    let list = &mut object["status"]["conditions"];
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let Some(list) = list.as_array_mut() else { return };
    match list.iter_mut().find(|old| old["type"] == condition["type"]) {
        Some(old) => *old = condition,
        None => list.push(condition),
    }
}

/// Removes one field from a JSON map; nothing happens to any other value.
pub fn remove(object: &mut Value, field: &str) -> Option<Value> {
    object.as_object_mut()?.remove(field)
}
