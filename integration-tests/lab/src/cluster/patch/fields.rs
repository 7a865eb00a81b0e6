//! Sets of fields in the `FieldsV1` form of `metadata.managedFields`.
//!
//! Invariant: a leaf is an empty map; a path step is `f:NAME` or, in keyed lists, `k:{"KEY":…}`.

use serde_json::{Map, Value, json};

use super::lists::{Merging, merging_of};

/// Fields that nobody owns: identity, and what the server sets.
const UNOWNED: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// All fields a whole object states.
pub fn stated(object: &Value, custom: bool) -> Value {
    differing(&Value::Null, object, custom)
}

/// Fields of `new` whose value differs from `old`, those absent from `old` included.
pub fn differing(old: &Value, new: &Value, custom: bool) -> Value {
    let mut set = Map::new();
    for (field, value) in new.as_object().into_iter().flatten() {
        match field.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                let kept = value.as_object().into_iter().flatten();
                let kept: Map<_, _> = kept
                    .filter(|(name, _)| !UNOWNED.contains(&name.as_str()))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                if !kept.is_empty() {
                    add(&mut set, field, walk(field, (&old[field], &Value::Object(kept)), custom));
                }
            }
            _ => add(&mut set, field, walk(field, (&old[field], value), custom)),
        }
    }
    Value::Object(set)
}

fn add(set: &mut Map<String, Value>, field: &str, inner: Option<Value>) {
    if let Some(inner) = inner {
        set.insert(format!("f:{field}"), inner);
    }
}

/// The differing fields below one; none when nothing differs.
fn walk(field: &str, (old, new): (&Value, &Value), custom: bool) -> Option<Value> {
    if old == new {
        return None;
    }
    if let Some(map) = new.as_object().filter(|map| !map.is_empty()) {
        let mut set = Map::new();
        for (inner, value) in map {
            add(&mut set, inner, walk(inner, (&old[inner], value), custom));
        }
        return (!set.is_empty()).then_some(Value::Object(set));
    }
    let items = new.as_array().map_or(&[][..], Vec::as_slice);
    if let Merging::Keyed(key) = merging_of(field, items.first(), custom)
        && !items.is_empty()
    {
        return walk_keyed(key, (old, items), custom);
    }
    Some(json!({}))
}

fn walk_keyed(key: &str, (old, items): (&Value, &[Value]), custom: bool) -> Option<Value> {
    let mut set = Map::new();
    for item in items {
        let olds = old.as_array().map_or(&[][..], Vec::as_slice);
        let before = olds.iter().find(|old| old[key] == item[key]).unwrap_or(&Value::Null);
        if let Some(inner) = walk("", (before, item), custom) {
            set.insert(format!("k:{}", json!({ key: item[key] })), inner);
        }
    }
    (!set.is_empty()).then_some(Value::Object(set))
}

/// Union of two sets.
pub fn union(left: &Value, right: &Value) -> Value {
    let mut set = left.as_object().cloned().unwrap_or_default();
    for (step, inner) in right.as_object().into_iter().flatten() {
        let merged = set.get(step).map_or_else(|| inner.clone(), |old| union(old, inner));
        set.insert(step.clone(), merged);
    }
    Value::Object(set)
}

/// Fields of `left` that are not in `right`. A leaf of `right` covers everything below it.
pub fn minus(left: &Value, right: &Value) -> Value {
    let mut set = Map::new();
    for (step, inner) in left.as_object().into_iter().flatten() {
        match right.get(step) {
            None => {
                set.insert(step.clone(), inner.clone());
            }
            Some(covered) if is_leaf(covered) || is_leaf(inner) => {}
            Some(covered) => {
                let rest = minus(inner, covered);
                if !is_leaf(&rest) {
                    set.insert(step.clone(), rest);
                }
            }
        }
    }
    Value::Object(set)
}

/// Fields in both sets.
pub fn common(left: &Value, right: &Value) -> Value {
    let mut set = Map::new();
    for (step, inner) in left.as_object().into_iter().flatten() {
        let Some(other) = right.get(step) else { continue };
        let both = common(inner, other);
        if !is_leaf(&both) || is_leaf(inner) || is_leaf(other) {
            set.insert(step.clone(), both);
        }
    }
    Value::Object(set)
}

/// True for a set without fields, which is also the mark of a leaf.
pub fn is_leaf(set: &Value) -> bool {
    set.as_object().is_none_or(Map::is_empty)
}

/// Dotted paths of the leaves.
pub fn paths(set: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(set, "", &mut found);
    found
}

fn collect(set: &Value, path: &str, found: &mut Vec<String>) {
    for (step, inner) in set.as_object().into_iter().flatten() {
        let here = match step.strip_prefix("f:") {
            Some(field) => format!("{path}.{field}"),
            None => format!("{path}[{}]", step.trim_start_matches("k:")),
        };
        if is_leaf(inner) {
            found.push(here);
        } else {
            collect(inner, &here, found);
        }
    }
}

/// Removes the fields of a set from an object. Maps and keyed elements left empty stay.
pub fn strike(object: &mut Value, set: &Value) {
    for (step, inner) in set.as_object().into_iter().flatten() {
        if let Some(field) = step.strip_prefix("f:") {
            if is_leaf(inner) {
                crate::cluster::object::remove(object, field);
            } else if let Some(below) = object.get_mut(field) {
                strike(below, inner);
            }
        } else if let Some(key) = step.strip_prefix("k:") {
            strike_element(object, key, inner);
        }
    }
}

fn strike_element(list: &mut Value, key: &str, inner: &Value) {
    let Ok(Value::Object(key)) = serde_json::from_str::<Value>(key) else { return };
    let is_it = |item: &Value| key.iter().all(|(field, value)| item[field] == *value);
    let states_key = key.keys().any(|field| inner.get(format!("f:{field}")).is_some());
    let Some(items) = list.as_array_mut() else { return };
    if states_key || is_leaf(inner) {
        items.retain(|item| !is_it(item));
    } else if let Some(item) = items.iter_mut().find(|item| is_it(item)) {
        strike(item, inner);
    }
}
