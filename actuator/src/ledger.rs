//! The ledger: what was asked for, what came of it, and who may ask.
//!
//! Invariant: one task owns the book and writes the store; a reader sees only what is recorded.
//! After an answer that never came, the book is read again before anything else is written.

mod actor;
mod batch;
mod book;
mod entry;
mod etcd;
mod journal;
mod memory;
mod record;
mod state;
mod store;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

pub use actor::{Observer, Witness, audit_id_at, run};
pub use batch::{Answer, Awarded, LAUNCHES_PER_CALL_MAX, award, batch_id, unclaimed_id};
pub use book::{Author, Book, Draft};
pub use entry::{Batch, FenceStep, Key, RECORD_BYTES_MAX, StoreError};
pub use etcd::EtcdStore;
pub use journal::{Journal, JournaledStore, entries};
pub use memory::MemoryStore;
pub use record::{
    BatchRecord, ClusterRecord, FenceRecord, InterruptionRecord, LaunchRecord, OfferRecord,
    OrderRecord, Phase, TemplateRecord,
};
pub use state::{Failure, IllegalMove, Move};
pub use store::Store;

use actor::{Command, Reply};

/// Edits that may wait for the writer; more than the launches under way at any time.
const QUEUE_EDITS: usize = 1024;
/// Most clusters whose newest plan is remembered: more than are served at once, since one may come
/// back.
const FENCES_MAX: usize = 2_000;

/// Who asks, as far as the cluster's fence knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// Cluster.
    pub cluster_id: String,
    /// Its session and plan.
    pub fence: FenceRecord,
}

/// Why an edit was not recorded.
#[derive(Clone, Debug, Error)]
pub enum LedgerError {
    /// A newer session or plan has been seen.
    #[error(
        "cluster {cluster_id}: plan {given:?} is older than {newest:?}, which has been recorded; \
         another scheduler has taken over"
    )]
    StaleFence {
        /// Cluster.
        cluster_id: String,
        /// What the caller has.
        given: FenceRecord,
        /// The newest recorded.
        newest: FenceRecord,
    },
    /// As many clusters as there may be have a fence here, and this is one more.
    #[error(
        "{FENCES_MAX} clusters have planned for this region, as many as are remembered, and cluster \
         {cluster_id} is one more; forget those that are gone with ForgetCluster"
    )]
    Crowded {
        /// Cluster.
        cluster_id: String,
    },
    /// The store refused or does not answer.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// The ledger has been closed: the term is over or the process ends.
    #[error("the ledger is closed: this actuator does not lead the region any more")]
    Closed,
}

impl LedgerError {
    /// True when the store recorded nothing and would not the next time either.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Store(error) if matches!(**error, StoreError::Refused(_)))
    }
}

/// A handle of the ledger. Clones share it.
#[derive(Clone)]
pub struct Ledger {
    commands: mpsc::Sender<Command>,
    book: Arc<RwLock<Book>>,
    version: watch::Receiver<u64>,
}

/// What the ledger's task works on; see [`run`].
pub struct Backlog {
    commands: mpsc::Receiver<Command>,
    book: Arc<RwLock<Book>>,
    version: watch::Sender<u64>,
}

impl Ledger {
    /// A ledger that holds `book`, and what its task needs.
    #[must_use]
    pub fn open(book: Book) -> (Self, Backlog) {
        let (sender, receiver) = mpsc::channel(QUEUE_EDITS);
        let (version_sender, version) = watch::channel(1);
        let book = Arc::new(RwLock::new(book));
        let backlog =
            Backlog { commands: receiver, book: Arc::clone(&book), version: version_sender };
        (Self { commands: sender, book, version }, backlog)
    }

    /// The book as it is recorded. Hold it briefly: the writer waits.
    pub fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grows with every change.
    #[must_use]
    pub fn version(&self) -> watch::Receiver<u64> {
        self.version.clone()
    }

    /// Drafts changes, records them and returns what `edit` returned with the revision.
    ///
    /// # Errors
    /// When the claimant's fence is stale, the store refuses, or the ledger is closed.
    pub async fn edit<T, F>(
        &self,
        claimant: Option<Claimant>,
        edit: F,
    ) -> Result<(T, u64), LedgerError>
    where
        T: Send + 'static,
        F: FnOnce(&Book, &mut Draft) -> T + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let edit = Box::new(move |book: &Book, draft: &mut Draft| -> Reply {
            let value = edit(book, draft);
            Box::new(move |outcome| {
                // A caller that went away does not want the answer.
                let _ = sender.send(outcome.map(|revision| (value, revision)));
            })
        });
        let (refusal, refused) = oneshot::channel();
        let command = Command { claimant, edit, refusal };
        self.commands.send(command).await.map_err(|_| LedgerError::Closed)?;
        tokio::select! {
            biased;
            Ok(error) = refused => Err(error),
            answer = receiver => answer.unwrap_or(Err(LedgerError::Closed)),
        }
    }

    /// Makes moves. Moves that a launch's phase does not allow are reported and left out.
    ///
    /// # Errors
    /// As for [`Ledger::edit`].
    pub async fn record(
        &self,
        moves: Vec<(String, Move)>,
        now_ms: i64,
    ) -> Result<Vec<IllegalMove>, LedgerError> {
        let edit = move |book: &Book, draft: &mut Draft| {
            let made = moves.iter().map(|(id, step)| draft.step(book, id, step, now_ms));
            made.filter_map(Result::err).collect()
        };
        Ok(self.edit(None, edit).await?.0)
    }
}

#[cfg(test)]
mod tests;
