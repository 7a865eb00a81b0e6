//! Patches that rest on values instead of on a version.
//!
//! Invariant: every value that a patch replaces, removes or finds absent is tested before, as it
//! was seen, and so is whatever else the decision rested on. So it is refused when one of these has
//! changed meanwhile, and not when anything else has: a kubelet writes the status of its node all
//! the time.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Operations (RFC 6902) that turn one object into the other, guarded by what they replace and by
/// the values at the paths of `preconditions` (JSON pointers, RFC 6901); nothing when the objects
/// are equal. An empty list or map that was not there is none, as in the API. What is absent is
/// tested to be null, which an API server takes for the same.
#[must_use]
pub fn operations(before: &Value, after: &Value, preconditions: &[String]) -> Option<Value> {
    let mut change = Change::default();
    change.between("", Some(before), after);
    if change.writes.is_empty() {
        return None;
    }
    for path in preconditions {
        let (path, value) = seen(before, path);
        change.tests.insert(path, value);
    }
    let tests = change.tests.into_iter();
    let tests = tests.map(|(path, value)| json!({ "op": "test", "path": path, "value": value }));
    Some(tests.chain(change.writes).collect())
}

/// What is tested, by path, and what is done then.
#[derive(Default)]
struct Change {
    tests: BTreeMap<String, Value>,
    writes: Vec<Value>,
}

impl Change {
    fn between(&mut self, path: &str, before: Option<&Value>, after: &Value) {
        match (before, after) {
            (Some(before), after) if before == after => {}
            (Some(Value::Object(old)), Value::Object(new)) => self.fields(path, old, new),
            (Some(before), after) => {
                self.tests.insert(path.to_owned(), before.clone());
                self.writes.push(json!({ "op": "replace", "path": path, "value": after }));
            }
            (None, after) if is_empty(after) => {}
            (None, after) => {
                self.tests.insert(path.to_owned(), Value::Null);
                self.writes.push(json!({ "op": "add", "path": path, "value": after }));
            }
        }
    }

    fn fields(&mut self, path: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        for (key, value) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
            let path = format!("{path}/{}", escaped(key));
            self.writes.push(json!({ "op": "remove", "path": path }));
            self.tests.insert(path, value.clone());
        }
        for (key, value) in new {
            self.between(&format!("{path}/{}", escaped(key)), old.get(key), value);
        }
    }
}

/// The value at a path; where there is none, the first part of the path that is missing, as null.
fn seen(object: &Value, path: &str) -> (String, Value) {
    let ends = path.match_indices('/').map(|(end, _)| end).skip(1);
    let mut parts = ends.chain([path.len()]).map(|end| &path[..end]);
    let missing = parts.find(|part| object.pointer(part).is_none());
    let path = missing.unwrap_or(path);
    (path.to_owned(), object.pointer(path).cloned().unwrap_or_default())
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(Map::is_empty)
}

/// A key as a part of a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(path: &str, value: &Value) -> Value {
        json!({ "op": "test", "path": path, "value": value })
    }

    /// The patch between two objects, under preconditions at these paths.
    fn between(before: &Value, after: &Value, paths: &[&str]) -> Value {
        let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
        operations(before, after, &paths).unwrap_or_default()
    }

    #[test]
    fn what_is_replaced_is_tested_and_nothing_else() {
        let taints = json!([{ "key": "a" }, { "key": "b" }]);
        let before = json!({
            "metadata": { "uid": "u", "labels": { "keep": "1", "old": "1", "gone": "1" } },
            "spec": { "taints": taints },
            "status": { "heartbeat": 1 },
        });
        let after = json!({
            "metadata": { "uid": "u", "labels": { "keep": "1", "old": "2", "new/one~": "1" } },
            "spec": { "taints": [{ "key": "b" }] },
            "status": { "heartbeat": 1 },
        });
        let wanted = json!([
            test("/metadata/labels/gone", &json!("1")),
            test("/metadata/labels/new~1one~0", &Value::Null),
            test("/metadata/labels/old", &json!("1")),
            test("/metadata/uid", &json!("u")),
            test("/spec/taints", &taints),
            { "op": "remove", "path": "/metadata/labels/gone" },
            { "op": "add", "path": "/metadata/labels/new~1one~0", "value": "1" },
            { "op": "replace", "path": "/metadata/labels/old", "value": "2" },
            { "op": "replace", "path": "/spec/taints", "value": [{ "key": "b" }] },
        ]);
        assert_eq!(between(&before, &after, &["/metadata/uid", "/spec/taints"]), wanted);
    }

    #[test]
    fn what_is_equal_is_not_written() {
        let object = json!({ "metadata": { "labels": { "a": "1" } } });
        assert_eq!(operations(&object, &object, &["/metadata/uid".to_owned()]), None);
        let emptied = json!({ "metadata": { "labels": { "a": "1" }, "annotations": {} } });
        assert_eq!(operations(&object, &emptied, &[]), None, "an empty map is none");
    }

    #[test]
    fn a_map_that_is_missing_is_made() {
        let before = json!({ "metadata": {} });
        let after = json!({ "metadata": { "labels": { "a/b": "1" } }, "spec": { "taints": [] } });
        let wanted = json!([
            test("/metadata/labels", &Value::Null),
            test("/spec", &Value::Null),
            { "op": "add", "path": "/metadata/labels", "value": { "a/b": "1" } },
            { "op": "add", "path": "/spec", "value": { "taints": [] } },
        ]);
        assert_eq!(between(&before, &after, &[]), wanted);
    }

    #[test]
    fn a_precondition_that_is_missing_is_tested_where_it_begins_to_be() {
        let object = json!({ "spec": {}, "status": { "conditions": [{ "type": "Ready" }] } });
        let seen = |path| seen(&object, path);
        assert_eq!(seen("/spec/taints"), ("/spec/taints".to_owned(), Value::Null));
        assert_eq!(seen("/metadata/labels/a~1b"), ("/metadata".to_owned(), Value::Null));
        let ready = "/status/conditions/0/type";
        assert_eq!(seen(ready), (ready.to_owned(), json!("Ready")));
    }
}
