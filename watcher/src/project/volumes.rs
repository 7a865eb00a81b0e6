//! Volumes to node requirements: alternatives of zones, mostly.
//!
//! Invariant: a volume narrows the node, never the pod's topology; a volume that can never be used
//! is a reason, not an absence of constraints. Alternatives are dropped only for others that are
//! kept: no volume's demand is forgotten.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodSpec, Volume};
use longshore_proto::types::v1::{Operator, Requirement, RequirementTerm};

use super::attachments::{self, Attachments};
use super::requirement;
use super::surroundings::{NamespacedName, Surroundings, VolumeClaim};

/// Most alternatives kept when several volumes multiply.
const ALTERNATIVES_MAX: usize = 64;

/// What the volumes of a pod demand of its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// Alternatives; none means no demand.
    pub terms: Vec<RequirementTerm>,
    /// Why the pod can never be scheduled; empty when it can.
    pub impossible: String,
    /// How many volumes of each driver must be attached.
    pub attachments: Attachments,
}

/// True when the pod's demand depends on volume claims.
#[must_use]
pub fn has_claims(spec: &PodSpec) -> bool {
    let mut volumes = spec.volumes.iter().flatten();
    volumes.any(|v| v.persistent_volume_claim.is_some() || v.ephemeral.is_some())
}

/// The volume claims of a pod, as namespace and name.
pub fn claim_names(pod: &Pod) -> impl Iterator<Item = NamespacedName> + use<'_> {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(move |volume| {
        let claim = match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(source), _) => source.claim_name.clone(),
            (None, Some(_)) => ephemeral_claim(name, volume),
            (None, None) => return None,
        };
        Some((namespace.clone(), claim))
    })
}

/// The claim that is made for an ephemeral volume of a pod.
fn ephemeral_claim(pod: &str, volume: &Volume) -> String {
    format!("{pod}-{}", volume.name)
}

/// Demand of the volumes of a pod called `pod`, which names its ephemeral claims. A claim that
/// several volumes of the pod name is one volume.
#[must_use]
pub fn demand(namespace: &str, pod: &str, spec: &PodSpec, around: &Surroundings) -> Demand {
    let mut total = Demand::default();
    let mut claims = BTreeSet::new();
    for volume in spec.volumes.iter().flatten() {
        let one = if let Some(source) = &volume.persistent_volume_claim {
            if !claims.insert(&source.claim_name) {
                continue;
            }
            claim_demand(namespace, &source.claim_name, around)
        } else if let Some(source) = &volume.ephemeral {
            let name = ephemeral_claim(pod, volume);
            let template = source.volume_claim_template.as_ref();
            let class = template.and_then(|t| t.spec.storage_class_name.as_deref());
            match around.claims.get(&(namespace.to_owned(), name.clone())) {
                Some(claim) => bound_demand(&name, claim, around),
                None => class_demand(&name, class, around),
            }
        } else {
            let attachments = attachments::one(attachments::of_inline(volume));
            Demand { attachments, ..Demand::default() }
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
        combine(total, class_demand(name, class.as_deref(), around))
    })
}

/// The demands of both, together: each alternative of one with each of the other that agrees with
/// it.
#[must_use]
pub fn combine(a: Demand, b: Demand) -> Demand {
    let mut impossible = if a.impossible.is_empty() { b.impossible } else { a.impossible };
    let mut attachments = a.attachments;
    for (driver, count) in b.attachments {
        *attachments.entry(driver).or_default() += count;
    }
    let terms = match (a.terms.is_empty(), b.terms.is_empty()) {
        (true, _) => b.terms,
        (_, true) => a.terms,
        _ => {
            let terms = agreeing(&a.terms, &b.terms);
            if terms.is_empty() && impossible.is_empty() {
                "its volumes are in different places, and no node can use all of them; move one of \
                 them to where the others are"
                    .clone_into(&mut impossible);
            }
            terms
        }
    };
    Demand { terms, impossible, attachments }
}

fn agreeing(a: &[RequirementTerm], b: &[RequirementTerm]) -> Vec<RequirementTerm> {
    let mut terms = Vec::new();
    for term in a.iter().flat_map(|x| b.iter().filter_map(move |y| both(x, y))) {
        if terms.len() < ALTERNATIVES_MAX && !terms.contains(&term) {
            terms.push(term);
        }
    }
    terms
}

/// Both terms in one; none when they list different values for a label.
fn both(a: &RequirementTerm, b: &RequirementTerm) -> Option<RequirementTerm> {
    let mut listed: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    let mut rest: Vec<Requirement> = Vec::new();
    for requirement in a.requirements.iter().chain(&b.requirements) {
        if requirement.operator() == Operator::In {
            let values: BTreeSet<&String> = requirement.values.iter().collect();
            let known = listed.entry(&requirement.key).or_insert_with(|| values.clone());
            known.retain(|value| values.contains(value));
        } else if !rest.contains(requirement) {
            rest.push(requirement.clone());
        }
    }
    if listed.values().any(BTreeSet::is_empty) {
        return None;
    }
    let listed = listed
        .into_iter()
        .map(|(key, values)| requirement::within(key, values.into_iter().cloned()));
    Some(RequirementTerm { requirements: listed.chain(rest).collect() })
}

fn impossible(text: String) -> Demand {
    Demand { impossible: text, ..Demand::default() }
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
        return class_demand(name, claim.class.as_deref(), around);
    }
    match around.volumes.get(&claim.volume) {
        None => impossible(format!(
            "PersistentVolume {} of claim {name} does not exist; restore it or recreate the claim",
            claim.volume
        )),
        Some(_) if !claim.bound => impossible(format!(
            "PersistentVolumeClaim {name} names volume {}, but is not bound to it yet; wait, or \
             check that the volume is free and suits the claim",
            claim.volume
        )),
        Some(volume) => Demand {
            terms: volume.terms.clone(),
            impossible: String::new(),
            attachments: attachments::one(&volume.driver),
        },
    }
}

fn class_demand(claim: &str, name: Option<&str>, around: &Surroundings) -> Demand {
    match (around.class(name), name) {
        (None, None) => impossible(format!(
            "PersistentVolumeClaim {claim} has no volume and no storage class; give it a class or \
             make one the default"
        )),
        (None, Some("")) => impossible(format!(
            "PersistentVolumeClaim {claim} has no volume, and its empty storageClassName keeps one \
             from being made; create a volume for it or name a class"
        )),
        (None, Some(class)) => impossible(format!(
            "StorageClass {class} of PersistentVolumeClaim {claim} does not exist; create it"
        )),
        (Some(class), _) if class.immediate => impossible(format!(
            "PersistentVolumeClaim {claim} has no volume yet, and its class binds without waiting \
             for a pod; use volumeBindingMode WaitForFirstConsumer, or wait until it is bound"
        )),
        (Some(class), _) => Demand {
            terms: class.terms.clone(),
            impossible: String::new(),
            attachments: attachments::one(&class.driver),
        },
    }
}
