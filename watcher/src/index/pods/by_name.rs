//! UIDs of pods by their names.
//!
//! Invariant: a namespace is kept once, and not without a pod.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::{Name, row};

/// UIDs by namespace and name.
#[derive(Debug, Default)]
pub(in crate::index) struct PodNames(BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<str>>>);

impl PodNames {
    /// UID of the pod of a name.
    pub(in crate::index) fn get(&self, (namespace, name): &Name) -> Option<&Arc<str>> {
        self.0.get(namespace.as_str())?.get(name.as_str())
    }

    /// A pod has a name.
    pub(super) fn insert(&mut self, namespace: Arc<str>, name: Arc<str>, uid: Arc<str>) {
        self.0.entry(namespace).or_default().insert(name, uid);
    }

    /// No pod has a name any more; UID of the one that had it.
    pub(super) fn remove(&mut self, (namespace, name): &Name) -> Option<Arc<str>> {
        let names = self.0.get_mut(namespace.as_str())?;
        let uid = names.remove(name.as_str());
        if names.is_empty() {
            self.0.remove(namespace.as_str());
        }
        uid
    }

    /// A namespace as others refer to it, so that it is kept once.
    pub(super) fn namespace(&self, name: &str) -> Arc<str> {
        shared(&self.0, name)
    }

    /// All names.
    pub(in crate::index) fn all(&self) -> impl Iterator<Item = Name> {
        let names = |(namespace, names): (&Arc<str>, &BTreeMap<Arc<str>, Arc<str>>)| {
            let namespace = namespace.to_string();
            names.keys().map(|name| (namespace.clone(), name.to_string())).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(names)
    }
}

/// A text as the key of a map where it is one, so that it is kept once.
pub(super) fn shared<V>(known: &BTreeMap<Arc<str>, V>, text: &str) -> Arc<str> {
    let known = known.get_key_value(text).map(|(known, _)| Arc::clone(known));
    known.unwrap_or_else(|| row::text(text))
}
