//! Where the ledger is kept: etcd, or the process's memory when there is a single actuator, with or
//! without a journal.
//!
//! Invariant: all kinds fence alike. A batch is recorded whole or not at all, and only while the
//! writer's term is the newest and the cluster's fence is the one the writer believes it to be.

use super::entry::{Batch, Key, StoreError};
use super::{etcd::EtcdStore, journal::JournaledStore, memory::MemoryStore};
use crate::election::Term;

/// A store of any kind.
#[derive(Clone, Debug)]
pub enum Store {
    /// The process's memory.
    Memory(MemoryStore),
    /// The process's memory, and a journal of calls for several launches.
    Journaled(JournaledStore),
    /// etcd.
    Etcd(EtcdStore),
}

impl Store {
    /// Everything kept, in no particular order.
    ///
    /// # Errors
    /// When the store does not answer or holds what cannot be understood.
    pub async fn load(&self) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        match self {
            Self::Memory(store) => Ok(store.load()),
            Self::Journaled(store) => store.load().await,
            Self::Etcd(store) => store.load().await,
        }
    }

    /// Entries of the audit record after one, so many at the most, oldest first.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn audit(&self, after: &str, count: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        match self {
            Self::Memory(store) => Ok(store.audit(after, count)),
            Self::Journaled(store) => Ok(store.audit(after, count)),
            Self::Etcd(store) => store.audit(after, count).await,
        }
    }

    /// Forgets the entries of the audit record before one. Memory keeps a number of them instead.
    ///
    /// # Errors
    /// When the term is over or the store does not answer.
    pub async fn forget_audit(&self, term: &Term, before: &str) -> Result<(), StoreError> {
        match self {
            Self::Memory(_) | Self::Journaled(_) => Ok(()),
            Self::Etcd(store) => store.forget_audit(term, before).await,
        }
    }

    /// Records a batch on behalf of a term and returns the revision it is recorded at.
    ///
    /// # Errors
    /// When the term is over, the fence has moved, or the store does not answer.
    pub async fn commit(&self, term: &Term, batch: Batch) -> Result<u64, StoreError> {
        match self {
            Self::Memory(store) => store.commit(term, batch),
            Self::Journaled(store) => store.commit(term, batch).await,
            Self::Etcd(store) => store.commit(term, batch).await,
        }
    }
}

#[cfg(test)]
mod tests;
