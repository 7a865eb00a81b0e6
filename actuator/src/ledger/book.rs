//! The ledger's content in memory, and drafts of changes to it.
//!
//! Invariant: pure. The book changes only by absorbing a draft that was recorded; readers see all
//! of a draft or nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longshore_proto::capacity::v1::AuditEntry;
use prost::Message;

use super::entry::{BATCH_BYTES_MAX, BATCH_ENTRIES_MAX, Batch, FenceStep, Key};
use super::record::{BatchRecord, ClusterRecord, FenceRecord, LaunchRecord, Phase};
use super::state::{IllegalMove, Move};

/// Everything the ledger holds.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// Launches by id.
    pub launches: BTreeMap<String, Arc<LaunchRecord>>,
    /// Clusters by id.
    pub clusters: BTreeMap<String, Arc<ClusterRecord>>,
    /// Newest writers by cluster.
    pub fences: BTreeMap<String, FenceRecord>,
    /// Calls for several launches, by id.
    pub batches: BTreeMap<String, Arc<BatchRecord>>,
    /// Entries that cannot be read, with what is wrong with each. They stay where they are, and
    /// nothing is done about what they are about.
    pub unreadable: BTreeMap<Key, String>,
    /// Launch ids by the instance they led to.
    by_instance: BTreeMap<String, String>,
}

impl Book {
    /// The book that a store's entries amount to. Those that cannot be decoded are set apart.
    #[must_use]
    pub fn read(entries: Vec<(Key, Vec<u8>)>) -> Self {
        let mut book = Self::default();
        for (key, value) in entries {
            if let Err(why) = book.take(&key, &value) {
                book.unreadable.insert(key, why);
            }
        }
        book
    }

    fn take(&mut self, key: &Key, value: &[u8]) -> Result<(), String> {
        match key {
            Key::Launch(id) => {
                let record: LaunchRecord = decode(value)?;
                if record.launch_id() != id {
                    return Err(format!("it holds launch {:?}", record.launch_id()));
                }
                self.put_launch(Arc::new(record));
            }
            Key::Cluster(id) => {
                self.clusters.insert(id.clone(), Arc::new(decode(value)?));
            }
            Key::Fence(id) => {
                self.fences.insert(id.clone(), decode(value)?);
            }
            Key::Batch(id) => {
                self.batches.insert(id.clone(), Arc::new(decode(value)?));
            }
            // Read by those who ask for it, and by nothing that decides.
            Key::Audit(_) => {}
        }
        Ok(())
    }

    /// The launch that led to an instance.
    #[must_use]
    pub fn of_instance(&self, instance_id: &str) -> Option<&Arc<LaunchRecord>> {
        self.launches.get(self.by_instance.get(instance_id)?)
    }

    /// Id of the cluster of a name; none when there is none or more than one.
    #[must_use]
    pub fn cluster_named(&self, name: &str) -> Option<&str> {
        let called =
            |cluster: &ClusterRecord| cluster.facts.as_ref().is_some_and(|f| f.name == name);
        let mut found = self.clusters.iter().filter(|(_, cluster)| called(cluster));
        let (id, _) = found.next()?;
        found.next().is_none().then_some(id)
    }

    /// Launches in a phase.
    pub fn in_phase(&self, phase: Phase) -> impl Iterator<Item = &Arc<LaunchRecord>> {
        self.launches.values().filter(move |record| record.phase() == phase)
    }

    /// Takes over a draft that has been recorded.
    pub fn absorb(&mut self, draft: Draft) {
        for (id, launch) in draft.launches {
            match launch {
                Some(launch) => self.put_launch(launch),
                None => self.forget(&id),
            }
        }
        for (id, cluster) in draft.clusters {
            self.unreadable.remove(&Key::Cluster(id.clone()));
            self.clusters.insert(id, cluster);
        }
        for id in draft.dropped {
            self.clusters.remove(&id);
            self.fences.remove(&id);
            self.unreadable.remove(&Key::Cluster(id));
        }
        for (id, batch) in draft.batches {
            match batch {
                Some(batch) => self.batches.insert(id, batch),
                None => self.batches.remove(&id),
            };
        }
        if let Some(step) = draft.fence {
            self.fences.insert(step.cluster_id, step.to);
        }
    }

    fn put_launch(&mut self, launch: Arc<LaunchRecord>) {
        if !launch.instance_id.is_empty() {
            let id = launch.launch_id().to_owned();
            self.by_instance.insert(launch.instance_id.clone(), id);
        }
        self.launches.insert(launch.launch_id().to_owned(), launch);
    }

    fn forget(&mut self, id: &str) {
        if let Some(launch) = self.launches.remove(id)
            && self.by_instance.get(&launch.instance_id).is_some_and(|of| of == id)
        {
            self.by_instance.remove(&launch.instance_id);
        }
    }
}

fn decode<M: Message + Default>(value: &[u8]) -> Result<M, String> {
    M::decode(value).map_err(|error| error.to_string())
}

/// Who asks for what a draft does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// Who sent it.
    pub caller: String,
    /// Plan.
    pub plan_id: String,
}

/// Changes on top of a book, not recorded yet.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Launches that change; `None` forgets.
    pub launches: BTreeMap<String, Option<Arc<LaunchRecord>>>,
    /// Clusters that change.
    pub clusters: BTreeMap<String, Arc<ClusterRecord>>,
    /// Fence that is compared and advanced.
    pub fence: Option<FenceStep>,
    /// Clusters that are forgotten, with their fences.
    pub dropped: BTreeSet<String>,
    /// Calls for several launches that change; `None` forgets.
    pub batches: BTreeMap<String, Option<Arc<BatchRecord>>>,
    /// Who asks for it; none when nobody but the actuator itself does.
    pub author: Option<Author>,
    /// Entries of the audit record.
    pub audit: Vec<AuditEntry>,
}

impl Draft {
    /// A launch as the draft leaves it.
    #[must_use]
    pub fn launch<'a>(&'a self, book: &'a Book, id: &str) -> Option<&'a Arc<LaunchRecord>> {
        match self.launches.get(id) {
            Some(changed) => changed.as_ref(),
            None => book.launches.get(id),
        }
    }

    /// Adds or replaces a launch.
    pub fn put(&mut self, launch: LaunchRecord) {
        self.launches.insert(launch.launch_id().to_owned(), Some(Arc::new(launch)));
    }

    /// Makes a move; unknown launches are left alone, since they are forgotten or never were.
    ///
    /// # Errors
    /// When the launch's phase does not allow it.
    pub fn step(
        &mut self,
        book: &Book,
        id: &str,
        step: &Move,
        now_ms: i64,
    ) -> Result<(), IllegalMove> {
        let Some(launch) = self.launch(book, id) else { return Ok(()) };
        let next = launch.after(step, now_ms)?;
        if next != **launch {
            self.put(next);
        }
        Ok(())
    }

    /// True when there is nothing to record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.launches.is_empty()
            && self.clusters.is_empty()
            && self.fence.is_none()
            && self.dropped.is_empty()
            && self.batches.is_empty()
            && self.audit.is_empty()
    }

    /// The draft in parts that a store takes. The fence is in each, so that a writer who loses its
    /// place midway stops there; parts already recorded are harmless, since ids make them
    /// repeatable. Batches come after launches: one that is there has all its launches recorded.
    /// What the audit record says of a launch is in the launch's part.
    #[must_use]
    pub fn into_parts(self) -> Vec<Draft> {
        let mut parts = vec![];
        let mut dropped = self.dropped;
        let mut told: BTreeMap<String, Vec<AuditEntry>> = BTreeMap::new();
        let (of_launches, mut others) = self
            .audit
            .into_iter()
            .partition::<Vec<_>, _>(|entry| self.launches.contains_key(&entry.launch_id));
        for entry in of_launches {
            told.entry(entry.launch_id.clone()).or_default().push(entry);
        }
        let mut part = Draft { fence: self.fence.clone(), ..Draft::default() };
        let mut bytes = 0;
        let (mut launches, mut clusters) = (self.launches.into_iter(), self.clusters.into_iter());
        let mut batches = self.batches.into_iter();
        loop {
            if let Some(id) = dropped.pop_first() {
                part.dropped.insert(id);
            } else if let Some((id, cluster)) = clusters.next() {
                bytes += cluster.encoded_len();
                part.clusters.insert(id, cluster);
            } else if let Some((id, launch)) = launches.next() {
                bytes += launch.as_ref().map_or(0, |launch| launch.encoded_len());
                for entry in told.remove(&id).unwrap_or_default() {
                    bytes += entry.encoded_len();
                    part.audit.push(entry);
                }
                part.launches.insert(id, launch);
            } else if let Some((id, batch)) = batches.next() {
                bytes += batch.as_ref().map_or(0, |batch| batch.encoded_len());
                part.batches.insert(id, batch);
            } else if let Some(entry) = others.pop() {
                bytes += entry.encoded_len();
                part.audit.push(entry);
            } else {
                parts.push(part);
                return parts;
            }
            let entries = part.launches.len()
                + part.clusters.len()
                + part.batches.len()
                + part.audit.len()
                + 2 * part.dropped.len();
            if entries >= BATCH_ENTRIES_MAX || bytes >= BATCH_BYTES_MAX / 2 {
                let fence =
                    part.fence.clone().map(|step| FenceStep { from: Some(step.to), ..step });
                parts.push(std::mem::replace(&mut part, Draft { fence, ..Draft::default() }));
                bytes = 0;
            }
        }
    }

    /// The draft as a store records it.
    #[must_use]
    pub fn to_batch(&self) -> Batch {
        let launches = self.launches.iter().map(|(id, launch)| {
            let value = launch.as_ref().map(|launch| launch.encode_to_vec());
            (Key::Launch(id.clone()), value)
        });
        let clusters = self
            .clusters
            .iter()
            .map(|(id, cluster)| (Key::Cluster(id.clone()), Some(cluster.encode_to_vec())));
        let dropped = self
            .dropped
            .iter()
            .flat_map(|id| [(Key::Cluster(id.clone()), None), (Key::Fence(id.clone()), None)]);
        let batches = self.batches.iter().map(|(id, batch)| {
            let value = batch.as_ref().map(|batch| batch.encode_to_vec());
            (Key::Batch(id.clone()), value)
        });
        let audit = self
            .audit
            .iter()
            .map(|entry| (Key::Audit(entry.entry_id.clone()), Some(entry.encode_to_vec())));
        let entries = launches.chain(clusters).chain(dropped).chain(batches).chain(audit).collect();
        Batch { entries, fence: self.fence.clone() }
    }
}
