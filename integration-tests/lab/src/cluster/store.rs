//! Objects and their recent history, by resource.
//!
//! Invariant: revisions grow by one with every change, over all resources; the log of a resource
//! holds every change after its compaction revision, in order.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;

use super::object;

/// Namespace (empty for cluster-scoped kinds) and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// A key from its parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key under which an object is stored.
    pub fn of(object: &Value) -> Self {
        Self::new(object::namespace(object), object::name(object))
    }
}

/// One version of an object. Never changed; replaced.
#[derive(Debug)]
pub struct Stored {
    /// The revision that wrote it; also `metadata.resourceVersion`.
    pub revision: u64,
    /// The object.
    pub value: Value,
    encoded: OnceLock<Bytes>,
}

impl std::ops::Deref for Stored {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl Stored {
    /// An object as of a revision.
    pub fn new(revision: u64, mut value: Value) -> Arc<Self> {
        value["metadata"]["resourceVersion"] = Value::from(revision.to_string());
        Arc::new(Self { revision, value, encoded: OnceLock::new() })
    }

    /// The object as JSON text, made once and shared by all who send it.
    pub fn json(&self) -> Bytes {
        self.encoded.get_or_init(|| Bytes::from(self.value.to_string())).clone()
    }
}

/// What happened to an object.
#[derive(Clone, Debug)]
pub struct Change {
    /// Revision of the change.
    pub revision: u64,
    /// The object before, none when it was created.
    pub before: Option<Arc<Stored>>,
    /// The object after; for a deletion its last state under the deletion's revision.
    pub after: Arc<Stored>,
    /// True for a deletion.
    pub deleted: bool,
}

struct Table {
    objects: BTreeMap<Key, Arc<Stored>>,
    log: VecDeque<Change>,
    compacted: u64,
    /// Revision of its latest change.
    revision: u64,
    changed: watch::Sender<u64>,
}

impl Table {
    fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            compacted: 0,
            revision: 0,
            changed: watch::Sender::new(0),
        }
    }
}

/// All objects of a cluster.
pub struct Store {
    revision: u64,
    history_per_resource: usize,
    tables: HashMap<String, Table>,
    changed: watch::Sender<u64>,
}

/// Asked for changes that were compacted away; the oldest revision still known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted(pub u64);

impl Store {
    /// An empty store that remembers `history_per_resource` changes of each resource.
    pub fn new(history_per_resource: usize) -> Self {
        let changed = watch::Sender::new(0);
        Self { revision: 1, history_per_resource, tables: HashMap::new(), changed }
    }

    /// Revision of the latest change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Announces the revision of every change to any resource.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Announces the revision of every change to one resource.
    pub fn changes_of(&mut self, resource: &str) -> watch::Receiver<u64> {
        self.table(resource).changed.subscribe()
    }

    /// One object.
    pub fn get(&self, resource: &str, key: &Key) -> Option<&Arc<Stored>> {
        self.tables.get(resource)?.objects.get(key)
    }

    /// Objects of a resource in key order, after `after` when given, of one namespace when given.
    pub fn list<'a>(
        &'a self,
        resource: &str,
        namespace: &'a str,
        after: Option<Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Stored>)> {
        let from = match after {
            Some(key) => Bound::Excluded(key),
            None => Bound::Included(Key::new(namespace, "")),
        };
        let rows = self.tables.get(resource).into_iter();
        rows.flat_map(move |table| table.objects.range((from.clone(), Bound::Unbounded)))
            .take_while(move |(key, _)| namespace.is_empty() || key.namespace == namespace)
    }

    /// Creates or replaces an object.
    pub fn put(&mut self, resource: &str, value: Value) -> Arc<Stored> {
        self.revision += 1;
        let after = Stored::new(self.revision, value);
        let table = self.table(resource);
        let before = table.objects.insert(Key::of(&after.value), Arc::clone(&after));
        self.record(resource, before, Arc::clone(&after), false);
        after
    }

    /// Removes an object. `last` is its final state, which watchers are shown.
    pub fn remove(&mut self, resource: &str, last: Value) -> Arc<Stored> {
        self.revision += 1;
        let after = Stored::new(self.revision, last);
        let before = self.table(resource).objects.remove(&Key::of(&after.value));
        self.record(resource, before, Arc::clone(&after), true);
        after
    }

    /// At most `limit` changes of a resource after revision `since`.
    ///
    /// # Errors
    /// [`Compacted`] when some of them are forgotten.
    pub fn since(
        &self,
        resource: &str,
        since: u64,
        limit: usize,
    ) -> Result<Vec<Change>, Compacted> {
        let Some(table) = self.tables.get(resource) else { return Ok(Vec::new()) };
        if since < table.compacted {
            return Err(Compacted(table.compacted));
        }
        let start = table.log.partition_point(|change| change.revision <= since);
        Ok(table.log.range(start..).take(limit).cloned().collect())
    }

    /// Forgets the history of every resource, so that older watches must list again.
    pub fn compact(&mut self) {
        let revision = self.revision;
        for table in self.tables.values_mut() {
            table.log.clear();
            table.compacted = revision;
        }
    }

    /// Ids of the resources that ever had an object, ordered.
    pub fn resources(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.tables.keys().cloned().collect();
        ids.sort();
        ids
    }

    /// Revision of the latest change of one resource, 0 when it never had an object.
    pub fn revision_of(&self, resource: &str) -> u64 {
        self.tables.get(resource).map_or(0, |table| table.revision)
    }

    /// Ids of the resources that have changed after a revision, ordered.
    pub fn changed_since(&self, revision: u64) -> Vec<String> {
        let changed = self.tables.iter().filter(|(_, table)| table.revision > revision);
        let mut ids: Vec<String> = changed.map(|(id, _)| id.clone()).collect();
        ids.sort();
        ids
    }

    fn table(&mut self, resource: &str) -> &mut Table {
        if !self.tables.contains_key(resource) {
            self.tables.insert(resource.to_owned(), Table::new());
        }
        self.tables.entry(resource.to_owned()).or_insert_with(Table::new)
    }

    fn record(
        &mut self,
        resource: &str,
        before: Option<Arc<Stored>>,
        after: Arc<Stored>,
        deleted: bool,
    ) {
        let (revision, history) = (self.revision, self.history_per_resource);
        let table = self.table(resource);
        table.log.push_back(Change { revision, before, after, deleted });
        if table.log.len() > history
            && let Some(oldest) = table.log.pop_front()
        {
            table.compacted = oldest.revision;
        }
        table.revision = revision;
        table.changed.send_replace(revision);
        self.changed.send_replace(revision);
    }
}
