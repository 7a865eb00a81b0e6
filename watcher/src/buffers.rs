//! Reads what CapacityBuffers refer to.
//!
//! Invariant: only objects that some buffer names are read, one by one, when the buffer changes and from
//! time to time: a watch of every workload would cost much and tell little.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::PodTemplate;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::api::CapacityBuffer;
use crate::api::capacity_buffer::{CapacityBufferSpec, ScalableReference};
use crate::index::buffers::Found;
use crate::index::{Index, Name, Store, name_of};
use crate::project::buffer::Referred;

/// How late a change of a template or of a workload's replicas may be noticed.
const ROUND: Duration = Duration::from_secs(30);
/// How long the API server may take for each object.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keeps buffers resolved.
///
/// # Errors
/// When the store has ended, which it does with the process.
pub async fn run(client: Client, store: Store) -> anyhow::Result<()> {
    let mut changes = store.changes();
    let mut read: BTreeMap<Name, CapacityBufferSpec> = BTreeMap::new();
    let mut round_at = Instant::now() + ROUND;
    loop {
        changes.mark_unchanged();
        let buffers = store.read(objects);
        if round_at <= Instant::now() {
            read.clear();
            round_at = Instant::now() + ROUND;
        }
        let known = |buffer: &Arc<CapacityBuffer>| name_of(&buffer.metadata);
        read.retain(|name, _| buffers.iter().any(|buffer| known(buffer) == *name));
        for buffer in &buffers {
            if read.get(&known(buffer)) != Some(&buffer.spec) {
                let found = find(&client, buffer).await;
                store.write(|index| index.resolve_buffer(buffer, found));
                read.insert(known(buffer), buffer.spec.clone());
            }
        }
        tokio::select! {
            changed = changes.changed() => changed?,
            () = tokio::time::sleep_until(round_at) => {}
        }
    }
}

fn objects(index: &Index) -> Vec<Arc<CapacityBuffer>> {
    index.buffers().map(|entry| Arc::clone(&entry.object)).collect()
}

async fn find(client: &Client, buffer: &CapacityBuffer) -> Found {
    let namespace = buffer.namespace().unwrap_or_default();
    let place = Place { client, namespace: &namespace };
    match (&buffer.spec.pod_template_ref, &buffer.spec.scalable_ref) {
        (Some(template), None) => {
            let found: PodTemplate = place.get(&template.name, "PodTemplateNotFound").await?;
            let generation = found.metadata.generation;
            Ok(Referred { template: found.template.unwrap_or_default(), generation, scale: None })
        }
        (None, Some(workload)) => place.workload(workload).await,
        (Some(_), Some(_)) | (None, None) => {
            let message = "spec: set one of podTemplateRef and scalableRef";
            Err(("ResolutionFailed", message.to_owned()))
        }
    }
}

/// Where objects are read.
struct Place<'a> {
    client: &'a Client,
    namespace: &'a str,
}

impl Place<'_> {
    async fn workload(&self, reference: &ScalableReference) -> Found {
        let (name, missing) = (reference.name.as_str(), "ScalableRefNotFound");
        match (reference.api_group.as_str(), reference.kind.as_str()) {
            ("apps" | "", "Deployment") => {
                let found: Deployment = self.get(name, missing).await?;
                let spec = found.spec.unwrap_or_default();
                Ok(referred(spec.template, spec.replicas, found.metadata.generation))
            }
            ("apps" | "", "StatefulSet") => {
                let found: StatefulSet = self.get(name, missing).await?;
                let spec = found.spec.unwrap_or_default();
                Ok(referred(spec.template, spec.replicas, found.metadata.generation))
            }
            ("apps" | "", "ReplicaSet") => {
                let found: ReplicaSet = self.get(name, missing).await?;
                let spec = found.spec.unwrap_or_default();
                let template = spec.template.unwrap_or_default();
                Ok(referred(template, spec.replicas, found.metadata.generation))
            }
            (group, kind) => Err((
                "ResolutionFailed",
                format!(
                    "spec.scalableRef: {group}/{kind} is not read; use a Deployment, StatefulSet or \
                     ReplicaSet of apps, or a podTemplateRef"
                ),
            )),
        }
    }

    async fn get<K>(&self, name: &str, missing: &'static str) -> Result<K, (&'static str, String)>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace);
        let what = || format!("{} {}/{name}", K::kind(&()), self.namespace);
        match tokio::time::timeout(PATIENCE, api.get_opt(name)).await {
            Ok(Ok(Some(object))) => Ok(object),
            Ok(Ok(None)) => Err((missing, format!("{} does not exist; create it", what()))),
            Ok(Err(error)) => {
                Err(("ResolutionFailed", format!("{} cannot be read: {error}", what())))
            }
            Err(_) => {
                let message = format!("{} cannot be read: the API server is slow", what());
                Err(("ResolutionFailed", message))
            }
        }
    }
}

fn referred(
    template: k8s_openapi::api::core::v1::PodTemplateSpec,
    replicas: Option<i32>,
    generation: Option<i64>,
) -> Referred {
    // The API server fills in one where none is given.
    Referred { template, generation, scale: Some(replicas.unwrap_or(1)) }
}
