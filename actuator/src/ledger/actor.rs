//! The task that writes the ledger.
//!
//! Invariant: edits are applied in the order they came; those that wait while a write is under way
//! are recorded together.

use std::sync::{Arc, PoisonError};

use longshore_proto::capacity::v1::AuditEntry;
use longshore_proto::time::time_ms;
use tokio::sync::oneshot;

use super::{
    Backlog, Book, Claimant, Draft, FENCES_MAX, FenceStep, Key, LedgerError, Store, StoreError,
};
use crate::election::Term;

/// Most edits that are recorded together.
const GROUP_EDITS: usize = 64;

/// Tells the author of an edit what became of it.
pub type Reply = Box<dyn FnOnce(Result<u64, LedgerError>) + Send>;

/// Drafts changes on top of a book.
pub type Edit = Box<dyn FnOnce(&Book, &mut Draft) -> Reply + Send>;

/// Is shown every draft once it is recorded, with the book that has absorbed it.
pub type Observer = Box<dyn Fn(&Book, &Draft) + Send + Sync>;

/// Says what a draft does to a book, for the audit record that is written with it.
pub type Witness = Box<dyn Fn(&Book, &Draft) -> Vec<AuditEntry> + Send + Sync>;

/// An edit that waits.
pub struct Command {
    pub(super) claimant: Option<Claimant>,
    pub(super) edit: Edit,
    /// Answers in place of the reply when the edit is refused before it is drafted.
    pub(super) refusal: oneshot::Sender<LedgerError>,
}

/// Records edits until the ledger is dropped.
///
/// # Errors
/// When the term is over: nothing can be recorded any more.
pub async fn run(
    backlog: Backlog,
    store: Store,
    term: Term,
    (witness, observer): (Witness, Observer),
) -> Result<(), StoreError> {
    Writer { backlog, store, term, witness, observer, audited: 0, doubtful: false }.run().await
}

struct Writer {
    backlog: Backlog,
    store: Store,
    term: Term,
    witness: Witness,
    observer: Observer,
    /// Entries of the audit record in this term.
    audited: u64,
    /// True after a write whose outcome is unknown.
    doubtful: bool,
}

impl Writer {
    async fn run(mut self) -> Result<(), StoreError> {
        let mut commands = Vec::with_capacity(GROUP_EDITS);
        while self.backlog.commands.recv_many(&mut commands, GROUP_EDITS).await > 0 {
            let mut waiting = std::mem::take(&mut commands).into_iter().peekable();
            while let Some(first) = waiting.next() {
                let mut group = vec![first];
                // A fence is compared for its own edit only, so such an edit stands alone.
                while group[0].claimant.is_none() {
                    let Some(next) = waiting.next_if(|next| next.claimant.is_none()) else { break };
                    group.push(next);
                }
                self.write(group).await?;
            }
        }
        Ok(())
    }

    async fn write(&mut self, group: Vec<Command>) -> Result<(), StoreError> {
        if let Err(error) = self.settle_doubt().await {
            refuse(group, &LedgerError::Store(Arc::new(error)));
            return Ok(());
        }
        let (draft, replies) = self.draft(group);
        let (outcome, deposed) = match self.commit(draft).await {
            Ok(revision) => (Ok(revision), None),
            Err(error) => {
                self.doubtful = !matches!(error, StoreError::Refused(_));
                let fatal = matches!(error, StoreError::Deposed { .. });
                let outcome = Err(LedgerError::Store(Arc::new(error)));
                let term = self.term.revision;
                (outcome, fatal.then_some(StoreError::Deposed { term }))
            }
        };
        for reply in replies {
            reply(outcome.clone());
        }
        deposed.map_or(Ok(()), Err)
    }

    /// Drafts what is not refused outright.
    fn draft(&mut self, group: Vec<Command>) -> (Draft, Vec<Reply>) {
        let book = self.backlog.book.read().unwrap_or_else(PoisonError::into_inner);
        let mut draft = Draft::default();
        let mut replies = Vec::with_capacity(group.len());
        for command in group {
            match fence_step(&book, command.claimant) {
                Ok(fence) => {
                    draft.fence = fence;
                    replies.push((command.edit)(&book, &mut draft));
                }
                // A caller that went away does not want the answer.
                Err(stale) => drop(command.refusal.send(stale)),
            }
        }
        draft.audit.extend((self.witness)(&book, &draft));
        for entry in &mut draft.audit {
            self.audited += 1;
            let at = entry.time.as_ref().map_or(0, time_ms);
            entry.entry_id = audit_id(at, self.term.revision, self.audited);
        }
        (draft, replies)
    }

    async fn commit(&self, draft: Draft) -> Result<u64, StoreError> {
        let mut revision = 0;
        if draft.is_empty() {
            return Ok(revision);
        }
        for part in draft.into_parts() {
            revision = self.store.commit(&self.term, part.to_batch()).await?;
            let mut book = self.backlog.book.write().unwrap_or_else(PoisonError::into_inner);
            book.absorb(part.clone());
            (self.observer)(&book, &part);
        }
        self.backlog.version.send_modify(|version| *version += 1);
        Ok(revision)
    }

    /// Reads the store again when the latest write's outcome is unknown.
    async fn settle_doubt(&mut self) -> Result<(), StoreError> {
        if !self.doubtful {
            return Ok(());
        }
        let read = Book::read(self.store.load().await?);
        let everything = Draft {
            launches: read.launches.iter().map(|(id, l)| (id.clone(), Some(l.clone()))).collect(),
            ..Draft::default()
        };
        let mut book = self.backlog.book.write().unwrap_or_else(PoisonError::into_inner);
        *book = read;
        (self.observer)(&book, &everything);
        self.doubtful = false;
        Ok(())
    }
}

/// Id of an entry of the audit record: in order of time, and no two alike.
fn audit_id(at_ms: i64, term: i64, number: u64) -> String {
    format!("{:015}-{term}-{number:08}", at_ms.max(0))
}

/// Id before which all entries are older than a time.
#[must_use]
pub fn audit_id_at(at_ms: i64) -> String {
    format!("{:015}", at_ms.max(0))
}

fn refuse(group: Vec<Command>, error: &LedgerError) {
    for command in group {
        // A caller that went away does not want the answer.
        drop(command.refusal.send(error.clone()));
    }
}

/// How the claimant moves its cluster's fence; none when it has no claim or moves nothing.
fn fence_step(book: &Book, claimant: Option<Claimant>) -> Result<Option<FenceStep>, LedgerError> {
    let Some(Claimant { cluster_id, fence }) = claimant else { return Ok(None) };
    if let Some(why) = book.unreadable.get(&Key::Fence(cluster_id.clone())) {
        let key = format!("fence/{cluster_id}");
        let corrupt = StoreError::Corrupt { key, reason: why.clone() };
        return Err(LedgerError::Store(Arc::new(corrupt)));
    }
    let newest = book.fences.get(&cluster_id).copied();
    match newest {
        Some(newest) if fence < newest => {
            Err(LedgerError::StaleFence { cluster_id, given: fence, newest })
        }
        None if book.fences.len() >= FENCES_MAX => Err(LedgerError::Crowded { cluster_id }),
        _ => Ok(Some(FenceStep { cluster_id, from: newest, to: fence })),
    }
}
