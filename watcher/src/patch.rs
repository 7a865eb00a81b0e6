//! Writing to the API server: read, edit, send what differs, again when somebody else was faster.
//!
//! Invariant: a write carries the version it was made from, or all values that it rests on
//! (`guarded.rs`), so no other writer's change is lost, and sends only fields that differ, so
//! fields this build does not know survive. An edit that changes nothing sends nothing.

pub mod guarded;
mod node;

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::names;

pub use node::{Precondition, edit_node};

/// How often a write is tried against other writers before it fails.
const ATTEMPTS_MAX: u32 = 6;

/// Which part of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Metadata and specification.
    Main,
    /// The status subresource.
    Status,
}

/// HTTP status of a refusal; nothing for an error of transport.
#[must_use]
pub fn code(error: &kube::Error) -> Option<u16> {
    if let kube::Error::Api(status) = error { Some(status.code) } else { None }
}

/// Nothing when the object was not there.
///
/// # Errors
/// Every other error.
pub fn found<T>(result: kube::Result<T>) -> kube::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if code(&error) == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Edits a part of an object. `known` is the object as it was last seen, if it was; it is read when
/// it was not, or when it turns out to be old. Gives the object as it then is, or nothing when
/// there is none of that name.
///
/// # Errors
/// What the API server answers, a conflict only after several attempts.
pub async fn edit<K>(
    api: &Api<K>,
    name: &str,
    part: Part,
    known: Option<K>,
    edit: impl Fn(&mut K) + Send,
) -> kube::Result<Option<K>>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let mut known = known;
    let mut attempts = 0;
    loop {
        let before = match known.take() {
            Some(object) => object,
            None => match api.get_opt(name).await? {
                Some(object) => object,
                None => return Ok(None),
            },
        };
        let mut after = before.clone();
        edit(&mut after);
        let Some(patch) = patch_between(&before, &after, part)? else { return Ok(Some(before)) };
        attempts += 1;
        match send(api, name, part, &patch).await {
            Err(error) if code(&error) == Some(409) && attempts < ATTEMPTS_MAX => {}
            other => return found(other),
        }
    }
}

async fn send<K>(api: &Api<K>, name: &str, part: Part, patch: &Value) -> kube::Result<K>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    match part {
        Part::Main => api.patch(name, &params(), &Patch::Merge(patch)).await,
        Part::Status => api.patch_status(name, &params(), &Patch::Merge(patch)).await,
    }
}

/// Sends operations of a JSON patch (RFC 6902). Gives the object as it then is.
///
/// # Errors
/// What the API server answers: 422 when a test fails or an operation does not fit.
pub async fn operate<K>(api: &Api<K>, name: &str, operations: Value) -> kube::Result<K>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let patch = serde_json::from_value(operations).map_err(kube::Error::SerdeError)?;
    api.patch(name, &params(), &Patch::<()>::Json(patch)).await
}

/// Every patch says who wrote it.
#[must_use]
pub fn params() -> PatchParams {
    PatchParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn patch_between<K: Resource + Serialize>(
    before: &K,
    after: &K,
    part: Part,
) -> kube::Result<Option<Value>> {
    let value = |object: &K| serde_json::to_value(object).map_err(kube::Error::SerdeError);
    let (mut old, mut new) = (value(before)?, value(after)?);
    if part == Part::Status {
        let status = |value: Value| serde_json::json!({ "status": value.get("status") });
        (old, new) = (status(old), status(new));
    }
    let Some(mut patch) = merge_patch(&old, &new) else { return Ok(None) };
    if let Some(version) = before.meta().resource_version.as_ref() {
        patch["metadata"]["resourceVersion"] = Value::String(version.clone());
    }
    Ok(Some(patch))
}

/// JSON merge patch (RFC 7386) that turns one value into the other; nothing when they are equal.
#[must_use]
pub fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return Some(after.clone());
    };
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    let mut patch: Map<_, _> = removed.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in new {
        let change = match old.get(key) {
            Some(old) => merge_patch(old, value),
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    Some(Value::Object(patch))
}

/// A condition to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Type.
    pub kind: &'a str,
    /// True, false or, when absent, unknown.
    pub status: Option<bool>,
    /// Reason in CamelCase; the type stands in for an empty one.
    pub reason: &'a str,
    /// For people.
    pub message: &'a str,
}

impl<'a> Wanted<'a> {
    /// A true condition whose reason is its type.
    #[must_use]
    pub const fn met(kind: &'a str) -> Self {
        Self { kind, status: Some(true), reason: kind, message: "" }
    }
}

/// Sets a condition `at` a time; its time of transition moves only with its status.
pub fn set_condition(
    list: &mut Vec<Condition>,
    wanted: &Wanted<'_>,
    generation: Option<i64>,
    at: &Time,
) {
    let status = wanted.status.map_or("Unknown", |met| if met { "True" } else { "False" });
    let reason = if wanted.reason.is_empty() { wanted.kind } else { wanted.reason };
    let old = list.iter().find(|c| c.type_ == wanted.kind);
    let last_transition_time = old
        .filter(|c| c.status == status)
        .map_or_else(|| at.clone(), |c| c.last_transition_time.clone());
    let condition = Condition {
        type_: wanted.kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: wanted.message.to_owned(),
        observed_generation: generation,
        last_transition_time,
    };
    match list.iter_mut().find(|c| c.type_ == wanted.kind) {
        Some(old) => *old = condition,
        None => list.push(condition),
    }
}

/// A time in milliseconds since 1970, at the resolution of the API.
#[must_use]
pub fn time(at_ms: i64) -> Time {
    let seconds = at_ms.div_euclid(1000);
    Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// Adds a finalizer.
pub fn add_finalizer<K: Resource>(object: &mut K, finalizer: &str) {
    let list = object.meta_mut().finalizers.get_or_insert_default();
    if !list.iter().any(|f| f == finalizer) {
        list.push(finalizer.to_owned());
    }
}

/// Removes a finalizer.
pub fn remove_finalizer<K: Resource>(object: &mut K, finalizer: &str) {
    object.finalizers_mut().retain(|f| f != finalizer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_merge_patch_holds_what_differs() {
        let before = json!({ "a": 1, "b": { "x": 1, "y": 2 }, "list": [1], "gone": true });
        let after = json!({ "a": 1, "b": { "x": 1, "y": 3 }, "list": [1, 2], "new": {} });
        let patch = json!({ "b": { "y": 3 }, "list": [1, 2], "new": {}, "gone": null });
        assert_eq!(merge_patch(&before, &after), Some(patch));
        assert_eq!(merge_patch(&after, &after), None);
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let mut list = Vec::new();
        set_condition(&mut list, &Wanted::met("Ready"), Some(1), &time(0));
        let wanted = Wanted { reason: "Again", message: "still", ..Wanted::met("Ready") };
        set_condition(&mut list, &wanted, Some(2), &time(60_000));
        assert_eq!(list[0].last_transition_time, Time(Timestamp::UNIX_EPOCH));
        assert_eq!((list[0].reason.as_str(), list[0].observed_generation), ("Again", Some(2)));
        let wanted = Wanted { status: Some(false), ..Wanted::met("Ready") };
        set_condition(&mut list, &wanted, Some(2), &time(60_000));
        assert_eq!(list[0].last_transition_time, time(60_000));
        assert_eq!(list.len(), 1);
    }
}
