//! The ledger's content in memory, and drafts of changes to it.
//!
//! Invariant: pure. The book changes only by absorbing a draft that was recorded; readers see all
//! of a draft or nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message;

use super::record::{ClusterRecord, FenceRecord, LaunchRecord, Phase};
use super::state::{IllegalMove, Move};
use super::store::{BATCH_BYTES_MAX, BATCH_ENTRIES_MAX, Batch, FenceStep, Key, StoreError};

/// Everything the ledger holds.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// Launches by id.
    pub launches: BTreeMap<String, Arc<LaunchRecord>>,
    /// Clusters by id.
    pub clusters: BTreeMap<String, Arc<ClusterRecord>>,
    /// Newest writers by cluster.
    pub fences: BTreeMap<String, FenceRecord>,
    /// Launch ids by the instance they led to.
    by_instance: BTreeMap<String, String>,
}

impl Book {
    /// The book that a store's entries amount to.
    ///
    /// # Errors
    /// When an entry cannot be decoded.
    pub fn read(entries: Vec<(Key, Vec<u8>)>) -> Result<Self, StoreError> {
        let mut book = Self::default();
        for (key, value) in entries {
            match key {
                Key::Launch(id) => book.put_launch(Arc::new(decode("launch", &id, &value)?)),
                Key::Cluster(id) => {
                    let cluster = Arc::new(decode("cluster", &id, &value)?);
                    book.clusters.insert(id, cluster);
                }
                Key::Fence(id) => {
                    let fence = decode("fence", &id, &value)?;
                    book.fences.insert(id, fence);
                }
            }
        }
        Ok(book)
    }

    /// The launch that led to an instance.
    #[must_use]
    pub fn of_instance(&self, instance_id: &str) -> Option<&Arc<LaunchRecord>> {
        self.launches.get(self.by_instance.get(instance_id)?)
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
        self.clusters.extend(draft.clusters);
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
        if let Some(launch) = self.launches.remove(id) {
            self.by_instance.remove(&launch.instance_id);
        }
    }
}

fn decode<M: Message + Default>(kind: &str, id: &str, value: &[u8]) -> Result<M, StoreError> {
    M::decode(value).map_err(|error| StoreError::Corrupt {
        key: format!("{kind}/{id}"),
        reason: error.to_string(),
    })
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
        self.launches.is_empty() && self.clusters.is_empty() && self.fence.is_none()
    }

    /// The draft in parts that a store takes. The fence is in each, so that a writer who loses its
    /// place midway stops there; parts already recorded are harmless, since ids make them
    /// repeatable.
    #[must_use]
    pub fn into_parts(self) -> Vec<Draft> {
        let mut parts = vec![];
        let mut part = Draft { fence: self.fence.clone(), ..Draft::default() };
        let mut bytes = 0;
        let (mut launches, mut clusters) = (self.launches.into_iter(), self.clusters.into_iter());
        loop {
            if let Some((id, cluster)) = clusters.next() {
                bytes += cluster.encoded_len();
                part.clusters.insert(id, cluster);
            } else if let Some((id, launch)) = launches.next() {
                bytes += launch.as_ref().map_or(0, |launch| launch.encoded_len());
                part.launches.insert(id, launch);
            } else {
                parts.push(part);
                return parts;
            }
            let entries = part.launches.len() + part.clusters.len();
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
        Batch { entries: launches.chain(clusters).collect(), fence: self.fence.clone() }
    }
}
