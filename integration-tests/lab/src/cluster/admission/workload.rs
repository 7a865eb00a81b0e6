//! Defaults of workloads and other namespaced built-in kinds.
//!
//! Invariant: defaults are idempotent; applying them to a stored object changes nothing.

use serde_json::{Value, json};

use super::{Fault, pod};

pub(super) fn default_spec(resource: &str, object: &mut Value) {
    for (pointer, value) in defaults(resource) {
        fill(object, pointer, value);
    }
    if has_template(resource) {
        if object["spec"]["template"]["spec"].is_object() {
            pod::default_spec(&mut object["spec"]["template"]["spec"]);
        }
        default_selector(object);
    }
    if resource == "jobs.batch" {
        complete_job(object);
    }
}

fn has_template(resource: &str) -> bool {
    ["deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps"]
        .contains(&resource)
}

fn defaults(resource: &str) -> Vec<(&'static [&'static str], Value)> {
    match resource {
        "deployments.apps" => vec![
            (&["replicas"], json!(1)),
            (&["revisionHistoryLimit"], json!(10)),
            (&["progressDeadlineSeconds"], json!(600)),
            (&["strategy", "type"], json!("RollingUpdate")),
        ],
        "replicasets.apps" => vec![(&["replicas"], json!(1))],
        "statefulsets.apps" => vec![
            (&["replicas"], json!(1)),
            (&["podManagementPolicy"], json!("OrderedReady")),
            (&["updateStrategy", "type"], json!("RollingUpdate")),
        ],
        "daemonsets.apps" => vec![(&["updateStrategy", "type"], json!("RollingUpdate"))],
        "jobs.batch" => {
            vec![(&["backoffLimit"], json!(6)), (&["completionMode"], json!("NonIndexed"))]
        }
        "services" => vec![(&["type"], json!("ClusterIP")), (&["sessionAffinity"], json!("None"))],
        "persistentvolumeclaims" => vec![(&["volumeMode"], json!("Filesystem"))],
        _ => Vec::new(),
    }
}

fn fill(object: &mut Value, path: &[&str], value: Value) {
    let slot = path.iter().fold(&mut object["spec"], |slot, step| &mut slot[*step]);
    if slot.is_null() {
        *slot = value;
    }
}

/// Without a selector the template's labels select; apps/v1 demands one, so this is lenient.
fn default_selector(object: &mut Value) {
    if object["spec"]["selector"].is_null() {
        let labels = object["spec"]["template"]["metadata"]["labels"].clone();
        object["spec"]["selector"] = json!({ "matchLabels": labels });
    }
}

fn complete_job(job: &mut Value) {
    let spec = &mut job["spec"];
    if spec["parallelism"].is_null() {
        spec["parallelism"] = json!(1);
    }
    if spec["completions"].is_null() && spec["parallelism"] == 1 {
        spec["completions"] = json!(1);
    }
    let uid = job["metadata"]["uid"].clone();
    if job["spec"]["selector"].is_null() {
        job["spec"]["selector"] =
            json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
    }
    let name = job["metadata"]["name"].clone();
    let labels = &mut job["spec"]["template"]["metadata"]["labels"];
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("job-name", &name),
    ] {
        if labels[label].is_null() {
            labels[label] = value.clone();
        }
    }
    if job["spec"]["template"]["spec"].is_object() {
        pod::default_spec(&mut job["spec"]["template"]["spec"]);
    }
}

pub(super) fn check_immutable(resource: &str, old: &Value, new: &Value) -> Result<(), Fault> {
    let fixed = has_template(resource) || resource == "jobs.batch";
    if fixed && old["spec"]["selector"] != new["spec"]["selector"] {
        let message = "Invalid value: field is immutable".to_owned();
        return Err(Fault { field: "spec.selector", message });
    }
    Ok(())
}
