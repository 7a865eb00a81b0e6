//! What a pod's projection depends on besides the pod: namespace labels, volumes and devices.
//!
//! Invariant: holds only the few fields that placement needs, so that a big cluster stays small
//! here.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaimTemplate};
use k8s_openapi::api::storage::v1::StorageClass;
use longshore_proto::types::v1::RequirementTerm;

use super::devices::class::Class as DeviceKind;
use super::devices::template::Template;
use super::{attachments, volume_terms};

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
    /// Device classes.
    pub device_classes: BTreeMap<String, DeviceKind>,
    /// Templates of claims of devices.
    pub claim_templates: BTreeMap<NamespacedName, Template>,
    /// Whether Deployments may be asked for their next pod before one goes.
    pub surges: bool,
}

/// The part of a PersistentVolumeClaim that placement needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeClaim {
    /// Volume it is bound to; empty before.
    pub volume: String,
    /// Its storage class: none for the default one, empty for no class at all.
    pub class: Option<String>,
    /// True once it and its volume belong to each other.
    pub bound: bool,
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
    /// CSI driver that attaches it; empty for one that is not attached.
    pub driver: String,
}

/// The part of a StorageClass that placement needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    /// True when volumes are made before a pod is scheduled.
    pub immediate: bool,
    /// Where its volumes can be: alternatives; none means everywhere.
    pub terms: Vec<RequirementTerm>,
    /// When it became a class for claims that name none, in milliseconds since 1970: its creation;
    /// None when it is not one.
    pub default_since_ms: Option<i64>,
    /// CSI driver that attaches its volumes; empty when they are not attached.
    pub driver: String,
}

/// Annotation of the storage class of claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// Annotation of a claim and a volume that belong to each other.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

impl From<&PersistentVolumeClaim> for VolumeClaim {
    fn from(from: &PersistentVolumeClaim) -> Self {
        let spec = from.spec.clone().unwrap_or_default();
        let phase = from.status.as_ref().and_then(|s| s.phase.as_deref());
        let annotations = from.metadata.annotations.as_ref();
        let completed = annotations.is_some_and(|list| list.contains_key(BIND_COMPLETED));
        Self {
            volume: spec.volume_name.unwrap_or_default(),
            class: spec.storage_class_name,
            bound: completed || phase == Some("Bound"),
            deleting: from.metadata.deletion_timestamp.is_some(),
            lost: phase == Some("Lost"),
        }
    }
}

impl From<&PersistentVolume> for Volume {
    fn from(from: &PersistentVolume) -> Self {
        Self { terms: volume_terms::volume_terms(from), driver: attachments::of_volume(from) }
    }
}

impl From<&StorageClass> for Class {
    fn from(from: &StorageClass) -> Self {
        let mut annotations = from.metadata.annotations.iter().flatten();
        let default = annotations.any(|(key, value)| key == DEFAULT_CLASS && value == "true");
        let created = from.metadata.creation_timestamp.as_ref();
        let created_ms = created.map_or(0, |time| time.0.as_millisecond());
        Self {
            immediate: from.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer"),
            terms: volume_terms::class_terms(from),
            default_since_ms: default.then_some(created_ms),
            driver: attachments::of_provisioner(&from.provisioner),
        }
    }
}

impl Surroundings {
    /// Adds or replaces a namespace.
    pub fn set_namespace(&mut self, namespace: &Namespace) {
        let name = namespace.metadata.name.clone().unwrap_or_default();
        self.namespaces.insert(name, namespace.metadata.labels.clone().unwrap_or_default());
    }

    /// Adds or replaces a DeviceClass; true when that may change a pod or a node.
    pub fn set_device_class(&mut self, class: &DeviceClass) -> bool {
        let name = class.metadata.name.clone().unwrap_or_default();
        let kind = DeviceKind::from(class);
        self.device_classes.insert(name, kind.clone()) != Some(kind)
    }

    /// Adds or replaces a ResourceClaimTemplate; true when that may change a pod.
    pub fn set_claim_template(&mut self, template: &ResourceClaimTemplate) -> bool {
        let meta = &template.metadata;
        let namespace = meta.namespace.clone().unwrap_or_default();
        let name = (namespace, meta.name.clone().unwrap_or_default());
        let template = Template::from(template);
        self.claim_templates.insert(name, template.clone()) != Some(template)
    }

    /// The class of a claim that names `class`; for one that names none the default one, of several
    /// the newest, as the API server chooses.
    #[must_use]
    pub fn class(&self, class: Option<&str>) -> Option<&Class> {
        match class {
            Some(class) => self.classes.get(class),
            None => {
                let defaults = self.classes.values().filter(|c| c.default_since_ms.is_some());
                defaults.max_by_key(|class| class.default_since_ms)
            }
        }
    }
}
