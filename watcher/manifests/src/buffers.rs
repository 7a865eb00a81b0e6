//! CapacityBuffers and what they refer to, all from the same documents.
//!
//! Invariant: a buffer that cannot be used is told of; one whose workload is not among the
//! documents keeps no room, as in a cluster without that workload.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplate;
use longshore_watcher::api::CapacityBuffer;
use longshore_watcher::index::buffers::Outcome;
use longshore_watcher::index::{Index, Name, name_of};
use longshore_watcher::project::buffer::{Reference, Referred, reference};

use crate::manifest::Place;
use crate::workload::{Owner, Workload};

/// PodTemplates by namespace and name.
pub type Templates = BTreeMap<Name, PodTemplate>;

/// What buffers may refer to.
pub struct Around<'a> {
    /// Workloads.
    pub workloads: &'a BTreeMap<Owner, (Workload, Place)>,
    /// PodTemplates.
    pub templates: &'a Templates,
}

/// What is wrong with a buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// What it refers to is not among the documents.
    Missing(String),
    /// A field cannot be used.
    Unusable(String),
}

/// Keeps a PodTemplate for the buffers that refer to it.
pub fn note(templates: &mut Templates, template: PodTemplate) {
    templates.insert(name_of(&template.metadata), template);
}

/// Resolves all buffers of an index; returns those that cannot be, by
/// `CapacityBuffer/namespace/name`.
pub fn resolve(index: &mut Index, around: &Around<'_>) -> Vec<(String, Fault)> {
    let buffers: Vec<Arc<CapacityBuffer>> =
        index.buffers().map(|entry| Arc::clone(&entry.object)).collect();
    let mut faults = Vec::new();
    for buffer in buffers {
        let (namespace, name) = name_of(&buffer.metadata);
        let named = format!("CapacityBuffer/{namespace}/{name}");
        match around.find(&buffer, &namespace) {
            Ok(referred) => index.resolve_buffer(&buffer, Ok(referred)),
            Err(fault) => faults.push((named, fault)),
        }
    }
    let refused = index.buffers().filter_map(|entry| {
        let Some(Outcome::Refused { message, .. }) = &entry.outcome else { return None };
        let (namespace, name) = name_of(&entry.object.metadata);
        let named = format!("CapacityBuffer/{namespace}/{name}");
        Some((named, Fault::Unusable(message.clone())))
    });
    faults.extend(refused);
    faults
}

impl Around<'_> {
    fn find(&self, buffer: &CapacityBuffer, namespace: &str) -> Result<Referred, Fault> {
        let workload = |kind: &str, name: &str| {
            let owner = (namespace.to_owned(), format!("{kind}/{name}"));
            let found = self.workloads.get(&owner).and_then(|(workload, _)| workload.referred());
            found.ok_or_else(|| missing(kind, namespace, name))
        };
        match reference(&buffer.spec).map_err(Fault::Unusable)? {
            Reference::PodTemplate(name) => {
                let found = self.templates.get(&(namespace.to_owned(), name.to_owned()));
                let found = found.ok_or_else(|| missing("PodTemplate", namespace, name))?;
                let template = found.template.clone().unwrap_or_default();
                Ok(Referred { template, generation: found.metadata.generation, scale: None })
            }
            Reference::Deployment(name) => workload("Deployment", name),
            Reference::StatefulSet(name) => workload("StatefulSet", name),
            Reference::ReplicaSet(name) => workload("ReplicaSet", name),
        }
    }
}

fn missing(kind: &str, namespace: &str, name: &str) -> Fault {
    Fault::Missing(format!("{kind}/{namespace}/{name} is not among the objects; add it"))
}
