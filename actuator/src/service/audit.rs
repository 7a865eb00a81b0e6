//! The audit record: ReadAudit, page by page, and what is refused before anything is drafted.
//!
//! Invariant: a page is read when the one before it was taken; the stream ends with the newest
//! entry that there is then.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use futures::stream::{self, Stream};
use longshore_proto::capacity::v1::{AuditEntry, ReadAuditResponse, Refusal};
use longshore_proto::reason::Reason;
use longshore_runtime::budget::Grant;
use prost::Message;
use tonic::Status;

use crate::leader::{Leader, lock};
use crate::ledger::{Author, Book, Draft, Store, audit_id_at};
use crate::policy::Denied;

/// Entries that are read at a time: some hundred KiB.
const PAGE_ENTRIES: usize = 500;

/// What a reader gets.
pub type Entries = Pin<Box<dyn Stream<Item = Result<ReadAuditResponse, Status>> + Send>>;

/// Entries about some clusters from a time on; none named means all.
pub fn stream(leader: &Leader, clusters: BTreeSet<String>, from_ms: i64, place: Grant) -> Entries {
    let reading = Reading { store: leader.store.clone(), clusters, after: audit_id_at(from_ms) };
    let pages = stream::unfold(Some(reading), move |state| {
        // The reader has its place for as long as the stream lives.
        let _ = &place;
        async move {
            let mut reading = state?;
            match reading.page().await {
                Ok(Some(page)) => Some((Ok(page), Some(reading))),
                Ok(None) => None,
                Err(status) => Some((Err(*status), None)),
            }
        }
    });
    Box::pin(pages)
}

/// Refuses all that somebody asks for a cluster, and puts that on record.
pub async fn forbid(leader: &Leader, cluster_id: &str, author: Author, denied: &Denied) -> Status {
    let (reason, message) = (Reason::Forbidden, denied.to_string());
    let refusal =
        Refusal { id: String::new(), reason: reason.as_str().into(), message: message.clone() };
    let (refused, now_ms) = (Arc::clone(&leader.refused), leader.now_ms());
    let cluster_id = cluster_id.to_owned();
    let edit = move |_: &Book, draft: &mut Draft| {
        let told = lock(&refused).told(&[refusal], (&cluster_id, &author), now_ms);
        draft.audit.extend(told);
    };
    if let Err(error) = leader.ledger.edit(None, edit).await {
        tracing::warn!(%error, "a refusal is not on record: {message}");
    }
    reason.status(message)
}

struct Reading {
    store: Store,
    clusters: BTreeSet<String>,
    /// Id after which it goes on.
    after: String,
}

impl Reading {
    /// The next page; none when there is nothing more.
    async fn page(&mut self) -> Result<Option<ReadAuditResponse>, Box<Status>> {
        let read = self.store.audit(&self.after, PAGE_ENTRIES).await;
        let read =
            read.map_err(|error| Box::new(Reason::StoreUnavailable.status(error.to_string())))?;
        let decoded: Result<Vec<_>, _> =
            read.iter().map(|value| AuditEntry::decode(&**value)).collect();
        let mut entries = decoded.map_err(|error| Box::new(unreadable(&self.after, &error)))?;
        let Some(last) = entries.last() else { return Ok(None) };
        self.after.clone_from(&last.entry_id);
        entries
            .retain(|entry| self.clusters.is_empty() || self.clusters.contains(&entry.cluster_id));
        Ok(Some(ReadAuditResponse { entries }))
    }
}

fn unreadable(after: &str, error: &prost::DecodeError) -> Status {
    Reason::StoreUnavailable.status(format!(
        "an entry of the audit record after {after} cannot be read ({error}); another version wrote it"
    ))
}
