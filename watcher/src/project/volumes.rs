//! Volumes to node requirements: alternatives of zones, mostly.
//!
//! Invariant: a volume narrows the node, never the pod's topology; a volume that can never be used
//! is a reason, not an absence of constraints.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, PodSpec};
use k8s_openapi::api::storage::v1::StorageClass;
use longshore_proto::types::v1::{Requirement, RequirementTerm};

use super::requirement;
use super::surroundings::{Surroundings, VolumeClaim};
use crate::names;

/// Most alternatives kept when several volumes multiply; beyond, the later volumes are not combined.
const ALTERNATIVES_MAX: usize = 64;

/// What the volumes of a pod demand of its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// Alternatives; none means no demand.
    pub terms: Vec<RequirementTerm>,
    /// Why the pod can never be scheduled; empty when it can.
    pub impossible: String,
}

/// True when the pod's demand depends on volume claims.
#[must_use]
pub fn has_claims(spec: &PodSpec) -> bool {
    let mut volumes = spec.volumes.iter().flatten();
    volumes.any(|v| v.persistent_volume_claim.is_some() || v.ephemeral.is_some())
}

/// Demand of the volumes of a pod called `pod`, which names its ephemeral claims.
#[must_use]
pub fn demand(namespace: &str, pod: &str, spec: &PodSpec, around: &Surroundings) -> Demand {
    let mut total = Demand::default();
    for volume in spec.volumes.iter().flatten() {
        let one = if let Some(source) = &volume.persistent_volume_claim {
            claim_demand(namespace, &source.claim_name, around)
        } else if let Some(source) = &volume.ephemeral {
            let name = format!("{pod}-{}", volume.name);
            let template = source.volume_claim_template.as_ref();
            let class = template.and_then(|t| t.spec.storage_class_name.as_deref());
            match around.claims.get(&(namespace.to_owned(), name.clone())) {
                Some(claim) => bound_demand(&name, claim, around),
                None => class_demand(&name, class.unwrap_or_default(), around),
            }
        } else {
            continue;
        };
        total = combine(total, one);
    }
    total
}

/// Demand of the volumes that a StatefulSet makes for each of its pods.
#[must_use]
pub fn template_demand(templates: &[PersistentVolumeClaim], around: &Surroundings) -> Demand {
    templates.iter().fold(Demand::default(), |total, template| {
        let name = template.metadata.name.as_deref().unwrap_or_default();
        let class = VolumeClaim::from(template).class;
        combine(total, class_demand(name, &class, around))
    })
}

/// The demands of both, together.
#[must_use]
pub fn combine(a: Demand, b: Demand) -> Demand {
    let impossible = if a.impossible.is_empty() { b.impossible } else { a.impossible };
    let terms = match (a.terms.is_empty(), b.terms.is_empty()) {
        (true, _) => b.terms,
        (_, true) => a.terms,
        _ if a.terms.len() * b.terms.len() > ALTERNATIVES_MAX => a.terms,
        _ => {
            let pairs = a.terms.iter().flat_map(|x| b.terms.iter().map(move |y| (x, y)));
            pairs.map(|(x, y)| both(x, y)).collect()
        }
    };
    Demand { terms, impossible }
}

fn both(a: &RequirementTerm, b: &RequirementTerm) -> RequirementTerm {
    let mut requirements = a.requirements.clone();
    let new: Vec<_> =
        b.requirements.iter().filter(|r| !requirements.contains(r)).cloned().collect();
    requirements.extend(new);
    RequirementTerm { requirements }
}

fn impossible(text: String) -> Demand {
    Demand { terms: Vec::new(), impossible: text }
}

fn claim_demand(namespace: &str, name: &str, around: &Surroundings) -> Demand {
    match around.claims.get(&(namespace.to_owned(), name.to_owned())) {
        None => impossible(format!(
            "PersistentVolumeClaim {namespace}/{name} does not exist; create it"
        )),
        Some(claim) => bound_demand(name, claim, around),
    }
}

fn bound_demand(name: &str, claim: &VolumeClaim, around: &Surroundings) -> Demand {
    if claim.deleting {
        return impossible(format!("PersistentVolumeClaim {name} is being deleted"));
    }
    if claim.lost {
        return impossible(format!(
            "PersistentVolumeClaim {name} has lost its volume {}; restore the volume or recreate \
             the claim",
            claim.volume
        ));
    }
    if claim.volume.is_empty() {
        return class_demand(name, &claim.class, around);
    }
    match around.volumes.get(&claim.volume) {
        Some(volume) => Demand { terms: volume.terms.clone(), impossible: String::new() },
        None => impossible(format!(
            "PersistentVolume {} of claim {name} does not exist; restore it or recreate the claim",
            claim.volume
        )),
    }
}

fn class_demand(claim: &str, class: &str, around: &Surroundings) -> Demand {
    match around.class(class) {
        None if class.is_empty() => impossible(format!(
            "PersistentVolumeClaim {claim} has no volume and no storage class; give it a class or \
             make one the default"
        )),
        None => impossible(format!(
            "StorageClass {class} of PersistentVolumeClaim {claim} does not exist; create it"
        )),
        Some(class) if class.immediate => impossible(format!(
            "PersistentVolumeClaim {claim} has no volume yet, and its class binds without waiting \
             for a pod; use volumeBindingMode WaitForFirstConsumer, or wait until it is bound"
        )),
        Some(class) => Demand { terms: class.terms.clone(), impossible: String::new() },
    }
}

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
