//! Whose instances are, by table.

use std::sync::Arc;

use longshore_proto::capacity::v1::InterruptionKind;
use longshore_proto::types::v1::Launch;

use longshore_proto::types::v1::CapacityType;

use super::*;
use crate::cloud::{Instance, TAG_BATCH};
use crate::ledger::MemoryStore;
use crate::reconcile::imported;

fn launch(id: &str) -> LaunchRecord {
    let launch =
        Launch { launch_id: id.to_owned(), claim: format!("of-{id}"), ..Launch::default() };
    LaunchRecord::new(launch, "c", 1_000, 0)
}

fn ids<const N: usize>(ids: [&str; N]) -> Vec<String> {
    ids.map(str::to_owned).to_vec()
}

/// A book with launches that were asked for in one call.
fn asked(launches: &[String]) -> (Book, String) {
    let records: Vec<_> = launches.iter().map(|id| launch(id)).collect();
    let id = batch_id(&records);
    let (mut book, mut draft) = (Book::default(), Draft::default());
    records.into_iter().for_each(|record| draft.put(record));
    let ask = Move::AskTogether(CapacityType::Spot, id.clone());
    launches.iter().for_each(|launch| draft.step(&book, launch, &ask, 1).unwrap());
    let batch = BatchRecord {
        batch_id: id.clone(),
        launch_ids: launches.to_vec(),
        capacity_type: CapacityType::Spot.into(),
        ..BatchRecord::default()
    };
    draft.batches.insert(id.clone(), Some(Arc::new(batch)));
    book.absorb(draft);
    (book, id)
}

fn give(book: &mut Book, token: &str, launches: &[String], instances: Vec<String>) -> Awarded {
    let mut draft = Draft::default();
    let answer = Answer { instance_ids: instances, ec2_request_id: "r".to_owned() };
    let awarded = award(book, &mut draft, (token, launches), &answer, 2);
    book.absorb(draft);
    awarded
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(one, other)| (one.to_owned(), other.to_owned())).to_vec()
}

#[test]
fn instances_go_to_launches_in_order_and_the_rest_is_refused() {
    let launches = ids(["a", "b", "c"]);
    let (mut book, token) = asked(&launches);
    let awarded = give(&mut book, &token, &launches, ids(["i-1", "i-2"]));
    assert_eq!(awarded.launched, pairs([("a", "i-1"), ("b", "i-2")]));
    assert_eq!(awarded.refused, ["c"]);
    assert!(book.launches["c"].may_be_asked());
    assert_eq!(book.of_instance("i-2").unwrap().launch_id(), "b");
    let again = give(&mut book, &token, &launches, ids(["i-1", "i-2", "i-3"]));
    assert_eq!(again, Awarded::default(), "decided once");
}

#[test]
fn an_instance_that_a_launch_has_is_given_to_no_other() {
    let launches = ids(["a", "b", "c"]);
    let (mut book, token) = asked(&launches);
    // The first part of a settlement was recorded before whoever made it was killed.
    give(&mut book, &token, &launches[1..2], ids(["i-1"]));
    let awarded = give(&mut book, &token, &launches, ids(["i-1", "i-2", "i-3"]));
    assert_eq!(awarded.launched, pairs([("a", "i-2"), ("c", "i-3")]));
    let of: Vec<_> = ["i-1", "i-2", "i-3"].map(|id| book.of_instance(id).unwrap().claim()).into();
    assert_eq!(of, ["of-b", "of-a", "of-c"]);
}

#[test]
fn a_launch_that_is_not_wanted_any_more_is_served_last_and_ends() {
    let launches = ids(["a", "b"]);
    let (mut book, token) = asked(&launches);
    let mut draft = Draft::default();
    draft.step(&book, "a", &Move::Cancel, 2).unwrap();
    book.absorb(draft);
    let awarded = give(&mut book, &token, &launches, ids(["i-1", "i-2"]));
    assert_eq!(awarded.launched, pairs([("b", "i-1"), ("a", "i-2")]));
    assert_eq!(book.launches["a"].phase(), Phase::Terminating);
}

#[test]
fn only_those_that_wait_for_this_call_take_part() {
    let launches = ids(["a", "b"]);
    let (mut book, token) = asked(&launches);
    let mut draft = Draft::default();
    draft.step(&book, "a", &Move::Refused { exhausted: false }, 2).unwrap();
    draft.step(&book, "a", &Move::AskTogether(CapacityType::Spot, "b-2".to_owned()), 2).unwrap();
    book.absorb(draft);
    let awarded = give(&mut book, &token, &launches, ids(["i-1", "i-2"]));
    assert_eq!(awarded.launched, pairs([("b", "i-1")]));
    assert!(book.launches["a"].waits_for("b-2"));
}

#[test]
fn what_was_taken_in_for_want_of_knowing_whose_it_is_may_be_claimed_unless_it_ends() {
    for (ending, claimed) in [(false, 2), (true, 1)] {
        let launches = ids(["a", "b"]);
        let (mut book, token) = asked(&launches);
        let tags = [(TAG_BATCH.to_owned(), token.clone())].into();
        let mut draft = Draft::default();
        draft.put(imported(&Instance { tags, ..Instance::unseen("i-1") }, 1));
        let told = Move::Interrupted { kind: InterruptionKind::Spot, time_ms: 7 };
        draft.step(&book, "unclaimed-i-1", &told, 1).unwrap();
        if ending {
            let end = Move::Terminate { traceparent: String::new() };
            draft.step(&book, "unclaimed-i-1", &end, 1).unwrap();
        }
        book.absorb(draft);
        let awarded = give(&mut book, &token, &launches, ids(["i-1", "i-2"]));
        assert_eq!(awarded.launched.len(), claimed);
        assert_eq!(awarded.dropped.len(), usize::from(!ending));
        assert_eq!(book.launches.contains_key("unclaimed-i-1"), ending);
        let of = book.of_instance("i-1").unwrap();
        assert_eq!(of.launch_id(), if ending { "unclaimed-i-1" } else { "a" });
        assert_eq!(of.interruptions.len(), 1, "what was announced stays with the instance");
    }
}

#[test]
fn an_id_stands_for_these_launches_at_these_attempts() {
    let (a, b) = (launch("a"), launch("b"));
    let id = batch_id([&a, &b]);
    assert_eq!(id, batch_id([&a, &b]));
    assert!(id.len() <= 64 && id.starts_with("b-"), "{id}");
    let again = LaunchRecord { attempts: 1, ..b.clone() };
    for other in [batch_id([&a]), batch_id([&b, &a]), batch_id([&a, &again])] {
        assert_ne!(id, other);
    }
}

#[test]
fn a_batch_is_recorded_after_its_launches_and_read_as_it_was_made() {
    let launches: Vec<_> = (0..LAUNCHES_PER_CALL_MAX).map(|n| format!("l-{n:03}")).collect();
    let (book, id) = asked(&launches);
    let mut draft = Draft {
        batches: [(id.clone(), Some(Arc::clone(&book.batches[&id])))].into(),
        ..Draft::default()
    };
    book.launches.values().for_each(|record| draft.put((**record).clone()));
    let parts = draft.into_parts();
    assert!(parts.len() > 1);
    let there: Vec<_> = parts.iter().map(|part| part.batches.len()).collect();
    assert_eq!(there.iter().sum::<usize>(), 1);
    assert_eq!(there.last(), Some(&1), "last of all");
    let store = MemoryStore::default();
    let term = crate::election::Term { key: Vec::new(), revision: 0 };
    for part in &parts {
        store.commit(&term, part.to_batch()).unwrap();
    }
    let read = Book::read(store.load());
    assert_eq!(read.batches[&id], book.batches[&id]);
    assert_eq!(read.batches[&id].waiting(&read).count(), LAUNCHES_PER_CALL_MAX);
    assert_eq!(read.batches[&id].call().count, 200);
    assert_eq!(read.batches[&id].call().client_token, id);
}
