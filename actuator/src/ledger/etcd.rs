//! The ledger in etcd.
//!
//! Invariant: every transaction compares the creation revision of the leader's campaign key, so a
//! deposed leader cannot write even before it has noticed.

use etcd_client::{Compare, CompareOp, DeleteOptions, GetOptions, Txn, TxnOp, TxnOpResponse};
use longshore_runtime::planted;
use prost::Message;
use tonic::Code;

use super::entry::{Batch, Key, StoreError};
use super::record::FenceRecord;
use crate::election::Term;
use crate::etcd::{EtcdError, Members};

/// Entries read at a time: about 5 KiB each, well under etcd's and gRPC's message limits.
const PAGE_ENTRIES: i64 = 400;

/// Entries of one (account, region) in etcd.
#[derive(Clone, Debug)]
pub struct EtcdStore {
    members: Members,
    /// Ends with a slash.
    prefix: String,
}

impl EtcdStore {
    /// A store under `prefix`, which names account and region and ends with a slash.
    #[must_use]
    pub const fn new(members: Members, prefix: String) -> Self {
        Self { members, prefix }
    }

    /// All entries, page by page.
    ///
    /// # Errors
    /// When etcd does not answer.
    pub async fn load(&self) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        let mut found = Vec::new();
        for kind in ["cluster/", "fence/", "launch/", "batch/"] {
            self.load_kind(kind, &mut found).await?;
        }
        Ok(found)
    }

    async fn load_kind(
        &self,
        kind: &str,
        found: &mut Vec<(Key, Vec<u8>)>,
    ) -> Result<(), StoreError> {
        let folder = format!("{}{kind}", self.prefix);
        // One past every key in the folder: the slash replaced by its successor.
        let end = format!("{}0", folder.trim_end_matches('/'));
        let mut from = folder.clone().into_bytes();
        loop {
            let options = GetOptions::new().with_range(end.clone()).with_limit(PAGE_ENTRIES);
            let read = self.members.ask(async |mut client| client.get(from, Some(options)).await);
            let page = Box::pin(read).await.map_err(unavailable)?;
            for entry in page.kvs() {
                let name = String::from_utf8_lossy(entry.key());
                if let Some(key) = parse_key(kind, name.trim_start_matches(&folder)) {
                    found.push((key, entry.value().to_vec()));
                }
            }
            match page.kvs().last() {
                Some(last) if page.more() => from = [last.key(), b"\0"].concat(),
                _ => return Ok(()),
            }
        }
    }

    /// Entries of the audit record after one, so many at the most.
    ///
    /// # Errors
    /// When etcd does not answer.
    pub async fn audit(&self, after: &str, count: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let from = [self.audit_path(after).as_bytes(), b"\0"].concat();
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        // One past every key in the folder: the slash replaced by its successor.
        let options =
            GetOptions::new().with_range(format!("{}audit0", self.prefix)).with_limit(limit);
        let read = self.members.ask(async |mut client| client.get(from, Some(options)).await);
        let page = Box::pin(read).await.map_err(unavailable)?;
        Ok(page.kvs().iter().map(|entry| entry.value().to_vec()).collect())
    }

    /// Forgets the entries of the audit record before one.
    ///
    /// # Errors
    /// When the term is over or etcd does not answer.
    pub async fn forget_audit(&self, term: &Term, before: &str) -> Result<(), StoreError> {
        let leads = Compare::create_revision(term.key.clone(), CompareOp::Equal, term.revision);
        let range = DeleteOptions::new().with_range(self.audit_path(before));
        let delete = TxnOp::delete(self.audit_path(""), Some(range));
        let transaction = Txn::new().when([leads]).and_then([delete]);
        let write = self.members.ask(async |mut client| client.txn(transaction).await);
        let answer = Box::pin(write).await.map_err(unavailable)?;
        let over = StoreError::Deposed { term: term.revision };
        if answer.succeeded() { Ok(()) } else { Err(over) }
    }

    fn audit_path(&self, id: &str) -> String {
        self.path(&Key::Audit(id.to_owned()))
    }

    /// Records a batch.
    ///
    /// # Errors
    /// When the term is over, the fence has moved or etcd does not answer.
    pub async fn commit(&self, term: &Term, batch: Batch) -> Result<u64, StoreError> {
        let mut conditions =
            vec![Compare::create_revision(term.key.clone(), CompareOp::Equal, term.revision)];
        let mut operations = Vec::with_capacity(batch.entries.len() + 1);
        let fenced = batch.fence.as_ref().map(|step| step.cluster_id.clone());
        if let Some(step) = batch.fence {
            let key = self.path(&Key::Fence(step.cluster_id));
            conditions.push(fence_unmoved(&key, step.from));
            operations.push(TxnOp::put(key, step.to.encode_to_vec(), None));
        }
        for (key, value) in batch.entries {
            let path = self.path(&key);
            operations.push(match value {
                Some(value) => TxnOp::put(path, value, None),
                None => TxnOp::delete(path, None),
            });
        }
        let leader = TxnOp::get(term.key.clone(), None);
        let transaction = Txn::new().when(conditions).and_then(operations).or_else([leader]);
        let write = self.members.ask(async |mut client| client.txn(transaction).await);
        let answer = Box::pin(write).await.map_err(not_written)?;
        if answer.succeeded() {
            let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
            return Ok(u64::try_from(revision).unwrap_or_default());
        }
        Err(refusal(&answer, term, fenced))
    }

    fn path(&self, key: &Key) -> String {
        match key {
            Key::Launch(id) => format!("{}launch/{id}", self.prefix),
            Key::Cluster(id) => format!("{}cluster/{id}", self.prefix),
            Key::Fence(id) => format!("{}fence/{id}", self.prefix),
            Key::Batch(id) => format!("{}batch/{id}", self.prefix),
            Key::Audit(id) => format!("{}audit/{id}", self.prefix),
        }
    }
}

fn parse_key(kind: &str, id: &str) -> Option<Key> {
    match kind {
        "launch/" => Some(Key::Launch(id.to_owned())),
        "cluster/" => Some(Key::Cluster(id.to_owned())),
        "fence/" => Some(Key::Fence(id.to_owned())),
        "batch/" => Some(Key::Batch(id.to_owned())),
        _ => None,
    }
}

fn fence_unmoved(key: &str, from: Option<FenceRecord>) -> Compare {
    match from {
        Some(fence) => Compare::value(key, CompareOp::Equal, fence.encode_to_vec()),
        None => Compare::version(key, CompareOp::Equal, 0),
    }
}

/// Which comparison failed: the other branch of the transaction has read the leader's key.
fn refusal(answer: &etcd_client::TxnResponse, term: &Term, fenced: Option<String>) -> StoreError {
    let leads = answer.op_responses().into_iter().any(|response| match response {
        TxnOpResponse::Get(found) => {
            found.kvs().iter().any(|entry| entry.create_revision() == term.revision)
        }
        TxnOpResponse::Put(_) | TxnOpResponse::Delete(_) | TxnOpResponse::Txn(_) => false,
    });
    match fenced {
        Some(cluster_id) if leads => StoreError::FenceMoved { cluster_id },
        _ => StoreError::Deposed { term: term.revision },
    }
}

/// Whether a write that got an error for an answer may have happened.
fn not_written(error: EtcdError) -> StoreError {
    let EtcdError::Refused(etcd_client::Error::GRpcStatus(status)) = &error else {
        return unavailable(error);
    };
    let definite = matches!(
        status.code(),
        Code::InvalidArgument
            | Code::OutOfRange
            | Code::ResourceExhausted
            | Code::FailedPrecondition
    );
    if definite && !planted::is("S21") {
        return StoreError::Refused(error.to_string());
    }
    unavailable(error)
}

/// What was asked may or may not have happened.
#[expect(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn unavailable(error: EtcdError) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_etcd_refuses_for_good_is_refused_and_the_rest_is_out_of_reach() {
        let answered = |code: Code| {
            let status = tonic::Status::new(code, "says etcd");
            not_written(EtcdError::Refused(etcd_client::Error::GRpcStatus(status)))
        };
        let refused = [Code::InvalidArgument, Code::ResourceExhausted, Code::FailedPrecondition];
        for code in refused {
            assert!(matches!(answered(code), StoreError::Refused(_)), "{code:?}");
        }
        for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Unknown] {
            assert!(matches!(answered(code), StoreError::Unavailable(_)), "{code:?}");
        }
    }
}
