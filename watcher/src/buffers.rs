//! Reads what CapacityBuffers refer to.
//!
//! Invariant: only objects that some buffer names are read, one by one, when the buffer changes and
//! from time to time: a watch of every workload would cost much and tell little.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::PodTemplate;
use kube::{Api, Client, Resource, ResourceExt as _};
use longshore_runtime::planted;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::api::CapacityBuffer;
use crate::api::capacity_buffer::CapacityBufferSpec;
use crate::index::buffers::{BufferEntry, Found, Outcome};
use crate::index::{Index, Name, Store, name_of};
use crate::project::buffer::{self, Reference, Referred};

/// How late a change of a template or of a workload's replicas may be noticed.
const ROUND: Duration = Duration::from_secs(30);
/// How long the API server may take for each object.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a buffer is refused whose workload is not there.
const SCALABLE_NOT_FOUND: &str = "ScalableRefNotFound";

/// Why a buffer is refused whose reference cannot be read for now.
const UNREAD: &str = "ReadFailed";

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
                if !keeps(&store, buffer, &found) {
                    store.write(|index| index.resolve_buffer(buffer, found));
                }
                read.insert(known(buffer), buffer.spec.clone());
            }
        }
        tokio::select! {
            biased;
            changed = changes.changed() => changed?,
            () = tokio::time::sleep_until(round_at) => {}
        }
    }
}

/// True when what was found of a buffer before stands: the API server says nothing now, which does
/// not make the room free that the buffer keeps.
fn keeps(store: &Store, buffer: &CapacityBuffer, found: &Found) -> bool {
    let Err((UNREAD, message)) = found else { return false };
    let resolved = store.read(|index| {
        let same =
            |entry: &&BufferEntry| name_of(&entry.object.metadata) == name_of(&buffer.metadata);
        let entry = index.buffers().find(same);
        entry.is_some_and(|entry| matches!(entry.outcome, Some(Outcome::Resolved { .. })))
    });
    if resolved {
        tracing::warn!(buffer = buffer.name_any(), "the buffer stays as it was: {message}");
    }
    resolved && !planted::is("S3b")
}

fn objects(index: &Index) -> Vec<Arc<CapacityBuffer>> {
    index.buffers().map(|entry| Arc::clone(&entry.object)).collect()
}

async fn find(client: &Client, buffer: &CapacityBuffer) -> Found {
    let namespace = buffer.namespace().unwrap_or_default();
    let place = Place { client, namespace: &namespace };
    let reference = buffer::reference(&buffer.spec);
    match reference.map_err(|message| ("ResolutionFailed", message))? {
        Reference::PodTemplate(name) => {
            let found: PodTemplate = place.get(name, "PodTemplateNotFound").await?;
            let generation = found.metadata.generation;
            Ok(Referred { template: found.template.unwrap_or_default(), generation, scale: None })
        }
        Reference::Deployment(name) => {
            let found: Deployment = place.get(name, SCALABLE_NOT_FOUND).await?;
            let spec = found.spec.unwrap_or_default();
            Ok(Referred::workload(spec.template, spec.replicas, found.metadata.generation))
        }
        Reference::StatefulSet(name) => {
            let found: StatefulSet = place.get(name, SCALABLE_NOT_FOUND).await?;
            let spec = found.spec.unwrap_or_default();
            Ok(Referred::workload(spec.template, spec.replicas, found.metadata.generation))
        }
        Reference::ReplicaSet(name) => {
            let found: ReplicaSet = place.get(name, SCALABLE_NOT_FOUND).await?;
            let spec = found.spec.unwrap_or_default();
            let template = spec.template.unwrap_or_default();
            Ok(Referred::workload(template, spec.replicas, found.metadata.generation))
        }
    }
}

/// Where objects are read.
struct Place<'a> {
    client: &'a Client,
    namespace: &'a str,
}

impl Place<'_> {
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
            Ok(Err(error)) => Err((UNREAD, format!("{} cannot be read: {error}", what()))),
            Err(_) => {
                let message = format!("{} cannot be read: the API server is slow", what());
                Err((UNREAD, message))
            }
        }
    }
}

#[cfg(test)]
mod tests;
