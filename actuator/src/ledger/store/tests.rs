//! What every store must refuse, shown on the one in memory; the etcd one is held to the same by
//! the integration tests.

use super::*;
use crate::ledger::{FenceRecord, FenceStep};

fn term(revision: i64) -> Term {
    Term { key: b"leader".to_vec(), revision }
}

fn step(from: Option<(u64, u64)>, to: (u64, u64)) -> FenceStep {
    let fence = |(session_epoch, plan_seq)| FenceRecord { session_epoch, plan_seq };
    FenceStep { cluster_id: "c".to_owned(), from: from.map(fence), to: fence(to) }
}

fn put(id: &str) -> (Key, Option<Vec<u8>>) {
    (Key::Launch(id.to_owned()), Some(b"x".to_vec()))
}

#[test]
fn a_deposed_leader_records_nothing() {
    let store = MemoryStore::default();
    store.crown(7);
    store.crown(9);
    let batch = Batch { entries: vec![put("a")], fence: None };
    let error = store.commit(&term(7), batch.clone()).unwrap_err();
    assert!(matches!(error, StoreError::Deposed { term: 7 }));
    assert!(store.load().is_empty());
    assert_eq!(store.commit(&term(9), batch).unwrap(), 1);
}

#[test]
fn a_moved_fence_refuses_the_whole_batch() {
    let store = MemoryStore::default();
    store.crown(1);
    let first = Batch { entries: vec![], fence: Some(step(None, (1, 1))) };
    store.commit(&term(1), first).unwrap();
    let stale = Batch { entries: vec![put("a")], fence: Some(step(None, (1, 2))) };
    let error = store.commit(&term(1), stale).unwrap_err();
    assert!(matches!(error, StoreError::FenceMoved { .. }));
    assert_eq!(store.load().len(), 1);
}

#[test]
fn a_deleted_entry_is_gone() {
    let store = MemoryStore::default();
    store.crown(1);
    store.commit(&term(1), Batch { entries: vec![put("a")], fence: None }).unwrap();
    let delete = (Key::Launch("a".to_owned()), None);
    store.commit(&term(1), Batch { entries: vec![delete], fence: None }).unwrap();
    assert!(store.load().is_empty());
}
