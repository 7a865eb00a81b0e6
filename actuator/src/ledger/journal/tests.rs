//! What a journal keeps for whoever comes next.

use longshore_proto::types::v1::{CapacityType, Launch};

use super::*;
use crate::ledger::record::Phase;
use crate::ledger::{Book, Move};
use crate::testing::paper::{Fate, Paper};

/// A process with an empty memory that finds this journal.
async fn process(paper: &Paper) -> JournaledStore {
    let memory = MemoryStore::default();
    memory.crown(1);
    let store = JournaledStore::new(memory, Arc::new(paper.clone()));
    store.load().await.unwrap();
    store
}

/// What a process that comes next finds.
async fn next(paper: &Paper) -> Book {
    Book::read(process(paper).await.load().await.unwrap())
}

async fn put(
    store: &JournaledStore,
    entries: Vec<(Key, Option<Vec<u8>>)>,
) -> Result<u64, StoreError> {
    let term = Term { key: Vec::new(), revision: 1 };
    store.commit(&term, Batch { entries, fence: None }).await
}

fn launch(n: usize) -> LaunchRecord {
    let launch = Launch { launch_id: format!("l-{n}"), ..Launch::default() };
    LaunchRecord::new(launch, "c", 10, 0)
}

fn asked(n: usize) -> LaunchRecord {
    let mut record = launch(n);
    (record.attempts, record.batch_id) = (record.attempts + 1, "b-1".to_owned());
    record.set_asked(CapacityType::OnDemand);
    record
}

fn entry(record: &LaunchRecord) -> (Key, Option<Vec<u8>>) {
    (Key::Launch(record.launch_id().to_owned()), Some(record.encode_to_vec()))
}

fn batch(count: usize) -> (Key, Option<Vec<u8>>) {
    let launch_ids = (0..count).map(|n| format!("l-{n}")).collect();
    let batch_id = "b-1".to_owned();
    let batch = BatchRecord { batch_id: batch_id.clone(), launch_ids, ..BatchRecord::default() };
    (Key::Batch(batch_id), Some(batch.encode_to_vec()))
}

fn got(record: &LaunchRecord, instance_id: &str) -> LaunchRecord {
    let (instance_id, ec2_request_id) = (instance_id.to_owned(), String::new());
    record.after(&Move::Launched { instance_id, ec2_request_id }, 1).unwrap()
}

#[tokio::test]
async fn a_shared_call_is_found_with_its_launches_and_then_with_whose_the_instances_are() {
    let paper = Paper::default();
    let store = process(&paper).await;
    put(&store, vec![entry(&asked(0))]).await.unwrap();
    assert_eq!(paper.writes(), 0, "a mark without its call is nothing");
    put(&store, vec![entry(&asked(1)), batch(2)]).await.unwrap();
    let book = next(&paper).await;
    assert_eq!(book.batches["b-1"].waiting(&book).count(), 2);

    put(&store, vec![entry(&got(&asked(0), "i-7"))]).await.unwrap();
    let book = next(&paper).await;
    assert_eq!(book.launches["l-0"].instance_id, "i-7");
    assert_eq!(book.batches["b-1"].waiting(&book).count(), 1, "the rest is decided yet");
    put(&store, vec![entry(&got(&asked(1), "i-8"))]).await.unwrap();
    assert_eq!(next(&paper).await.launches["l-1"].instance_id, "i-8");

    let writes = paper.writes();
    let ending = got(&asked(1), "i-8").after(&Move::Cancel, 2).unwrap();
    put(&store, vec![entry(&ending)]).await.unwrap();
    assert_eq!(paper.writes(), writes, "what comes later the instance tells");
    put(&store, vec![(Key::Batch("b-1".to_owned()), None)]).await.unwrap();
    assert!(next(&paper).await.launches.is_empty(), "the call is forgotten");
}

#[tokio::test]
async fn what_is_asked_for_alone_is_not_written_down() {
    let paper = Paper::default();
    let store = process(&paper).await;
    let alone = LaunchRecord { batch_id: String::new(), ..asked(0) };
    put(&store, vec![entry(&launch(1)), entry(&alone)]).await.unwrap();
    put(&store, vec![entry(&got(&alone, "i-1"))]).await.unwrap();
    assert_eq!(paper.writes(), 0);
}

#[tokio::test]
async fn the_later_of_two_calls_says_where_a_launch_stands() {
    let paper = Paper::default();
    let store = process(&paper).await;
    put(&store, vec![entry(&asked(0)), entry(&asked(1)), batch(2)]).await.unwrap();
    let refused = asked(0).after(&Move::Refused { exhausted: false }, 1).unwrap();
    put(&store, vec![entry(&refused), entry(&got(&asked(1), "i-1"))]).await.unwrap();
    let mut again = LaunchRecord { batch_id: "b-0".to_owned(), ..refused };
    again.attempts += 1;
    again.set_asked(CapacityType::OnDemand);
    let second = BatchRecord {
        batch_id: "b-0".to_owned(),
        launch_ids: vec!["l-0".to_owned()],
        ..BatchRecord::default()
    };
    let second = (Key::Batch("b-0".to_owned()), Some(second.encode_to_vec()));
    put(&store, vec![entry(&again), second]).await.unwrap();
    let book = next(&paper).await;
    assert!(book.launches["l-0"].waits_for("b-0"));
    assert_eq!(book.launches["l-1"].phase(), Phase::Launched);
}

#[tokio::test]
async fn what_the_journal_did_not_take_does_not_count() {
    for fate in [Fate::Failed, Fate::Lost] {
        let paper = Paper::default();
        let store = process(&paper).await;
        paper.fates.lock().unwrap().push(fate);
        let error = put(&store, vec![entry(&asked(0)), batch(1)]).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{fate:?}");
        // The ledger reads again after an answer that never came.
        let book = Book::read(store.load().await.unwrap());
        assert!(book.launches.is_empty() && book.batches.is_empty(), "{fate:?}");
        assert!(next(&paper).await.batches.is_empty(), "{fate:?}: the journal is put right");
        put(&store, vec![entry(&asked(0)), batch(1)]).await.unwrap();
        assert_eq!(next(&paper).await.batches.len(), 1);
    }
}

#[tokio::test]
async fn a_page_that_cannot_be_read_is_left_and_its_instances_are_left_alone() {
    let paper = Paper::default();
    paper.pages.lock().unwrap().insert("b-9".to_owned(), b"\xff".to_vec());
    let book = next(&paper).await;
    assert!(book.unreadable.contains_key(&Key::Batch("b-9".to_owned())));
    let store = process(&paper).await;
    store.load().await.unwrap();
    assert!(paper.pages.lock().unwrap().contains_key("b-9"));
}

#[tokio::test]
async fn what_a_deposed_writer_would_record_is_not_written_down() {
    let paper = Paper::default();
    let store = process(&paper).await;
    let term = Term { key: Vec::new(), revision: 0 };
    let batch = Batch { entries: vec![entry(&asked(0)), batch(1)], fence: None };
    let error = store.commit(&term, batch).await.unwrap_err();
    assert!(matches!(error, StoreError::Deposed { term: 0 }));
    assert!(next(&paper).await.batches.is_empty());
}
