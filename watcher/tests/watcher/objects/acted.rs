//! Which fields of a specification nothing acts on: whatever they hold, what goes to the scheduler
//! is the same.
//!
//! Invariant: derived from the schema and the projection. Every field is given a value; then one
//! at a time is taken away, and given other ones. That a field goes to the scheduler does not prove
//! that it is obeyed there.

use longshore_watcher::api::Kind;
use longshore_watcher::api::crd::decode;
use longshore_watcher::project::{node_class, overlay, pool};
use serde_json::{Map, Value, json};

use super::facts::Object;

/// What goes to the scheduler for an object; nothing for one that is not accepted.
pub(super) type Projection = fn(Value) -> Option<String>;

/// The kinds that users write, and what is sent for them.
pub(super) const PROJECTED: [(Kind, Projection); 3] = [
    (Kind::NodePool, |object| {
        pool::pool(&decode(object).ok()?).ok().map(|sent| format!("{sent:?}"))
    }),
    (Kind::NodeOverlay, |object| {
        overlay::overlay(&decode(object).ok()?).ok().map(|sent| format!("{sent:?}"))
    }),
    (Kind::EC2NodeClass, |object| {
        node_class::ec2_node_class(&decode(object).ok()?).ok().map(|sent| format!("{sent:?}"))
    }),
];

/// How many values are tried for a field: there is no enumeration with more.
const VALUES: usize = 10;
/// One of them excludes the other.
const EXCLUSIVE: [&str; 2] = ["spec.price", "spec.priceAdjustment"];

/// Fields that nothing acts on.
pub(super) fn unused(kind: Kind, object: &Object, project: Projection) -> Vec<String> {
    let schema = json!(kind.schema());
    let spec = &schema["properties"]["spec"];
    let sample = |at: usize| {
        json!({
            "apiVersion": kind.api_version(), "kind": kind.name(), "metadata": { "name": "x" },
            "spec": sample("spec", spec, at),
        })
    };
    let samples: Vec<Value> = (0..VALUES).map(sample).collect();
    object.leaves().filter(|path| !is_acted_on(path, &samples, project)).cloned().collect()
}

/// Whether the field at a path makes a difference in any of the samples that are accepted: in one,
/// another field may hide what it does.
fn is_acted_on(path: &str, samples: &[Value], project: Projection) -> bool {
    let place = pointer(path);
    let other = pointer(EXCLUSIVE[usize::from(path != EXCLUSIVE[1])]);
    let bases = samples.iter().filter_map(|sample| {
        let mut base = sample.clone();
        remove(&mut base, &other);
        project(base.clone()).map(|sent| (base, sent))
    });
    let bases: Vec<(Value, String)> = bases.collect();
    assert!(!bases.is_empty(), "no sample is accepted; the first: {}", samples[0]);
    bases.iter().any(|(base, sent)| {
        let mut without = base.clone();
        remove(&mut without, &place);
        let others = samples.iter().map(|sample| {
            let mut object = base.clone();
            object.pointer_mut(&place).unwrap().clone_from(sample.pointer(&place).unwrap());
            object
        });
        others.chain([without]).filter_map(project).any(|it| it != *sent)
    })
}

/// Where a path leads in a sample: to the first of a list, and the one entry of a map.
fn pointer(path: &str) -> String {
    format!("/{}", path.replace("[]", "/0").replace('.', "/"))
}

fn remove(object: &mut Value, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.remove(name)),
        Some(Value::Array(items)) => items.clear(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
    }
}

/// One of the values that a schema allows, with all fields.
fn sample(path: &str, schema: &Value, at: usize) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        return values[at % values.len()].clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let fields = properties
                .map(|(name, it)| (name.clone(), sample(&format!("{path}.{name}"), it, at)));
            let mut fields: Map<String, Value> = fields.collect();
            if schema["additionalProperties"].is_object() {
                let value = sample(&format!("{path}.*"), &schema["additionalProperties"], at);
                fields.insert("*".to_owned(), value);
            }
            Value::Object(fields)
        }
        Some("array") => json!([sample(&format!("{path}[]"), &schema["items"], at)]),
        Some("boolean") => json!(at.is_multiple_of(2)),
        Some("integer") => json!(at + 1),
        _ => json!(word(path, at + 1)),
    }
}

/// A text that a field takes.
fn word(path: &str, at: usize) -> String {
    match path.rsplit('.').next().unwrap_or_default() {
        "consolidateAfter" | "expireAfter" | "terminationGracePeriod" | "duration" => {
            format!("{at}h")
        }
        "nodes" if path.contains("budgets") => format!("{at}%"),
        "timeAdded" => format!("2026-01-{at:02}T00:00:00Z"),
        "schedule" => format!("0 {at} * * *"),
        "priceAdjustment" => format!("+{at}"),
        "price" | "values[]" => at.to_string(),
        _ => format!("{at}Gi"),
    }
}

#[test]
fn a_field_that_is_not_looked_at_is_found() {
    let samples = [1, 2].map(|at| json!({ "spec": { "a": [at], "b": { "*": at }, "c": at } }));
    let project: Projection = |object| {
        let seen = &object["spec"]["a"];
        Some(format!("{seen} {}", object["spec"]["b"]))
    };
    let acted = ["spec.a[]", "spec.b.*", "spec.c"].map(|path| is_acted_on(path, &samples, project));
    assert_eq!(acted, [true, true, false]);
}
