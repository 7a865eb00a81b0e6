//! What the API server adds to and refuses of built-in kinds.
//!
//! Invariant: a stored object carries the defaults that clients of a real API server rely on.

mod pod;
mod workload;

use serde_json::{Value, json};

use super::store::Store;

/// Why an object breaks a rule of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Path of the field.
    pub field: &'static str,
    /// Why, in the API server's words.
    pub message: String,
}

/// Defaults and checks a new object. `resource` is the plural and group.
///
/// # Errors
/// [`Fault`] for the first rule broken.
pub fn on_create(
    resource: &str,
    object: &mut Value,
    store: &Store,
    stamp: &str,
) -> Result<(), Fault> {
    match resource {
        "pods" => pod::on_create(object, store)?,
        "namespaces" => {
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["status"]["phase"] = json!("Active");
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        "nodes" => start_tainted(object),
        "customresourcedefinitions.apiextensions.k8s.io" => establish(object, stamp),
        _ => workload::default_spec(resource, object),
    }
    Ok(())
}

/// Defaults and checks a changed object.
///
/// # Errors
/// [`Fault`] for a field that may not change.
pub fn on_update(resource: &str, old: &Value, new: &mut Value, stamp: &str) -> Result<(), Fault> {
    match resource {
        "pods" => pod::on_update(old, new),
        "customresourcedefinitions.apiextensions.k8s.io" => {
            establish(new, stamp);
            Ok(())
        }
        _ => {
            workload::default_spec(resource, new);
            workload::check_immutable(resource, old, new)
        }
    }
}

/// New nodes carry the not-ready taint until the node lifecycle controller takes it off.
fn start_tainted(node: &mut Value) {
    let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
    let taints = &mut node["spec"]["taints"];
    match taints.as_array_mut() {
        Some(list) if list.contains(&taint) => {}
        Some(list) => list.push(taint),
        None => *taints = json!([taint]),
    }
}

fn establish(definition: &mut Value, stamp: &str) {
    let names = definition["spec"]["names"].clone();
    let stored = super::object::items(&definition["spec"]["versions"])
        .iter()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect::<Value>();
    definition["status"]["acceptedNames"] = names;
    definition["status"]["storedVersions"] = stored;
    let conditions = [
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ];
    for (kind, reason, message) in conditions {
        let condition =
            json!({ "type": kind, "status": "True", "reason": reason, "message": message });
        super::object::set_condition(definition, condition, stamp);
    }
}
