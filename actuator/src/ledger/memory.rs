//! The ledger in memory, for a single actuator: EC2's tags rebuild it after a restart.
//!
//! Invariant: compares the same things etcd would, so a deposed writer is refused here too.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use prost::Message;

use super::entry::{Batch, Key, StoreError};
use super::record::FenceRecord;
use crate::election::Term;

/// Entries of the audit record that are kept: some megabytes, and days of a cluster.
const AUDIT_KEPT: usize = 10_000;

/// Entries in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    term: i64,
    revision: u64,
    entries: BTreeMap<Key, Vec<u8>>,
    audit: BTreeMap<String, Vec<u8>>,
}

impl MemoryStore {
    /// Lets a writer of a new term in; writers of older ones are refused from now on.
    pub fn crown(&self, term: i64) {
        self.lock().term = term;
    }

    /// All entries.
    #[must_use]
    pub fn load(&self) -> Vec<(Key, Vec<u8>)> {
        self.lock().entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// One entry.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        self.lock().entries.get(key).cloned()
    }

    /// Entries of the audit record after one, so many at the most.
    #[must_use]
    pub fn audit(&self, after: &str, count: usize) -> Vec<Vec<u8>> {
        let range = (Bound::Excluded(after.to_owned()), Bound::Unbounded);
        self.lock().audit.range(range).map(|(_, value)| value.clone()).take(count).collect()
    }

    /// Takes entries in that are recorded elsewhere.
    pub fn put(&self, entries: Vec<(Key, Vec<u8>)>) {
        self.lock().entries.extend(entries);
    }

    /// Whether a batch would be recorded.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit).
    pub fn check(&self, term: &Term, batch: &Batch) -> Result<(), StoreError> {
        self.lock().check(term, batch)
    }

    /// Records a batch.
    ///
    /// # Errors
    /// When the term is not the newest or the fence is not what the writer believes.
    pub fn commit(&self, term: &Term, batch: Batch) -> Result<u64, StoreError> {
        let mut inner = self.lock();
        inner.check(term, &batch)?;
        if let Some(step) = batch.fence {
            inner.entries.insert(Key::Fence(step.cluster_id), step.to.encode_to_vec());
        }
        for (key, value) in batch.entries {
            match (key, value) {
                (Key::Audit(id), Some(value)) => inner.audit.insert(id, value),
                (key, Some(value)) => inner.entries.insert(key, value),
                (key, None) => inner.entries.remove(&key),
            };
        }
        while inner.audit.len() > AUDIT_KEPT {
            inner.audit.pop_first();
        }
        inner.revision += 1;
        Ok(inner.revision)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn check(&self, term: &Term, batch: &Batch) -> Result<(), StoreError> {
        if self.term != term.revision {
            return Err(StoreError::Deposed { term: term.revision });
        }
        let Some(step) = &batch.fence else { return Ok(()) };
        let current = self.entries.get(&Key::Fence(step.cluster_id.clone()));
        if current.cloned() == step.from.as_ref().map(FenceRecord::encode_to_vec) {
            return Ok(());
        }
        Err(StoreError::FenceMoved { cluster_id: step.cluster_id.clone() })
    }
}
