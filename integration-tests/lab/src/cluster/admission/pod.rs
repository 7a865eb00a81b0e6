//! Defaults and rules of pods.
//!
//! Invariant: a stored pod names its scheduler, priority, grace period and tolerations.

use serde_json::{Value, json};

use super::Fault;
use crate::cluster::object;
use crate::cluster::store::{Key, Store};

const PRIORITY_CLASSES: &str = "priorityclasses.scheduling.k8s.io";
/// Seconds a pod stays on a node that stopped answering, unless it says otherwise.
const DEFAULT_TOLERATION_SECONDS: i64 = 300;
/// Fields of a pod's spec that may change after creation.
const MUTABLE: [&str; 4] =
    ["activeDeadlineSeconds", "terminationGracePeriodSeconds", "schedulingGates", "tolerations"];

pub(super) fn on_create(pod: &mut Value, store: &Store) -> Result<(), Fault> {
    if object::items(&pod["spec"]["containers"]).is_empty() {
        let message = "Required value".to_owned();
        return Err(Fault { field: "spec.containers", message });
    }
    default_spec(&mut pod["spec"]);
    default_requests(pod);
    default_tolerations(pod);
    set_priority(pod, store)?;
    pod["status"] = json!({ "phase": "Pending", "qosClass": qos_class(pod) });
    Ok(())
}

/// Fills in the defaults of a pod spec, also inside workload templates.
pub(super) fn default_spec(spec: &mut Value) {
    let defaults = [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
    ];
    for (field, value) in defaults {
        if spec[field].is_null() {
            spec[field] = value;
        }
    }
    if let Some(list) = spec["topologySpreadConstraints"].as_array_mut() {
        for constraint in
            list.iter_mut().filter(|constraint| constraint["whenUnsatisfiable"].is_null())
        {
            constraint["whenUnsatisfiable"] = json!("DoNotSchedule");
        }
    }
    if let Some(containers) = spec["containers"].as_array_mut() {
        for container in containers.iter_mut().filter(|c| c["imagePullPolicy"].is_null()) {
            let tagless = !container["image"].as_str().unwrap_or_default().contains(':');
            container["imagePullPolicy"] = json!(if tagless { "Always" } else { "IfNotPresent" });
        }
    }
}

/// Limits without requests become requests.
fn default_requests(pod: &mut Value) {
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            let limits = container["resources"]["limits"].clone();
            for (resource, quantity) in limits.as_object().into_iter().flatten() {
                if container["resources"]["requests"][resource.as_str()].is_null() {
                    container["resources"]["requests"][resource.as_str()] = quantity.clone();
                }
            }
        }
    }
}

fn default_tolerations(pod: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let has = object::items(&pod["spec"]["tolerations"]).iter().any(|toleration| {
            (toleration["key"] == key || toleration["key"].is_null())
                && (toleration["effect"] == "NoExecute" || toleration["effect"].is_null())
        });
        if has {
            continue;
        }
        let toleration = json!({
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": DEFAULT_TOLERATION_SECONDS,
        });
        match pod["spec"]["tolerations"].as_array_mut() {
            Some(list) => list.push(toleration),
            None => pod["spec"]["tolerations"] = json!([toleration]),
        }
    }
}

fn set_priority(pod: &mut Value, store: &Store) -> Result<(), Fault> {
    let named = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let (name, value, policy) = match named.as_str() {
        "" => {
            let mut classes = store.list(PRIORITY_CLASSES, "", None).map(|(_, class)| &class.value);
            match classes.find(|class| class["globalDefault"] == true) {
                Some(class) => read_class(class),
                None => (String::new(), 0, None),
            }
        }
        "system-node-critical" => (named, 2_000_001_000, None),
        "system-cluster-critical" => (named, 2_000_000_000, None),
        _ => match store.get(PRIORITY_CLASSES, &Key::new("", &named)) {
            Some(class) => read_class(&class.value),
            None => {
                let message = format!("no PriorityClass with name {named} was found");
                return Err(Fault { field: "spec.priorityClassName", message });
            }
        },
    };
    if !name.is_empty() {
        pod["spec"]["priorityClassName"] = json!(name);
    }
    pod["spec"]["priority"] = json!(value);
    if pod["spec"]["preemptionPolicy"].is_null() {
        pod["spec"]["preemptionPolicy"] =
            json!(policy.unwrap_or_else(|| "PreemptLowerPriority".to_owned()));
    }
    Ok(())
}

fn read_class(class: &Value) -> (String, i64, Option<String>) {
    let policy = class["preemptionPolicy"].as_str().map(str::to_owned);
    (object::name(class).to_owned(), class["value"].as_i64().unwrap_or(0), policy)
}

fn qos_class(pod: &Value) -> &'static str {
    let containers = object::items(&pod["spec"]["containers"]);
    let resources = || containers.iter().map(|container| &container["resources"]);
    let is_map = |value: &Value| value.as_object().is_some_and(|map| !map.is_empty());
    if !resources().any(|r| is_map(&r["requests"]) || is_map(&r["limits"])) {
        return "BestEffort";
    }
    let guaranteed = resources().all(|resources| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = &resources["limits"][name];
            !limit.is_null() && *limit == resources["requests"][name]
        })
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

pub(super) fn on_update(old: &Value, new: &Value) -> Result<(), Fault> {
    let frozen = |spec: &Value| {
        let mut spec = spec.clone();
        MUTABLE.iter().for_each(|field| drop(object::remove(&mut spec, field)));
        for list in ["containers", "initContainers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                object::remove(container, "image");
                object::remove(container, "resources");
            }
        }
        [&"containers", &"initContainers"].iter().for_each(|list| {
            if spec[**list].is_null() {
                object::remove(&mut spec, list);
            }
        });
        spec
    };
    if old["spec"] == new["spec"] || frozen(&old["spec"]) == frozen(&new["spec"]) {
        return Ok(());
    }
    let message = "Forbidden: pod updates may not change fields other than \
                   `spec.containers[*].image`, `spec.initContainers[*].image`, \
                   `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing \
                   tolerations), `spec.terminationGracePeriodSeconds`";
    Err(Fault { field: "spec", message: message.to_owned() })
}
