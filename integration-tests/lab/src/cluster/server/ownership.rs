//! Who manages which field: `metadata.managedFields` and server-side apply.
//!
//! Invariant: a field that somebody else changed no longer belongs to its former managers.
//! Writes that name no manager are not recorded; they only take fields away from others.

use serde_json::{Value, json};

use super::{ApiError, Part, Target, WriteOptions};
use crate::cluster::object;
use crate::cluster::patch::{fields, overlay};

/// Updates the record of managers for a write from `old` to `new`.
pub(super) fn record(
    old: &Value,
    new: &mut Value,
    (target, options): (&Target, &WriteOptions),
    (manager, stamp): (&str, &str),
) {
    let entries = object::items(&new["metadata"]["managedFields"]).to_vec();
    if manager.is_empty() && entries.is_empty() {
        return;
    }
    let custom = target.resource.custom;
    let changed = fields::differing(old, new, custom);
    let removed = fields::minus(&fields::stated(old, custom), &fields::stated(new, custom));
    let lost = fields::union(&changed, &removed);
    let is_ours = |entry: &Value| is_entry_of(entry, manager, options);
    let mut kept: Vec<Value> = Vec::new();
    let mut ours = None;
    for mut entry in entries {
        if is_ours(&entry) {
            ours = Some(entry);
            continue;
        }
        entry["fieldsV1"] = fields::minus(&entry["fieldsV1"], &lost);
        if !fields::is_leaf(&entry["fieldsV1"]) {
            kept.push(entry);
        }
    }
    if !manager.is_empty() {
        kept.extend(own_entry(ours, (&changed, &removed), (target, options), (manager, stamp)));
    }
    if kept.is_empty() {
        object::remove(&mut new["metadata"], "managedFields");
    } else {
        new["metadata"]["managedFields"] = Value::Array(kept);
    }
}

/// The writer's own entry after its write; none when it owns nothing.
fn own_entry(
    before: Option<Value>,
    (changed, removed): (&Value, &Value),
    (target, options): (&Target, &WriteOptions),
    (manager, stamp): (&str, &str),
) -> Option<Value> {
    let owned = before.as_ref().map_or_else(|| json!({}), |entry| entry["fieldsV1"].clone());
    let set = match &options.applied {
        Some(applied) => applied.clone(),
        None => fields::union(&fields::minus(&owned, removed), changed),
    };
    if let Some(entry) = before.filter(|entry| entry["fieldsV1"] == set) {
        return Some(entry);
    }
    let mut entry = json!({
        "manager": manager,
        "operation": operation(options),
        "apiVersion": target.resource.api_version(&target.version),
        "time": stamp,
        "fieldsType": "FieldsV1",
        "fieldsV1": set,
    });
    if options.part == Part::Status {
        entry["subresource"] = json!("status");
    }
    (!fields::is_leaf(&entry["fieldsV1"])).then_some(entry)
}

fn operation(options: &WriteOptions) -> &'static str {
    if options.applied.is_some() { "Apply" } else { "Update" }
}

fn is_entry_of(entry: &Value, manager: &str, options: &WriteOptions) -> bool {
    let status = entry["subresource"] == "status";
    entry["manager"] == manager
        && entry["operation"] == operation(options)
        && status == (options.part == Part::Status)
}

/// Server-side apply: the object with `config` laid over it and without the fields this manager
/// stated before and no longer states. Returns the fields it owns from now on as well.
///
/// # Errors
/// [`ApiError::ApplyConflict`] when other managers own fields that would change and `force` is off;
/// [`ApiError::BadRequest`] without a manager.
pub(super) fn apply(
    live: &Value,
    config: &Value,
    (target, options): (&Target, &WriteOptions),
    force: bool,
) -> Result<(Value, Value), ApiError> {
    let manager = options.manager.as_deref().unwrap_or_default();
    if manager.is_empty() {
        return Err(ApiError::BadRequest(
            "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value: is required for \
             apply patch"
                .into(),
        ));
    }
    let custom = target.resource.custom;
    let applied = fields::stated(config, custom);
    let mut body = live.clone();
    overlay(&mut body, config, custom);
    let changed = fields::common(&applied, &fields::differing(live, &body, custom));
    let as_apply = WriteOptions { applied: Some(applied.clone()), ..options.clone() };
    let entries = object::items(&live["metadata"]["managedFields"]);
    let mut dropped = json!({});
    let mut conflicts = Vec::new();
    for entry in entries {
        if is_entry_of(entry, manager, &as_apply) {
            dropped = fields::minus(&entry["fieldsV1"], &applied);
        } else if entry["manager"] != manager {
            let contested = fields::paths(&fields::common(&entry["fieldsV1"], &changed));
            let owner = entry["manager"].as_str().unwrap_or_default();
            conflicts
                .extend(contested.iter().map(|path| format!("conflict with {owner:?}: {path}")));
        }
    }
    if !conflicts.is_empty() && !force {
        return Err(ApiError::ApplyConflict { fields: conflicts });
    }
    for entry in entries.iter().filter(|entry| !is_entry_of(entry, manager, &as_apply)) {
        dropped = fields::minus(&dropped, &entry["fieldsV1"]);
    }
    fields::strike(&mut body, &dropped);
    Ok((body, applied))
}
