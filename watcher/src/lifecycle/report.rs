//! Telling people about objects that cannot be used.
//!
//! Invariant: each is said once, on the object and in the log; a pool or node class also shows it
//! as a condition, until it has been mended.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Resource};
use serde_json::{Value, json};

use crate::api::keys::conditions;
use crate::api::{NodePool, Provisioner};
use crate::directives::Directives;
use crate::events::Happening;
use crate::index::{Left, Name, Source};
use crate::names;
use crate::patch::found;

/// How long after a change people are told: an object is often mended in several steps.
const SETTLE: Duration = Duration::from_millis(200);

/// Tells people, for as long as the watcher leads.
pub async fn run(directives: &Directives) {
    let mut changes = directives.store.changes();
    let mut said: BTreeMap<(Source, Name), Left> = BTreeMap::new();
    loop {
        changes.mark_unchanged();
        let left = directives.store.read(|index| index.left().clone());
        for (key, object) in &left {
            if said.get(key).is_none_or(|before| before.fault != object.fault) {
                directives.say_left(key.0, object).await;
            }
        }
        for ((source, name), _) in said.iter().filter(|(key, _)| !left.contains_key(key)) {
            directives.set_valid(*source, name, None).await;
        }
        directives.counters.left.set(i64::try_from(left.len()).unwrap_or(i64::MAX));
        said = left;
        if changes.changed().await.is_err() {
            return;
        }
        tokio::time::sleep(SETTLE).await;
    }
}

/// What is done with an object that cannot be used.
const fn treatment(source: Source) -> &'static str {
    if source.is_rule() { "left out" } else { "kept as it was last read, with all around it," }
}

impl Directives {
    async fn say_left(&self, source: Source, left: &Left) {
        let text = left.fault.to_string();
        tracing::warn!(object = left.fault.object, "cannot be used: {text}");
        self.events.publish(Happening {
            about: left.reference.clone(),
            warning: true,
            reason: "InvalidObject".to_owned(),
            note: format!("{} until it is mended: {text}", treatment(source)),
        });
        let name = (
            left.reference.namespace.clone().unwrap_or_default(),
            left.reference.name.clone().unwrap_or_default(),
        );
        self.set_valid(source, &name, Some(&text)).await;
    }

    /// Sets or clears the condition, where the kind has one. The object may not fit its type, so it
    /// is handled as plain data.
    async fn set_valid(&self, source: Source, name: &Name, problem: Option<&str>) {
        let resource = match source {
            Source::NodePool => ApiResource::erase::<NodePool>(&()),
            Source::Provisioner => ApiResource::erase::<Provisioner>(&()),
            Source::EC2NodeClass => ApiResource::erase::<crate::api::EC2NodeClass>(&()),
            Source::NodeOverlay => ApiResource::erase::<crate::api::NodeOverlay>(&()),
            Source::Namespace
            | Source::StorageClass
            | Source::DeviceClass
            | Source::ResourceClaimTemplate
            | Source::ResourceSlice
            | Source::PersistentVolume
            | Source::PersistentVolumeClaim
            | Source::AWSNodeTemplate
            | Source::NodeClaim
            | Source::Node
            | Source::CSINode
            | Source::VolumeAttachment
            | Source::DaemonSet
            | Source::PodDisruptionBudget
            | Source::CapacityBuffer
            | Source::Pod => return,
        };
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        if let Err(error) = write(&api, &name.1, problem, &self.now()).await {
            tracing::debug!(%error, name = name.1, "condition not written");
        }
    }
}

async fn write(
    api: &Api<DynamicObject>,
    name: &str,
    problem: Option<&str>,
    at: &Time,
) -> kube::Result<()> {
    let Some(object) = api.get_opt(name).await? else { return Ok(()) };
    let old = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let mut list = old.cloned().unwrap_or_default();
    let kinds: &[&str] = match problem {
        Some(_) => &[conditions::VALIDATION_SUCCEEDED, conditions::READY],
        // Whether it is ready is for its node class and the scheduler to say.
        None => &[conditions::VALIDATION_SUCCEEDED],
    };
    for kind in kinds {
        list.retain(|c| c["type"] != **kind);
        list.push(json!({
            "type": kind,
            "status": if problem.is_some() { "False" } else { "True" },
            "reason": if problem.is_some() { "Invalid" } else { "ValidationSucceeded" },
            "message": problem.unwrap_or_default(),
            "observedGeneration": object.meta().generation,
            "lastTransitionTime": at,
        }));
    }
    let version = &object.metadata.resource_version;
    let patch =
        json!({ "metadata": { "resourceVersion": version }, "status": { "conditions": list } });
    let params = PatchParams {
        field_manager: Some(names::FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    found(api.patch_status(name, &params, &Patch::Merge(&patch)).await)?;
    Ok(())
}
