//! The ledger as a whole, on the store in memory.

use longshore_proto::capacity::v1::AuditEntry;
use longshore_proto::types::v1::{CapacityType, Launch};

use super::*;
use crate::election::Term;

struct World {
    ledger: Ledger,
    store: MemoryStore,
    task: tokio::task::JoinHandle<Result<(), StoreError>>,
}

fn open(store: &MemoryStore, revision: i64) -> World {
    store.crown(revision);
    let book = Book::read(store.load());
    let (ledger, backlog) = Ledger::open(book);
    let term = Term { key: b"leader".to_vec(), revision };
    let kind = Store::Memory(store.clone());
    #[allow(clippy::disallowed_methods, reason = "a test awaits the task's result itself")]
    let task =
        tokio::spawn(run(backlog, kind, term, (Box::new(|_, _| Vec::new()), Box::new(|_, _| {}))));
    World { ledger, store: store.clone(), task }
}

fn claimant(session_epoch: u64, plan_seq: u64) -> Option<Claimant> {
    let fence = FenceRecord { session_epoch, plan_seq };
    Some(Claimant { cluster_id: "c".to_owned(), fence })
}

fn launches(ids: impl IntoIterator<Item = String>) -> impl FnOnce(&Book, &mut Draft) + Send {
    let ids: Vec<_> = ids.into_iter().collect();
    move |_: &Book, draft: &mut Draft| {
        for launch_id in ids {
            let launch = Launch { launch_id, ..Launch::default() };
            draft.put(LaunchRecord::new(launch, "c", 10, 0));
        }
    }
}

#[tokio::test]
async fn an_older_fence_is_refused_and_an_equal_one_may_repeat() {
    let world = open(&MemoryStore::default(), 1);
    for (epoch, seq) in [(1, 1), (1, 1), (1, 2), (2, 1)] {
        world.ledger.edit(claimant(epoch, seq), |_, _| ()).await.unwrap();
    }
    for (epoch, seq) in [(1, 9), (2, 0)] {
        let error = world.ledger.edit(claimant(epoch, seq), |_, _| ()).await.unwrap_err();
        assert!(matches!(error, LedgerError::StaleFence { .. }), "{error}");
    }
}

#[tokio::test]
async fn one_cluster_more_than_are_remembered_is_refused_and_the_known_go_on() {
    let world = open(&MemoryStore::default(), 1);
    let of = |number: usize, session_epoch: u64| {
        let fence = FenceRecord { session_epoch, plan_seq: 1 };
        Some(Claimant { cluster_id: format!("c-{number}"), fence })
    };
    for number in 0..FENCES_MAX {
        world.ledger.edit(of(number, 1), |_, _| ()).await.unwrap();
    }
    let error = world.ledger.edit(of(FENCES_MAX, 1), |_, _| ()).await.unwrap_err();
    assert!(matches!(error, LedgerError::Crowded { .. }), "{error}");
    world.ledger.edit(of(7, 2), |_, _| ()).await.unwrap();
    let forget = |_: &Book, draft: &mut Draft| draft.dropped.insert("c-7".to_owned());
    assert!(world.ledger.edit(None, forget).await.unwrap().0);
    world.ledger.edit(of(FENCES_MAX, 1), |_, _| ()).await.unwrap();
}

#[tokio::test]
async fn a_large_plan_is_recorded_in_parts_and_survives_a_new_leader() {
    let store = MemoryStore::default();
    let world = open(&store, 1);
    let ids = (0..450).map(|n| format!("l-{n:03}"));
    world.ledger.edit(claimant(1, 1), launches(ids)).await.unwrap();
    assert_eq!(world.ledger.book().launches.len(), 450);
    let next = open(&store, 2);
    assert_eq!(next.ledger.book().launches.len(), 450);
    assert!(next.ledger.book().fences.contains_key("c"));
}

#[test]
fn what_is_on_record_of_a_launch_is_recorded_with_it() {
    let mut draft = Draft::default();
    launches((0..150).map(|n| format!("l-{n:03}")))(&Book::default(), &mut draft);
    let of =
        |launch_id: &String| AuditEntry { launch_id: launch_id.clone(), ..AuditEntry::default() };
    draft.audit = draft.launches.keys().chain(&["refused".to_owned()]).map(of).collect();
    let parts = draft.into_parts();
    assert!(parts.len() > 1);
    let mut others = Vec::new();
    for part in parts {
        let told = part.audit.into_iter().map(|entry| entry.launch_id);
        let (told, more) = told.partition::<Vec<_>, _>(|id| part.launches.contains_key(id));
        assert_eq!(told, part.launches.into_keys().collect::<Vec<_>>());
        others.extend(more);
    }
    assert_eq!(others, ["refused"]);
}

#[tokio::test]
async fn a_deposed_leaders_ledger_closes() {
    let store = MemoryStore::default();
    let old = open(&store, 1);
    let new = open(&store, 2);
    let error = old.ledger.edit(claimant(1, 1), |_, _| ()).await.unwrap_err();
    assert!(matches!(error, LedgerError::Store(_)), "{error}");
    assert!(matches!(old.task.await.unwrap(), Err(StoreError::Deposed { term: 1 })));
    new.ledger.edit(claimant(1, 1), |_, _| ()).await.unwrap();
}

#[tokio::test]
async fn moves_are_recorded_and_illegal_ones_reported() {
    let world = open(&MemoryStore::default(), 1);
    world.ledger.edit(None, launches(["a".to_owned()])).await.unwrap();
    let ask = ("a".to_owned(), Move::Ask(CapacityType::Spot, Box::default()));
    assert!(world.ledger.record(vec![ask.clone()], 5).await.unwrap().is_empty());
    assert_eq!(world.ledger.record(vec![ask], 6).await.unwrap().len(), 1);
    let stored = Book::read(world.store.load());
    assert_eq!(stored.launches["a"].client_token(), "a-1");
    assert_eq!(stored.launches["a"].changed_ms, 5);
}

#[tokio::test]
async fn moves_of_forgotten_launches_are_no_error() {
    let world = open(&MemoryStore::default(), 1);
    let gone = ("nobody".to_owned(), Move::Gone { vanished: false });
    assert!(world.ledger.record(vec![gone], 5).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_set_apart_and_left_where_it_is() {
    let store = MemoryStore::default();
    store.crown(1);
    let garbage = Some(b"\xff\xff\xff".to_vec());
    let entries = vec![
        (Key::Launch("bad".to_owned()), garbage.clone()),
        (Key::Cluster("c".to_owned()), garbage.clone()),
        (Key::Fence("d".to_owned()), garbage),
    ];
    let term = Term { key: b"leader".to_vec(), revision: 1 };
    store.commit(&term, Batch { entries, fence: None }).unwrap();
    let world = open(&store, 1);
    assert_eq!(world.ledger.book().unreadable.len(), 3);
    world.ledger.edit(claimant(1, 1), launches(["good".to_owned()])).await.unwrap();
    let fence = FenceRecord { session_epoch: 1, plan_seq: 1 };
    let other = Some(Claimant { cluster_id: "d".to_owned(), fence });
    let error = world.ledger.edit(other, |_, _| ()).await.unwrap_err();
    assert!(error.to_string().contains("fence/d"), "{error}");
    let put = |_: &Book, draft: &mut Draft| {
        draft.clusters.insert("c".to_owned(), Arc::default());
    };
    world.ledger.edit(claimant(1, 1), put).await.unwrap();
    let unreadable: Vec<_> = world.ledger.book().unreadable.keys().cloned().collect();
    assert_eq!(unreadable, [Key::Launch("bad".to_owned()), Key::Fence("d".to_owned())]);
    assert_eq!(store.load().len(), 5);
}
