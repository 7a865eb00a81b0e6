//! Strategic merge and the merge of server-side apply.
//!
//! Invariant: elements of keyed lists keep their order; new ones are appended.

use serde_json::{Map, Value};

use super::lists::{Merging, merging_of};

/// Merges a strategic patch, obeying its `$patch`, `$retainKeys` and delete-from-list directives.
pub fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if fields.get("$patch").is_some_and(|directive| directive == "replace") {
        *target = without_directives(fields);
        return;
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else { return };
    for (field, value) in fields {
        if let Some(list) = field.strip_prefix("$deleteFromPrimitiveList/") {
            delete_scalars(map.get_mut(list), value);
        } else if field.starts_with('$') {
            retain_keys(map, field, value);
        } else if value.is_null() {
            map.remove(field);
        } else {
            let slot = map.entry(field.clone()).or_insert(Value::Null);
            match value.as_array() {
                Some(items) => merge_list(slot, field, items),
                None => merge(slot, value),
            }
        }
    }
}

/// Lays a server-side apply configuration over an object.
pub fn overlay(target: &mut Value, config: &Value, custom: bool) {
    let Some(fields) = config.as_object() else {
        *target = config.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else { return };
    for (field, value) in fields {
        let slot = map.entry(field.clone()).or_insert(Value::Null);
        let Some(items) = value.as_array() else {
            overlay(slot, value, custom);
            continue;
        };
        match merging_of(field, items.first(), custom) {
            Merging::Atomic => slot.clone_from(value),
            Merging::Set => union(slot, items),
            Merging::Keyed(key) => {
                each_keyed(slot, key, items, |old, new| overlay(old, new, custom));
            }
        }
    }
}

fn merge_list(slot: &mut Value, field: &str, items: &[Value]) {
    if items.iter().any(|item| item["$patch"] == "replace") {
        let kept = items.iter().filter(|item| item["$patch"].is_null()).cloned();
        *slot = kept.collect();
        return;
    }
    match merging_of(field, items.first(), false) {
        Merging::Atomic => *slot = items.iter().cloned().collect(),
        Merging::Set => union(slot, items),
        Merging::Keyed(key) => {
            let (deletions, additions): (Vec<Value>, Vec<Value>) =
                items.iter().cloned().partition(|item| item["$patch"] == "delete");
            if let Some(list) = slot.as_array_mut() {
                list.retain(|old| !deletions.iter().any(|item| item[key] == old[key]));
            }
            each_keyed(slot, key, &additions, merge);
        }
    }
}

fn each_keyed(slot: &mut Value, key: &str, items: &[Value], change: impl Fn(&mut Value, &Value)) {
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    let Some(list) = slot.as_array_mut() else { return };
    for item in items {
        match list.iter_mut().find(|old| old[key] == item[key]) {
            Some(old) => change(old, item),
            None => {
                let mut fresh = Value::Null;
                change(&mut fresh, item);
                list.push(fresh);
            }
        }
    }
}

fn union(slot: &mut Value, items: &[Value]) {
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    let Some(list) = slot.as_array_mut() else { return };
    for item in items {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

fn delete_scalars(slot: Option<&mut Value>, gone: &Value) {
    let Some(list) = slot.and_then(Value::as_array_mut) else { return };
    list.retain(|item| !gone.as_array().is_some_and(|gone| gone.contains(item)));
}

fn retain_keys(map: &mut Map<String, Value>, directive: &str, keys: &Value) {
    if directive == "$retainKeys"
        && let Some(keys) = keys.as_array()
    {
        map.retain(|field, _| keys.iter().any(|key| key == field));
    }
}

fn without_directives(fields: &Map<String, Value>) -> Value {
    let kept = fields.iter().filter(|(field, _)| !field.starts_with('$'));
    Value::Object(kept.map(|(field, value)| (field.clone(), value.clone())).collect())
}
