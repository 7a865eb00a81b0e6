//! Namespaces and volumes in the index.
//!
//! Invariant: a change that some pod may depend on marks the index stale; pods are projected again
//! when the view is next read, once for any number of changes.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::ObjectKind;
use longshore_proto::types::v1::object::Kind;

use super::{Index, Key, Name, Source, Watched, name_of};
use crate::project::Fault;

/// Whose pods may have to be projected again.
#[derive(Debug)]
pub(super) enum Stale {
    /// Those of these namespaces.
    Namespaces(BTreeSet<String>),
    /// Everybody's.
    All,
}

impl Default for Stale {
    fn default() -> Self {
        Self::Namespaces(BTreeSet::new())
    }
}

impl Stale {
    pub(super) fn add(&mut self, namespace: &str) {
        if let Self::Namespaces(names) = self {
            names.insert(namespace.to_owned());
        }
    }
}

impl Index {
    /// Deployments may be asked for their next pod before one goes.
    pub const fn allow_surge(&mut self) {
        self.around.surges = true;
    }

    /// Marks the namespaces whose claims are bound to a volume.
    fn mark_users_of(&mut self, volume: &str) {
        let claims = self.around.claims.iter().filter(|(_, claim)| claim.volume == volume);
        claims.for_each(|((namespace, _), _)| self.stale.add(namespace));
    }
}

impl Watched for Namespace {
    const SOURCE: Source = Source::Namespace;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let labels = self.metadata.labels.clone().unwrap_or_default();
        let (_, name) = name_of(&self.metadata);
        if index.around.namespaces.get(&name) != Some(&labels) {
            index.stale = Stale::All;
        }
        index.around.set_namespace(&self);
        index.view.put(Kind::Namespace(wire::Namespace { name, labels }));
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        if index.around.namespaces.remove(name).is_some() {
            index.stale = Stale::All;
        }
        index.view.remove(&Key::new(ObjectKind::Namespace, name));
    }
}

impl Watched for PersistentVolumeClaim {
    const SOURCE: Source = Source::PersistentVolumeClaim;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let claim = (&self).into();
        let name = name_of(&self.metadata);
        if index.around.claims.get(&name) != Some(&claim) {
            index.stale.add(&name.0);
        }
        index.around.claims.insert(name, claim);
        Ok(())
    }

    fn forget(index: &mut Index, name: &Name) {
        if index.around.claims.remove(name).is_some() {
            index.stale.add(&name.0);
        }
    }
}

impl Watched for PersistentVolume {
    const SOURCE: Source = Source::PersistentVolume;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let volume = (&self).into();
        let (_, name) = name_of(&self.metadata);
        if index.around.volumes.get(&name) != Some(&volume) {
            index.mark_users_of(&name);
        }
        index.around.volumes.insert(name, volume);
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        if index.around.volumes.remove(name).is_some() {
            index.mark_users_of(name);
        }
    }
}

impl Watched for StorageClass {
    const SOURCE: Source = Source::StorageClass;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let class = (&self).into();
        let (_, name) = name_of(&self.metadata);
        if index.around.classes.get(&name) != Some(&class) {
            index.stale = Stale::All;
        }
        index.around.classes.insert(name, class);
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        if index.around.classes.remove(name).is_some() {
            index.stale = Stale::All;
        }
    }
}
