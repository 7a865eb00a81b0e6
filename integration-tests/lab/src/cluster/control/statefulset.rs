//! StatefulSet -> Pods.
//!
//! Invariant: pods carry ordinals from 0; with OrderedReady one is made only when its predecessor
//! is ready, and the highest goes first.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::work::{Context, Outcome, count, pod_from_template};
use crate::cluster::identity::digest;
use crate::cluster::object;
use crate::cluster::schedule::pod::PodView;
use crate::cluster::server::DeleteOptions;
use crate::cluster::store::Key;

const RESOURCE: &str = "statefulsets.apps";

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key) -> Outcome {
    let Some(set) = context.get(RESOURCE, key) else { return Ok(()) };
    let pods: BTreeMap<i64, Arc<PodView>> = context
        .world
        .pods_of(object::uid(&set))
        .into_iter()
        .filter_map(|pod| Some((ordinal(&pod.key.name)?, pod)))
        .collect();
    if !object::is_deleting(&set) {
        step(context, &set, &pods)?;
    }
    let ready = count(pods.values().filter(|pod| pod.is_ready));
    let revision = format!("{}-{}", key.name, digest(&set["spec"]["template"]));
    context.set_status(
        RESOURCE,
        key,
        &json!({
            "observedGeneration": set["metadata"]["generation"],
            "replicas": count(pods.values()),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "currentReplicas": count(pods.values()),
            "updatedReplicas": count(pods.values()),
            "currentRevision": revision,
            "updateRevision": revision,
        }),
    )
}

fn ordinal(name: &str) -> Option<i64> {
    name.rsplit_once('-')?.1.parse().ok()
}

fn step(context: &Context<'_>, set: &Value, pods: &BTreeMap<i64, Arc<PodView>>) -> Outcome {
    let wanted = set["spec"]["replicas"].as_i64().unwrap_or(1);
    let is_ordered = set["spec"]["podManagementPolicy"] != "Parallel";
    for (_, pod) in pods.iter().filter(|(_, pod)| pod.is_terminal() && !pod.is_deleting) {
        context.delete("pods", &pod.key, &DeleteOptions::default())?;
    }
    for ordinal in 0..wanted {
        match pods.get(&ordinal) {
            None => {
                create(context, set, ordinal)?;
                if is_ordered {
                    return Ok(());
                }
            }
            Some(pod) if is_ordered && !pod.is_ready => return Ok(()),
            Some(_) => {}
        }
    }
    for (_, pod) in pods.range(wanted..).rev() {
        if !pod.is_deleting {
            context.delete("pods", &pod.key, &DeleteOptions::default())?;
        }
        if is_ordered {
            return Ok(());
        }
    }
    Ok(())
}

fn create(context: &Context<'_>, set: &Value, ordinal: i64) -> Outcome {
    let name = format!("{}-{ordinal}", object::name(set));
    let mut pod = pod_from_template(set, &set["spec"]["template"]);
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
    pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
    pod["spec"]["hostname"] = json!(name);
    for claim in object::items(&set["spec"]["volumeClaimTemplates"]) {
        let claim_name = format!("{}-{name}", object::name(claim));
        ensure_claim(context, set, claim, &claim_name)?;
        let volume = json!({
            "name": object::name(claim),
            "persistentVolumeClaim": { "claimName": claim_name },
        });
        match pod["spec"]["volumes"].as_array_mut() {
            Some(volumes) => volumes.push(volume),
            None => pod["spec"]["volumes"] = json!([volume]),
        }
    }
    context.create("pods", pod)
}

fn ensure_claim(context: &Context<'_>, set: &Value, claim: &Value, name: &str) -> Outcome {
    let namespace = object::namespace(set);
    if context.get("persistentvolumeclaims", &Key::new(namespace, name)).is_some() {
        return Ok(());
    }
    let labels = &claim["metadata"]["labels"];
    context.create(
        "persistentvolumeclaims",
        json!({
            "metadata": { "name": name, "namespace": namespace, "labels": labels },
            "spec": claim["spec"],
        }),
    )
}
