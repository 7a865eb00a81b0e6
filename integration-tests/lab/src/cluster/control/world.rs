//! What the controllers know: pods by owner, node and namespace, and who owns what.
//!
//! Invariant: after [`World::observe`] it reflects every change the store holds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::cluster::object;
use crate::cluster::schedule::pod::PodView;
use crate::cluster::server::Server;
use crate::cluster::store::{Change, Key};

/// Most changes of one resource taken in at once.
const CHANGES_MAX: usize = 10_000;

/// Resource id and key of one object.
pub type Reference = (String, Key);

/// One change, with what was learned from it.
#[derive(Debug)]
pub struct Observed {
    /// Id of the resource.
    pub resource: String,
    /// Namespace and name.
    pub key: Key,
    /// The change.
    pub change: Change,
    /// The pod, for changes of pods.
    pub pod: Option<Arc<PodView>>,
}

/// What was observed at once.
#[derive(Debug, Default)]
pub struct News {
    /// True when history was lost and everything is told anew.
    pub is_fresh_start: bool,
    /// The changes.
    pub changes: Vec<Observed>,
}

/// How many pods an owner has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Neither ended nor leaving.
    pub active: i64,
    /// Active and serving.
    pub ready: i64,
}

impl Tally {
    fn count(&mut self, pod: &PodView, by: i64) {
        if pod.is_active() {
            self.active += by;
            self.ready += if pod.is_ready { by } else { 0 };
        }
    }
}

/// Indexes over the store.
#[derive(Debug, Default)]
pub struct World {
    revision: u64,
    positions: HashMap<String, u64>,
    pods: BTreeMap<Key, Arc<PodView>>,
    pods_by_owner: HashMap<String, BTreeSet<Key>>,
    pods_by_node: HashMap<String, BTreeSet<Key>>,
    tallies: HashMap<String, Tally>,
    dependents: HashMap<String, BTreeSet<Reference>>,
}

impl World {
    /// Takes in what changed since the last time.
    pub fn observe(&mut self, server: &Server) -> News {
        if server.lock().store.revision() == self.revision {
            return News::default();
        }
        match self.read(server) {
            Some(changes) => News { is_fresh_start: false, changes },
            None => {
                *self = Self::default();
                News { is_fresh_start: true, changes: self.read_everything(server) }
            }
        }
    }

    /// A pod.
    pub fn pod(&self, key: &Key) -> Option<&Arc<PodView>> {
        self.pods.get(key)
    }

    /// Pods that the owner of this uid manages.
    pub fn pods_of(&self, owner_uid: &str) -> Vec<Arc<PodView>> {
        self.collect(self.pods_by_owner.get(owner_uid))
    }

    /// How many pods the owner of this uid has, without looking at each.
    pub fn tally_of(&self, owner_uid: &str) -> Tally {
        self.tallies.get(owner_uid).copied().unwrap_or_default()
    }

    /// Pods bound to a node.
    pub fn pods_on(&self, node: &str) -> Vec<Arc<PodView>> {
        self.collect(self.pods_by_node.get(node))
    }

    /// Pods of a namespace.
    pub fn pods_in<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<PodView>> {
        let rows = self.pods.range(Key::new(namespace, "")..);
        rows.take_while(move |(key, _)| key.namespace == namespace).map(|(_, pod)| pod)
    }

    /// Objects whose owner references name this uid.
    pub fn dependents_of(&self, uid: &str) -> impl Iterator<Item = &Reference> {
        self.dependents.get(uid).into_iter().flatten()
    }

    fn collect(&self, keys: Option<&BTreeSet<Key>>) -> Vec<Arc<PodView>> {
        keys.into_iter().flatten().filter_map(|key| self.pods.get(key)).cloned().collect()
    }

    /// Changes since the positions; none when history was lost.
    fn read(&mut self, server: &Server) -> Option<Vec<Observed>> {
        let mut found = Vec::new();
        let mut is_complete = true;
        {
            let state = server.lock();
            for resource in state.store.changed_since(self.revision) {
                let known = self.positions.get(&resource).copied().unwrap_or(0);
                let position = known.max(self.revision);
                let changes = state.store.since(&resource, position, CHANGES_MAX).ok()?;
                is_complete &= changes.len() < CHANGES_MAX;
                if let Some(last) = changes.last() {
                    self.positions.insert(resource.clone(), last.revision);
                }
                found.extend(changes.into_iter().map(|change| (resource.clone(), change)));
            }
            if is_complete {
                self.revision = state.store.revision();
            }
        }
        found.sort_by_key(|(_, change)| change.revision);
        Some(found.into_iter().map(|(resource, change)| self.note(resource, change)).collect())
    }

    fn read_everything(&mut self, server: &Server) -> Vec<Observed> {
        let mut found = Vec::new();
        {
            let state = server.lock();
            self.revision = state.store.revision();
            for resource in state.store.resources() {
                self.positions.insert(resource.clone(), self.revision);
                for (_, stored) in state.store.list(&resource, "", None) {
                    let after = Arc::clone(stored);
                    let revision = stored.revision;
                    let change = Change { revision, before: None, after, deleted: false };
                    found.push((resource.clone(), change));
                }
            }
        }
        found.into_iter().map(|(resource, change)| self.note(resource, change)).collect()
    }

    fn note(&mut self, resource: String, change: Change) -> Observed {
        let key = Key::of(&change.after.value);
        if let Some(before) = &change.before {
            self.unlink(&resource, &key, &before.value);
        }
        if !change.deleted {
            for owner in object::items(&change.after.value["metadata"]["ownerReferences"]) {
                let uid = owner["uid"].as_str().unwrap_or_default().to_owned();
                self.dependents.entry(uid).or_default().insert((resource.clone(), key.clone()));
            }
        }
        let pod = (resource == "pods").then(|| self.note_pod(&key, &change));
        Observed { resource, key, change, pod }
    }

    fn unlink(&mut self, resource: &str, key: &Key, before: &serde_json::Value) {
        for owner in object::items(&before["metadata"]["ownerReferences"]) {
            let uid = owner["uid"].as_str().unwrap_or_default();
            let reference = (resource.to_owned(), key.clone());
            remove_from(&mut self.dependents, uid, &reference);
        }
    }

    fn note_pod(&mut self, key: &Key, change: &Change) -> Arc<PodView> {
        let earlier = self.pods.remove(key);
        if let Some(pod) = &earlier {
            self.tallies.entry(pod.owner_uid.clone()).or_default().count(pod, -1);
            remove_from(&mut self.pods_by_owner, &pod.owner_uid, key);
            remove_from(&mut self.pods_by_node, &pod.node, key);
        }
        let pod = Arc::new(PodView::of(&change.after, earlier.as_deref()));
        if !change.deleted {
            self.tallies.entry(pod.owner_uid.clone()).or_default().count(&pod, 1);
            self.pods_by_owner.entry(pod.owner_uid.clone()).or_default().insert(key.clone());
            self.pods_by_node.entry(pod.node.clone()).or_default().insert(key.clone());
            self.pods.insert(key.clone(), Arc::clone(&pod));
        }
        pod
    }
}

fn remove_from<T: Ord>(index: &mut HashMap<String, BTreeSet<T>>, group: &str, member: &T) {
    if let Some(members) = index.get_mut(group) {
        members.remove(member);
        if members.is_empty() {
            index.remove(group);
        }
    }
}
