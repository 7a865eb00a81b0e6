//! Documents to what a plan is asked about: the objects of a view, and pods without names.
//!
//! Invariant: objects take the watcher's own way (decode, index, view), so a plan made here is the
//! plan that would be made in the cluster. Every object at fault is named, not only the first.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{self as core, ObjectReference};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use k8s_openapi::api::{apps::v1 as apps, policy::v1 as policy, resource::v1 as resource};
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{Object, PodCount};
use longshore_watcher::api;
use longshore_watcher::index::{Index, Kept, Watched, name_of};
use longshore_watcher::project::Surroundings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::buffers;
use crate::decode::decode;
use crate::kinds::{self, Class, Known};
use crate::manifest::{Document, Place};
use crate::workload::{Owner, Workload};

/// Objects that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n       "))]
pub struct Faults(pub Vec<String>);

/// What a plan is asked about.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// Objects, shapes before the pods that use them.
    pub objects: Vec<Object>,
    /// Pods that do not exist yet, by shape.
    pub pods: Vec<PodCount>,
    /// What the author of the documents would want to know.
    pub warnings: Vec<String>,
}

/// Reads documents.
///
/// # Errors
/// Every object that cannot be used.
pub fn take(documents: Vec<Document>) -> Result<Inventory, Faults> {
    let mut reader = Reader::default();
    for document in documents {
        reader.take(document);
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    index: Index,
    around: Surroundings,
    workloads: BTreeMap<Owner, (Workload, Place)>,
    templates: buffers::Templates,
    places: BTreeMap<String, Place>,
    faults: Vec<String>,
    passed: BTreeMap<String, usize>,
    found: Inventory,
}

impl Reader {
    fn take(&mut self, document: Document) {
        let Document { place, value } = document;
        match kinds::class(&value) {
            Class::Read(known) => self.object(known, &place, value),
            Class::OtherVersion(known) => self.faults.push(format!(
                "{place}: {}: apiVersion {} is not read; write the object as {}",
                known.kind, value["apiVersion"], known.version
            )),
            Class::Passed => {
                let kind = value["kind"].as_str().unwrap_or_default().to_owned();
                *self.passed.entry(kind).or_default() += 1;
            }
            Class::NoObject => self.faults.push(format!(
                "{place}: no Kubernetes object; give it apiVersion, kind and metadata.name"
            )),
        }
    }

    fn object(&mut self, known: Known, place: &Place, mut value: Value) {
        let Some(name) = complete(known, &mut value) else {
            let kind = known.kind;
            self.faults.push(format!("{place}: {kind}: metadata.name: is missing; set it"));
            return;
        };
        if let Some(kind) = api::Kind::of(&value) {
            let warnings = api::warnings(kind, &value).into_iter();
            self.found.warnings.extend(warnings.map(|w| format!("{place}: {name}: {w}")));
        }
        self.places.insert(name.clone(), place.clone());
        if let Err(fault) = self.dispatch(known.kind, place, value) {
            self.faults.push(format!("{place}: {name}: {fault}"));
        }
    }

    fn dispatch(&mut self, kind: &str, place: &Place, value: Value) -> Result<(), String> {
        match kind {
            "Deployment" => decode(value).map(|it| self.workload(place, Workload::Deployment(it))),
            "StatefulSet" => {
                decode(value).map(|it| self.workload(place, Workload::StatefulSet(it)))
            }
            "ReplicaSet" => decode(value).map(|it| self.workload(place, Workload::ReplicaSet(it))),
            "Job" => decode(value).map(|it| self.workload(place, Workload::Job(it))),
            "NodePool" => self.watched::<api::NodePool>(value).map(drop),
            "Provisioner" => self.watched::<api::Provisioner>(value).map(drop),
            "EC2NodeClass" => self.watched::<api::EC2NodeClass>(value).map(drop),
            "AWSNodeTemplate" => self.watched::<api::AWSNodeTemplate>(value).map(drop),
            "NodeOverlay" => self.watched::<api::NodeOverlay>(value).map(drop),
            "CapacityBuffer" => self.watched::<api::CapacityBuffer>(value).map(drop),
            "PodTemplate" => decode(value).map(|it| buffers::note(&mut self.templates, *it)),
            "CSINode" => self.watched::<CSINode>(value).map(drop),
            "ResourceSlice" => self.watched::<resource::ResourceSlice>(value).map(drop),
            "NodeClaim" => self.watched::<api::NodeClaim>(value).map(drop),
            "DaemonSet" => self.watched::<apps::DaemonSet>(value).map(drop),
            "PodDisruptionBudget" => self.watched::<policy::PodDisruptionBudget>(value).map(drop),
            "Pod" => self.watched::<core::Pod>(value).map(drop),
            "Node" => self.watched::<core::Node>(value).map(drop),
            _ => self.surrounding(kind, value),
        }
    }

    /// Objects that shapes depend on: the index keeps its own copy of what it needs of them.
    fn surrounding(&mut self, kind: &str, value: Value) -> Result<(), String> {
        match kind {
            "Namespace" => {
                let namespace = self.watched::<core::Namespace>(value)?;
                self.around.set_namespace(&namespace);
            }
            "PersistentVolumeClaim" => {
                let claim = self.watched::<core::PersistentVolumeClaim>(value)?;
                let name = name_of(&claim.metadata);
                self.around.claims.insert(name, (&claim).into());
            }
            "PersistentVolume" => {
                let volume = self.watched::<core::PersistentVolume>(value)?;
                let (_, name) = name_of(&volume.metadata);
                self.around.volumes.insert(name, (&volume).into());
            }
            "DeviceClass" => {
                let class = self.watched::<resource::DeviceClass>(value)?;
                self.around.set_device_class(&class);
            }
            "ResourceClaimTemplate" => {
                let template = self.watched::<resource::ResourceClaimTemplate>(value)?;
                self.around.set_claim_template(&template);
            }
            _ => {
                let class = self.watched::<StorageClass>(value)?;
                let (_, name) = name_of(&class.metadata);
                self.around.classes.insert(name, (&class).into());
            }
        }
        Ok(())
    }

    /// Hands an object to the index, as a watch would.
    fn watched<W: Watched + DeserializeOwned + Clone>(
        &mut self,
        value: Value,
    ) -> Result<W, String> {
        let text = |field: &Value| field.as_str().map(str::to_owned);
        let reference = ObjectReference {
            api_version: text(&value["apiVersion"]),
            kind: text(&value["kind"]),
            namespace: text(&value["metadata"]["namespace"]),
            name: text(&value["metadata"]["name"]),
            ..ObjectReference::default()
        };
        let object: W = *decode(value)?;
        self.index.apply(reference, Ok::<W, String>(object.clone()));
        Ok(object)
    }

    fn workload(&mut self, place: &Place, workload: Workload) {
        self.workloads.insert(workload.itself(), (workload, place.clone()));
    }

    fn finish(mut self) -> Result<Inventory, Faults> {
        self.resolve_buffers();
        let objects = self.index.settled().snapshot();
        self.found.objects = objects.iter().map(Kept::object).collect();
        for left in self.index.left().values() {
            let place = self.places.get(&left.fault.object).cloned().unwrap_or_default();
            self.faults.push(format!("{place}: {}", left.fault));
        }
        self.expand();
        self.remark();
        if self.faults.is_empty() { Ok(self.found) } else { Err(Faults(self.faults)) }
    }

    /// Buffers to the pods that they keep room for. What they refer to may have come after them.
    fn resolve_buffers(&mut self) {
        let around = buffers::Around { workloads: &self.workloads, templates: &self.templates };
        for (name, fault) in buffers::resolve(&mut self.index, &around) {
            let place = self.places.get(&name).cloned().unwrap_or_default();
            match fault {
                buffers::Fault::Missing(text) => {
                    self.found.warnings.push(format!("{place}: {name}: counts as no room: {text}"));
                }
                buffers::Fault::Unusable(text) => {
                    self.faults.push(format!("{place}: {name}: {text}"));
                }
            }
        }
    }

    /// Workloads to the pods that they want and do not have.
    fn expand(&mut self) {
        let mut have = live_pods(&self.found.objects);
        let known: BTreeSet<Owner> = self.workloads.keys().cloned().collect();
        let mut shapes = Vec::new();
        for (itself, (workload, place)) in &self.workloads {
            let owner = workload.owner();
            if owner != *itself && known.contains(&owner) {
                continue;
            }
            let wanted = workload.pods().and_then(|n| Ok((n, workload.shape(&self.around)?)));
            let (wanted, shape) = match wanted {
                Ok(wanted) => wanted,
                Err(fault) => {
                    self.faults.push(format!("{place}: {fault}"));
                    continue;
                }
            };
            let live = have.entry(owner).or_default();
            let count = wanted.saturating_sub(*live);
            *live = live.saturating_sub(wanted);
            if count > 0 {
                self.found.pods.push(PodCount { shape_id: shape.shape_id.clone(), count });
                shapes.push(Object { kind: Some(Kind::PodShape(shape)) });
            }
        }
        self.found.objects.splice(0..0, shapes);
    }

    fn remark(&mut self) {
        let of = |is: fn(&Kind) -> bool| {
            self.found.objects.iter().filter_map(|o| o.kind.as_ref()).filter(|k| is(k)).count()
        };
        let nodes = of(|kind| matches!(kind, Kind::Node(_)));
        let pods = of(|kind| matches!(kind, Kind::Pod(_)));
        if nodes > 0 && pods == 0 {
            self.found.warnings.push(format!(
                "{nodes} nodes but no pods were given: the nodes count as empty; add the output of \
                 `kubectl get pods -A -o json`"
            ));
        }
        if !self.passed.is_empty() {
            let kinds = self.passed.iter().map(|(kind, count)| format!("{count} {kind}"));
            let kinds = kinds.collect::<Vec<_>>().join(", ");
            self.found.warnings.push(format!("left out, as no part of a plan: {kinds}"));
        }
    }
}

/// Pods that exist, by owner.
fn live_pods(objects: &[Object]) -> BTreeMap<Owner, u32> {
    let mut owners = BTreeMap::new();
    let mut live = BTreeMap::new();
    for object in objects {
        if let Some(Kind::PodShape(shape)) = &object.kind {
            owners.insert(&shape.shape_id, (shape.namespace.clone(), shape.owner.clone()));
        } else if let Some(Kind::Pod(pod)) = &object.kind
            && let Some(owner) = owners.get(&pod.shape_id)
            && !pod.deleting
        {
            *live.entry(owner.clone()).or_default() += 1;
        }
    }
    live
}

/// Fills in what the API server would; gives `Kind/name` or `Kind/namespace/name`.
fn complete(known: Known, value: &mut Value) -> Option<String> {
    let meta = &value["metadata"];
    let given = [&meta["name"], &meta["generateName"]];
    let name = given.into_iter().filter_map(Value::as_str).find(|name| !name.is_empty())?;
    let (kind, name) = (known.kind, name.to_owned());
    value["metadata"]["name"] = name.as_str().into();
    if !known.namespaced {
        return Some(format!("{kind}/{name}"));
    }
    let namespace = value["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    value["metadata"]["namespace"] = namespace.as_str().into();
    if kind == "Pod" && value["metadata"]["uid"].is_null() {
        value["metadata"]["uid"] = format!("{namespace}/{name}").into();
    }
    Some(format!("{kind}/{namespace}/{name}"))
}

#[cfg(test)]
mod tests;
