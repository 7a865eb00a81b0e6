//! Deployment -> ReplicaSets.
//!
//! Invariant: during a rolling update no more pods exist than replicas plus maxSurge, and no more
//! available ones are ended than maxUnavailable allows.

use std::sync::Arc;

use serde_json::{Value, json};

use super::work::{Context, Outcome, owner_reference};
use crate::cluster::identity::digest;
use crate::cluster::object;
use crate::cluster::server::{DeleteOptions, Part};
use crate::cluster::store::{Key, Stored};

const RESOURCE: &str = "deployments.apps";
const SETS: &str = "replicasets.apps";
const HASH_LABEL: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key) -> Outcome {
    let Some(deployment) = context.get(RESOURCE, key) else { return Ok(()) };
    if object::is_deleting(&deployment) {
        return Ok(());
    }
    let uid = object::uid(&deployment).to_owned();
    let mut sets = context.list(SETS, &key.namespace);
    sets.retain(|set| object::controller_of(set).is_some_and(|owner| owner["uid"] == uid.as_str()));
    let hash = digest(&deployment["spec"]["template"]);
    let name = format!("{}-{hash}", key.name);
    let Some(current) = sets.iter().position(|set| object::name(set) == name) else {
        return create_set(context, &deployment, &hash, sets.len());
    };
    let current = sets.swap_remove(current);
    if deployment["spec"]["paused"] != true {
        roll(context, &deployment, &current, &sets)?;
    } else {
        scale_to(context, &current, number(&deployment["spec"]["replicas"], 1))?;
    }
    forget_old_sets(context, &deployment, &sets)?;
    sets.push(current.clone());
    write_status(context, &deployment, &current, &sets)
}

fn number(value: &Value, default: i64) -> i64 {
    value.as_i64().unwrap_or(default)
}

fn create_set(context: &Context<'_>, deployment: &Value, hash: &str, earlier: usize) -> Outcome {
    let spec = &deployment["spec"];
    let mut template = spec["template"].clone();
    template["metadata"]["labels"][HASH_LABEL] = json!(hash);
    let mut selector = spec["selector"].clone();
    selector["matchLabels"][HASH_LABEL] = json!(hash);
    // The first set starts at full size; later ones are rolled out.
    let replicas = if earlier == 0 { number(&spec["replicas"], 1) } else { 0 };
    let revision = (earlier + 1).to_string();
    context.create(
        SETS,
        json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{}-{hash}", object::name(deployment)),
                "namespace": deployment["metadata"]["namespace"],
                "labels": template["metadata"]["labels"],
                "annotations": { REVISION: revision },
                "ownerReferences": [owner_reference(deployment)],
            },
            "spec": { "replicas": replicas, "selector": selector, "template": template },
        }),
    )?;
    context.modify(RESOURCE, &Key::of(deployment), Part::Main, |deployment| {
        deployment["metadata"]["annotations"][REVISION] = json!(revision);
    })
}

fn roll(
    context: &Context<'_>,
    deployment: &Value,
    current: &Arc<Stored>,
    old: &[Arc<Stored>],
) -> Outcome {
    let replicas = number(&deployment["spec"]["replicas"], 1);
    let size = |set: &Arc<Stored>| number(&set["spec"]["replicas"], 0);
    let old_size: i64 = old.iter().map(size).sum();
    if old_size == 0 {
        return scale_to(context, current, replicas);
    }
    let exists = |set: &Arc<Stored>| number(&set["status"]["replicas"], 0).max(size(set));
    let available = |set: &Arc<Stored>| number(&set["status"]["availableReplicas"], 0);
    if deployment["spec"]["strategy"]["type"] == "Recreate" {
        old.iter().try_for_each(|set| scale_to(context, set, 0))?;
        let left: i64 = old.iter().map(|set| number(&set["status"]["replicas"], 0)).sum();
        return if left == 0 { scale_to(context, current, replicas) } else { Ok(()) };
    }
    let limits = &deployment["spec"]["strategy"]["rollingUpdate"];
    let surge = share(&limits["maxSurge"], replicas, true);
    let unavailable = share(&limits["maxUnavailable"], replicas, false);
    let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
    let total = exists(current) + old.iter().map(exists).sum::<i64>();
    let room = (replicas + surge - total).max(0);
    let target = (size(current) + room).min(replicas);
    scale_to(context, current, target)?;
    let ready = available(current) + old.iter().map(available).sum::<i64>();
    let mut may_end = (ready - (replicas - unavailable)).max(0);
    for set in old {
        let broken = (size(set) - available(set)).max(0);
        let ended = (broken + may_end).min(size(set));
        may_end -= (ended - broken).max(0);
        scale_to(context, set, size(set) - ended)?;
    }
    Ok(())
}

/// A number or a percentage of the replicas; a quarter by default.
pub(super) fn share(value: &Value, replicas: i64, rounds_up: bool) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    let scaled = replicas * percent.unwrap_or(25);
    if rounds_up { (scaled + 99) / 100 } else { scaled / 100 }
}

fn scale_to(context: &Context<'_>, set: &Value, replicas: i64) -> Outcome {
    if number(&set["spec"]["replicas"], 0) == replicas {
        return Ok(());
    }
    context.modify(SETS, &Key::of(set), Part::Main, |set| set["spec"]["replicas"] = json!(replicas))
}

fn forget_old_sets(context: &Context<'_>, deployment: &Value, old: &[Arc<Stored>]) -> Outcome {
    let kept = number(&deployment["spec"]["revisionHistoryLimit"], 10);
    let mut empty: Vec<&Arc<Stored>> = old
        .iter()
        .filter(|set| number(&set["spec"]["replicas"], 0) == 0)
        .filter(|set| number(&set["status"]["replicas"], 0) == 0)
        .collect();
    empty.sort_by_key(|set| set["metadata"]["creationTimestamp"].as_str().map(str::to_owned));
    let excess = empty.len().saturating_sub(usize::try_from(kept).unwrap_or(0));
    let mut gone = empty.into_iter().take(excess);
    gone.try_for_each(|set| context.delete(SETS, &Key::of(set), &DeleteOptions::default()))
}

fn write_status(
    context: &Context<'_>,
    deployment: &Value,
    current: &Value,
    sets: &[Arc<Stored>],
) -> Outcome {
    let sum = |field: &str| sets.iter().map(|set| number(&set["status"][field], 0)).sum::<i64>();
    let replicas = number(&deployment["spec"]["replicas"], 1);
    let available = sum("availableReplicas");
    let updated = number(&current["status"]["replicas"], 0);
    let limits = &deployment["spec"]["strategy"]["rollingUpdate"];
    let is_available = available >= replicas - share(&limits["maxUnavailable"], replicas, false);
    let is_complete = updated == replicas && sum("replicas") == replicas && available == replicas;
    let fields = json!({
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": sum("replicas"),
        "updatedReplicas": updated,
        "readyReplicas": sum("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": (sum("replicas").max(replicas) - available).max(0),
    });
    let stamp = context.server.clock().stamp();
    let flag = |value: bool| if value { "True" } else { "False" };
    let availability =
        if is_available { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" };
    let progress = if is_complete { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" };
    context.modify(RESOURCE, &Key::of(deployment), Part::Status, |deployment| {
        for (field, value) in fields.as_object().into_iter().flatten() {
            deployment["status"][field.as_str()] = value.clone();
        }
        let available =
            json!({ "type": "Available", "status": flag(is_available), "reason": availability });
        let progressing = json!({ "type": "Progressing", "status": "True", "reason": progress });
        object::set_condition(deployment, available, &stamp);
        object::set_condition(deployment, progressing, &stamp);
    })
}
