//! What etcd keeps: keys with their revisions, and leases.
//!
//! Invariant: synchronous; time comes in as an argument. All writes of one request share one
//! revision; reads are of the present only, since an actuator asks for nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::etcdserverpb::compare::{CompareResult, TargetUnion};
use super::etcdserverpb::request_op::Request;
use super::etcdserverpb::response_op::Response;
use super::etcdserverpb::{
    Compare, DeleteRangeRequest, DeleteRangeResponse, KeyValue, PutRequest, PutResponse,
    RangeRequest, RangeResponse, RequestOp, ResponseHeader, ResponseOp, TxnRequest, TxnResponse,
};

/// Shortest life of a lease, in seconds: one and a half election time-outs, rounded up.
const TTL_MIN_S: i64 = 2;
/// Most operations of a transaction (`--max-txn-ops`).
const OPERATIONS_MAX: usize = 128;

/// Why etcd refuses a request; it has then changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such lease.
    NoLease,
    /// A lease of that id exists.
    LeaseTaken,
    /// More operations than a transaction may have.
    TooManyOperations,
    /// A transaction writes one key twice.
    DuplicateKey,
    /// A read of the past or the future, which this model does not keep.
    OtherRevision,
}

/// A key that was written or deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// As it was before; none when it is new.
    pub before: Option<KeyValue>,
    /// As it is now; none when it is deleted.
    pub after: Option<KeyValue>,
    /// What the transaction had compared: keys with the revision at which they must have been
    /// created.
    pub fences: Vec<(Vec<u8>, i64)>,
}

#[derive(Clone, Debug)]
struct Lease {
    ttl_s: i64,
    due_ms: i64,
    keys: BTreeSet<Vec<u8>>,
}

/// Everything kept.
#[derive(Clone, Debug)]
pub struct Model {
    revision: i64,
    keys: BTreeMap<Vec<u8>, KeyValue>,
    leases: BTreeMap<i64, Lease>,
    next_lease: i64,
    /// What has changed and nobody has been told of.
    changes: Vec<Change>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            // An empty store is at revision 1: the first write gets 2.
            revision: 1,
            keys: BTreeMap::new(),
            leases: BTreeMap::new(),
            next_lease: 0x5151_0000,
            changes: Vec::new(),
        }
    }
}

impl Model {
    /// A header that names the present revision.
    #[must_use]
    pub fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader { cluster_id: 1, member_id: 1, revision: self.revision, raft_term: 2 })
    }

    /// What has changed since this was asked last.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// All keys that begin so.
    pub fn under<'a>(&'a self, prefix: &'a [u8]) -> impl Iterator<Item = &'a KeyValue> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let keys = self.keys.range::<[u8], _>(from).map(|(_, entry)| entry);
        keys.take_while(move |entry| entry.key.starts_with(prefix))
    }

    /// Reads keys.
    ///
    /// # Errors
    /// When it is not the present that is asked for.
    pub fn range(&self, request: &RangeRequest) -> Result<RangeResponse, Refusal> {
        if request.revision != 0 && request.revision != self.revision {
            return Err(Refusal::OtherRevision);
        }
        let found: Vec<&KeyValue> = self.found(&request.key, &request.range_end).collect();
        let limit = usize::try_from(request.limit).unwrap_or_default();
        let limit = if limit == 0 { found.len() } else { limit };
        Ok(RangeResponse {
            header: self.header(),
            kvs: found.iter().take(limit).map(|entry| (*entry).clone()).collect(),
            more: found.len() > limit,
            count: i64::try_from(found.len()).unwrap_or(i64::MAX),
        })
    }

    /// Compares, and carries one of two lists of operations out.
    ///
    /// # Errors
    /// When it is not one that etcd takes.
    pub fn txn(&mut self, request: &TxnRequest) -> Result<TxnResponse, Refusal> {
        self.check(request)?;
        let succeeded = request.compare.iter().all(|compare| self.holds(compare));
        let operations = if succeeded { &request.success } else { &request.failure };
        let fences = if succeeded { fences(&request.compare) } else { Vec::new() };
        let first = self.changes.len();
        let at = self.revision + 1;
        let mut responses = Vec::new();
        for operation in operations.iter().filter_map(|operation| operation.request.as_ref()) {
            let response = match operation {
                Request::RequestRange(range) => Response::ResponseRange(self.range(range)?),
                Request::RequestPut(put) => Response::ResponsePut(self.put_at(put, at)),
                Request::RequestDeleteRange(gone) => {
                    Response::ResponseDeleteRange(self.delete_at(gone, at))
                }
            };
            responses.push(ResponseOp { response: Some(response) });
        }
        self.changes[first..].iter_mut().for_each(|change| change.fences.clone_from(&fences));
        Ok(TxnResponse { header: self.header(), succeeded, responses })
    }

    /// Writes a key in a revision of its own.
    ///
    /// # Errors
    /// When its lease does not exist.
    pub fn put(&mut self, put: PutRequest) -> Result<(), Refusal> {
        let operation = RequestOp { request: Some(Request::RequestPut(put)) };
        self.txn(&TxnRequest { success: vec![operation], ..TxnRequest::default() }).map(drop)
    }

    /// Deletes a key in a revision of its own.
    pub fn delete(&mut self, key: &[u8]) {
        let request = DeleteRangeRequest { key: key.to_vec(), range_end: Vec::new() };
        self.delete_at(&request, self.revision + 1);
    }

    /// Makes a lease; its id and life in seconds.
    ///
    /// # Errors
    /// When one of that id exists.
    pub fn grant(&mut self, id: i64, ttl_s: i64, now_ms: i64) -> Result<(i64, i64), Refusal> {
        if self.leases.contains_key(&id) {
            return Err(Refusal::LeaseTaken);
        }
        self.next_lease += 1;
        let id = if id == 0 { self.next_lease } else { id };
        let ttl_s = ttl_s.max(TTL_MIN_S);
        let due_ms = now_ms + ttl_s * 1000;
        self.leases.insert(id, Lease { ttl_s, due_ms, keys: BTreeSet::new() });
        Ok((id, ttl_s))
    }

    /// Renews a lease; its life in seconds, 0 when there is none.
    pub fn renew(&mut self, id: i64, now_ms: i64) -> i64 {
        let Some(lease) = self.leases.get_mut(&id) else { return 0 };
        lease.due_ms = now_ms + lease.ttl_s * 1000;
        lease.ttl_s
    }

    /// Ends a lease: its keys go together, in one revision.
    ///
    /// # Errors
    /// When there is none.
    pub fn revoke(&mut self, id: i64) -> Result<(), Refusal> {
        let lease = self.leases.remove(&id).ok_or(Refusal::NoLease)?;
        let at = self.revision + 1;
        for key in lease.keys {
            self.delete_at(&DeleteRangeRequest { key, range_end: Vec::new() }, at);
        }
        Ok(())
    }

    /// Ends the leases whose time is over.
    pub fn expire(&mut self, now_ms: i64) {
        let over = self.leases.iter().filter(|(_, lease)| lease.due_ms <= now_ms);
        let over: Vec<i64> = over.map(|(id, _)| *id).collect();
        for id in over {
            // It was there a moment ago.
            let _ = self.revoke(id);
        }
    }

    /// A new leader of etcd does not know when leases were renewed last: each begins anew.
    pub fn extend_leases(&mut self, now_ms: i64) {
        for lease in self.leases.values_mut() {
            lease.due_ms = now_ms + lease.ttl_s * 1000;
        }
    }

    /// When the next lease ends, in milliseconds since 1970.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<i64> {
        self.leases.values().map(|lease| lease.due_ms).min()
    }

    fn check(&self, request: &TxnRequest) -> Result<(), Refusal> {
        let lists = [request.compare.len(), request.success.len(), request.failure.len()];
        if lists.into_iter().any(|length| length > OPERATIONS_MAX) {
            return Err(Refusal::TooManyOperations);
        }
        for operations in [&request.success, &request.failure] {
            let mut written = BTreeSet::new();
            for operation in operations {
                if let Some(Request::RequestRange(range)) = &operation.request {
                    self.range(range)?;
                }
                let Some(Request::RequestPut(put)) = &operation.request else { continue };
                if put.lease != 0 && !self.leases.contains_key(&put.lease) {
                    return Err(Refusal::NoLease);
                }
                if !written.insert(&put.key) {
                    return Err(Refusal::DuplicateKey);
                }
            }
        }
        Ok(())
    }

    fn found<'a>(&'a self, key: &[u8], end: &[u8]) -> impl Iterator<Item = &'a KeyValue> {
        let upper = match end {
            [] => Bound::Included(key),
            [0] => Bound::Unbounded,
            end => Bound::Excluded(end),
        };
        // etcd answers nothing for a range that ends before it begins; a map would panic.
        let empty = matches!(upper, Bound::Excluded(end) if end <= key);
        let range = (Bound::Included(key), if empty { Bound::Included(key) } else { upper });
        let found = self.keys.range::<[u8], _>(range).map(|(_, entry)| entry);
        found.filter(move |_| !empty)
    }

    fn holds(&self, compare: &Compare) -> bool {
        let found = self.keys.get(&compare.key);
        let number = |read: fn(&KeyValue) -> i64| found.map_or(0, read);
        let order = match &compare.target_union {
            Some(TargetUnion::Version(wanted)) => number(|entry| entry.version).cmp(wanted),
            Some(TargetUnion::CreateRevision(wanted)) => {
                number(|entry| entry.create_revision).cmp(wanted)
            }
            Some(TargetUnion::ModRevision(wanted)) => {
                number(|entry| entry.mod_revision).cmp(wanted)
            }
            // A key that is not there has no value to compare.
            Some(TargetUnion::Value(wanted)) => match found {
                Some(entry) => entry.value.cmp(wanted),
                None => return false,
            },
            None => return false,
        };
        match compare.result() {
            CompareResult::Equal => order.is_eq(),
            CompareResult::Greater => order.is_gt(),
            CompareResult::Less => order.is_lt(),
            CompareResult::NotEqual => order.is_ne(),
        }
    }

    fn put_at(&mut self, put: &PutRequest, at: i64) -> PutResponse {
        self.revision = at;
        let before = self.keys.get(&put.key).cloned();
        let after = KeyValue {
            key: put.key.clone(),
            create_revision: before.as_ref().map_or(at, |entry| entry.create_revision),
            mod_revision: at,
            version: before.as_ref().map_or(0, |entry| entry.version) + 1,
            value: put.value.clone(),
            lease: put.lease,
        };
        self.detach(before.as_ref());
        if let Some(lease) = self.leases.get_mut(&put.lease) {
            lease.keys.insert(put.key.clone());
        }
        self.keys.insert(put.key.clone(), after.clone());
        self.changes.push(Change { before, after: Some(after), fences: Vec::new() });
        PutResponse { header: self.header() }
    }

    fn delete_at(&mut self, request: &DeleteRangeRequest, at: i64) -> DeleteRangeResponse {
        let found = self.found(&request.key, &request.range_end);
        let keys: Vec<Vec<u8>> = found.map(|entry| entry.key.clone()).collect();
        for key in &keys {
            self.revision = at;
            let before = self.keys.remove(key);
            self.detach(before.as_ref());
            self.changes.push(Change { before, after: None, fences: Vec::new() });
        }
        let deleted = i64::try_from(keys.len()).unwrap_or(i64::MAX);
        DeleteRangeResponse { header: self.header(), deleted }
    }

    fn detach(&mut self, entry: Option<&KeyValue>) {
        let Some(entry) = entry else { return };
        if let Some(lease) = self.leases.get_mut(&entry.lease) {
            lease.keys.remove(&entry.key);
        }
    }
}

/// The creation revisions that were compared for equality.
fn fences(compares: &[Compare]) -> Vec<(Vec<u8>, i64)> {
    let equal = compares.iter().filter(|compare| compare.result() == CompareResult::Equal);
    let fences = equal.filter_map(|compare| match &compare.target_union {
        Some(TargetUnion::CreateRevision(revision)) => Some((compare.key.clone(), *revision)),
        Some(TargetUnion::Version(_) | TargetUnion::ModRevision(_) | TargetUnion::Value(_))
        | None => None,
    });
    fences.collect()
}

#[cfg(test)]
mod tests;
