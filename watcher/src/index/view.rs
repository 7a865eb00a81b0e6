//! The view that a scheduler is sent: wire objects, what changed since it was last told, a
//! revision and a digest.
//!
//! Invariant: revision grows by one with every object that really changes; an object that is put
//! again unchanged is no change. What is dirty is a set of keys, so it is bounded by the view.
//! Objects are kept as the wire has them, but for pods: their rows are the index's own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longshore_proto::reference::{self, Sum};
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::object_change::Change;
use longshore_proto::types::v1::{Object, ObjectChange, ObjectKind, ObjectRef};
use prost::Message as _;

use super::row::PodRow;

/// Kind and key of an object; sorts shapes before the pods that use them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    kind: i32,
    key: Arc<str>,
}

impl Key {
    /// A key, as `ObjectKind` says what it is.
    pub fn new(kind: ObjectKind, key: impl AsRef<str>) -> Self {
        Self { kind: kind.into(), key: key.as_ref().into() }
    }

    fn is_tombstone(&self) -> bool {
        self.kind == i32::from(ObjectKind::Unreadable)
    }
}

impl From<&Key> for ObjectRef {
    fn from(key: &Key) -> Self {
        Self { kind: key.kind, key: key.key.to_string() }
    }
}

impl From<ObjectRef> for Key {
    fn from(reference: ObjectRef) -> Self {
        Self { kind: reference.kind, key: reference.key.into() }
    }
}

/// An object as it is kept. Clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A pod.
    Pod(PodRow),
    /// Anything else, as the wire has it.
    Encoded(Arc<[u8]>),
}

impl From<Kind> for Kept {
    fn from(kind: Kind) -> Self {
        if let Kind::Pod(pod) = &kind {
            return Self::Pod(PodRow::from(pod));
        }
        Self::Encoded(Object { kind: Some(kind) }.encode_to_vec().into())
    }
}

impl Kept {
    /// The object.
    #[must_use]
    pub fn object(&self) -> Object {
        match self {
            Self::Pod(row) => Object { kind: Some(Kind::Pod((&**row).into())) },
            // It was encoded here.
            Self::Encoded(bytes) => Object::decode(&**bytes).unwrap_or_default(),
        }
    }

    /// That it is there.
    #[must_use]
    pub fn upsert(&self) -> ObjectChange {
        ObjectChange { change: Some(Change::Upsert(self.object())) }
    }
}

/// A step of the view, with the keys it covers.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Revision it applies to.
    pub base_revision: u64,
    /// Revision after it.
    pub revision: u64,
    /// Upserts first, shapes before pods; then removals, pods before shapes.
    pub changes: Vec<ObjectChange>,
    /// What the changes are about.
    pub keys: Vec<Key>,
}

/// The view.
#[derive(Debug, Default)]
pub struct View {
    objects: BTreeMap<Key, Kept>,
    /// Tombstones, while the receiver does not know what they are; they are no part of the view
    /// then.
    hidden: Option<BTreeMap<Key, Kept>>,
    dirty: BTreeSet<Key>,
    told: u64,
    revision: u64,
    digest: Sum,
}

impl View {
    /// Adds or replaces an object; true when that changed the view.
    pub fn put(&mut self, kind: Kind) -> bool {
        self.set(reference::of(&kind).into(), kind.into())
    }

    /// Adds or replaces a pod.
    pub fn put_pod(&mut self, row: &PodRow) -> bool {
        self.set(
            Key { kind: ObjectKind::Pod.into(), key: Arc::clone(&row.uid) },
            Kept::Pod(row.clone()),
        )
    }

    fn set(&mut self, key: Key, object: Kept) -> bool {
        if let Some(hidden) = self.hidden.as_mut().filter(|_| key.is_tombstone()) {
            return hidden.insert(key, object.clone()) != Some(object);
        }
        match self.objects.get_mut(&key) {
            Some(known) if *known == object => return false,
            Some(known) => *known = object,
            None => {
                self.digest.add(&(&key).into());
                self.objects.insert(key.clone(), object);
            }
        }
        self.touch(key);
        true
    }

    /// Removes an object; true when it was there.
    pub fn remove(&mut self, key: &Key) -> bool {
        if let Some(hidden) = self.hidden.as_mut().filter(|_| key.is_tombstone()) {
            return hidden.remove(key).is_some();
        }
        let found = self.objects.remove(key).is_some();
        if found {
            self.digest.remove(&key.into());
            self.touch(key.clone());
        }
        found
    }

    /// Says whether the receiver knows tombstones; true when that is news, and it needs a snapshot.
    pub fn show_tombstones(&mut self, known: bool) -> bool {
        if known == self.hidden.is_none() {
            return false;
        }
        if known {
            let rows = self.hidden.take().unwrap_or_default();
            rows.into_iter().for_each(|(key, object)| {
                self.set(key, object);
            });
        } else {
            let keys: Vec<Key> =
                self.objects.keys().filter(|k| k.is_tombstone()).cloned().collect();
            let mut hidden = BTreeMap::new();
            for key in keys {
                self.digest.remove(&(&key).into());
                self.dirty.remove(&key);
                hidden.extend(self.objects.remove_entry(&key));
            }
            // Removals that the receiver was never told of are none for it.
            self.dirty.retain(|key| !key.is_tombstone());
            self.hidden = Some(hidden);
        }
        true
    }

    fn touch(&mut self, key: Key) {
        self.revision += 1;
        self.dirty.insert(key);
    }

    /// Revision of the view.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Number of objects and their digest.
    #[must_use]
    pub fn digest(&self) -> (u64, u64) {
        self.digest.value()
    }

    /// True when the receiver of the steps knows everything.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.dirty.is_empty()
    }

    /// An object.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Kind> {
        let hidden = || self.hidden.as_ref()?.get(key);
        self.objects.get(key).or_else(hidden)?.object().kind
    }

    /// Everything, in an order that puts shapes before pods. Nothing is dirty afterwards.
    pub fn snapshot(&mut self) -> Vec<Kept> {
        self.dirty.clear();
        self.told = self.revision;
        self.objects.values().cloned().collect()
    }

    /// Marks objects as unknown to a receiver that is at `revision`.
    pub fn rewind(&mut self, revision: u64, keys: impl IntoIterator<Item = Key>) {
        self.dirty.extend(keys);
        self.told = revision;
    }

    /// The next step, of about `bytes_target`; nothing when the receiver knows everything.
    pub fn step(&mut self, bytes_target: usize) -> Option<Step> {
        if self.dirty.is_empty() {
            return None;
        }
        let mut changes = Vec::new();
        let mut keys = Vec::new();
        let mut bytes = 0;
        let present = self.dirty.iter().filter(|key| self.objects.contains_key(key));
        let gone = self.dirty.iter().rev().filter(|key| !self.objects.contains_key(key));
        for key in present.chain(gone) {
            let change = self.change(key);
            bytes += change.encoded_len();
            changes.push(change);
            keys.push(key.clone());
            if bytes >= bytes_target {
                break;
            }
        }
        for key in &keys {
            self.dirty.remove(key);
        }
        let base_revision = self.told;
        // Each dirty key stands for at least one revision, so a part never outruns the view.
        self.told = if self.dirty.is_empty() { self.revision } else { self.told + 1 };
        Some(Step { base_revision, revision: self.told, changes, keys })
    }

    fn change(&self, key: &Key) -> ObjectChange {
        match self.objects.get(key) {
            Some(object) => object.upsert(),
            None => ObjectChange { change: Some(Change::Remove(key.into())) },
        }
    }
}

#[cfg(test)]
mod tests;
