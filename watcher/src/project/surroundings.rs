//! What a pod's projection depends on besides the pod: namespace labels and volumes.
//!
//! Invariant: holds only the few fields that placement needs, so that a big cluster stays small here.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use longshore_proto::types::v1::RequirementTerm;

use super::volumes;

/// Namespace and name.
pub type NamespacedName = (String, String);

/// What pods may refer to.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Labels of each namespace.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// Volume claims.
    pub claims: BTreeMap<NamespacedName, VolumeClaim>,
    /// Volumes.
    pub volumes: BTreeMap<String, Volume>,
    /// Storage classes.
    pub classes: BTreeMap<String, Class>,
}

/// The part of a PersistentVolumeClaim that placement needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeClaim {
    /// Volume it is bound to; empty before.
    pub volume: String,
    /// Its storage class; empty for none.
    pub class: String,
    /// True once it is being deleted.
    pub deleting: bool,
    /// True when its volume has been lost.
    pub lost: bool,
}

/// The part of a PersistentVolume that placement needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Volume {
    /// Where it can be used: alternatives; none means everywhere.
    pub terms: Vec<RequirementTerm>,
}

/// The part of a StorageClass that placement needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    /// True when volumes are made before a pod is scheduled.
    pub immediate: bool,
    /// Where its volumes can be: alternatives; none means everywhere.
    pub terms: Vec<RequirementTerm>,
    /// True for the class of claims that name none.
    pub default: bool,
}

/// Annotation of the storage class of claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

impl From<&PersistentVolumeClaim> for VolumeClaim {
    fn from(from: &PersistentVolumeClaim) -> Self {
        let spec = from.spec.clone().unwrap_or_default();
        let phase = from.status.as_ref().and_then(|s| s.phase.as_deref());
        Self {
            volume: spec.volume_name.unwrap_or_default(),
            class: spec.storage_class_name.unwrap_or_default(),
            deleting: from.metadata.deletion_timestamp.is_some(),
            lost: phase == Some("Lost"),
        }
    }
}

impl From<&PersistentVolume> for Volume {
    fn from(from: &PersistentVolume) -> Self {
        Self { terms: volumes::volume_terms(from) }
    }
}

impl From<&StorageClass> for Class {
    fn from(from: &StorageClass) -> Self {
        let annotations = from.metadata.annotations.iter().flatten();
        Self {
            immediate: from.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer"),
            terms: volumes::class_terms(from),
            default: annotations.into_iter().any(|(k, v)| k == DEFAULT_CLASS && v == "true"),
        }
    }
}

impl Surroundings {
    /// Adds or replaces a namespace.
    pub fn set_namespace(&mut self, namespace: &Namespace) {
        let name = namespace.metadata.name.clone().unwrap_or_default();
        self.namespaces.insert(name, namespace.metadata.labels.clone().unwrap_or_default());
    }

    /// The class of a claim that names `class`, or the default one when that is empty.
    #[must_use]
    pub fn class(&self, class: &str) -> Option<&Class> {
        if class.is_empty() {
            self.classes.values().find(|c| c.default)
        } else {
            self.classes.get(class)
        }
    }
}
