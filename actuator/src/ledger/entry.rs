//! What is written and read at once: keys, writes that are recorded together, and why they were
//! not.
//!
//! Invariant: a batch stays under what etcd takes in one transaction.

use thiserror::Error;

use super::record::FenceRecord;

/// Most entries in a batch. etcd refuses transactions of more than 128 operations; one is the
/// fence.
pub const BATCH_ENTRIES_MAX: usize = 100;

/// Most bytes in a batch. etcd refuses requests over 1.5 MiB.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Most bytes of one record. With what a batch may hold before it is closed, half of
/// [`BATCH_BYTES_MAX`], it stays under etcd's bound.
pub const RECORD_BYTES_MAX: usize = 768 * 1024;

const _: () = assert!(RECORD_BYTES_MAX + BATCH_BYTES_MAX / 2 < 1536 * 1024);

/// One thing kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A launch, by its id.
    Launch(String),
    /// A cluster, by its id.
    Cluster(String),
    /// A cluster's fence, by the cluster's id.
    Fence(String),
    /// A call for several launches, by its id.
    Batch(String),
    /// An entry of the audit record, by its id.
    Audit(String),
}

/// A change of a cluster's fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceStep {
    /// Cluster.
    pub cluster_id: String,
    /// What the writer believes it to be; none when the cluster is new.
    pub from: Option<FenceRecord>,
    /// What it becomes; at least `from`.
    pub to: FenceRecord,
}

/// Writes that are recorded together.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Keys with their new values; `None` deletes.
    pub entries: Vec<(Key, Option<Vec<u8>>)>,
    /// Fence to compare and advance.
    pub fence: Option<FenceStep>,
}

/// Why a batch was not recorded, or nothing could be read.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another actuator leads by now.
    #[error("this actuator's term {term} is over: another one leads the region")]
    Deposed {
        /// The term that is over.
        term: i64,
    },
    /// Somebody else moved the cluster's fence.
    #[error("the fence of cluster {cluster_id} was moved by another writer; read it and try again")]
    FenceMoved {
        /// The cluster.
        cluster_id: String,
    },
    /// The store does not answer. What was asked may or may not have been recorded.
    #[error("the ledger's store cannot be reached: {0}")]
    Unavailable(String),
    /// The store refused the batch and recorded nothing of it; it would again.
    #[error("the ledger's store refused what was to be recorded: {0}")]
    Refused(String),
    /// A record is not what this build writes.
    #[error("ledger entry {key} cannot be read: {reason}; it was written by another version")]
    Corrupt {
        /// Where it is kept.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}
