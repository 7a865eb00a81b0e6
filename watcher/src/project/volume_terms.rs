//! Where a volume, or volumes of a class, can be used, as terms over node labels.
//!
//! Invariant: pure; a term that cannot be read constrains nothing.

use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::StorageClass;
use longshore_proto::types::v1::{Requirement, RequirementTerm};

use super::requirement;
use crate::names;

/// Where a volume can be used.
#[must_use]
pub fn volume_terms(volume: &PersistentVolume) -> Vec<RequirementTerm> {
    let Some(spec) = &volume.spec else { return Vec::new() };
    let on_one_host = spec.local.is_some() || spec.host_path.is_some();
    let required = spec.node_affinity.as_ref().and_then(|a| a.required.as_ref());
    // The API server has validated these; a term that cannot be read constrains nothing.
    let terms = required.and_then(|r| requirement::node_terms(r).ok()).unwrap_or_default();
    let mut terms: Vec<_> = terms
        .into_iter()
        .map(|mut term| {
            // The host of a local volume is gone when its pod has to move.
            term.requirements.retain(|r| !(on_one_host && r.key == names::HOSTNAME));
            term
        })
        .filter(|term| !term.requirements.is_empty())
        .collect();
    if terms.is_empty() {
        terms.extend(label_term(volume));
    }
    terms
}

/// Zones in the labels of a volume from before volumes had node affinity.
fn label_term(volume: &PersistentVolume) -> Option<RequirementTerm> {
    let labels = volume.metadata.labels.as_ref()?;
    let zones = labels.iter().filter(|(key, _)| names::canonical(key) == names::ZONE);
    let requirements: Vec<Requirement> = zones
        .map(|(key, value)| requirement::within(key, value.split("__").map(str::to_owned)))
        .collect();
    (!requirements.is_empty()).then_some(RequirementTerm { requirements })
}

/// Where volumes of a class can be.
#[must_use]
pub fn class_terms(class: &StorageClass) -> Vec<RequirementTerm> {
    let topologies = class.allowed_topologies.iter().flatten();
    let terms = topologies.map(|topology| {
        let expressions = topology.match_label_expressions.iter().flatten();
        let requirements = expressions.map(|e| requirement::within(&e.key, e.values.clone()));
        RequirementTerm { requirements: requirements.collect() }
    });
    terms.filter(|term| !term.requirements.is_empty()).collect()
}
