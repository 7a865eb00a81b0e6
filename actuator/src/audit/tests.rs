//! Entries of drafts.

use std::sync::Arc;

use super::*;
use crate::ledger::{Failure, Move};
use crate::testing::launch;

fn author() -> Author {
    Author { caller: "longshore://scheduler at 10.0.0.1".to_owned(), plan_id: "p-2".to_owned() }
}

fn book() -> Book {
    let mut record = LaunchRecord::new(launch(Vec::new()), "prod", 10, 1);
    (record.caller, record.plan_id) = ("longshore://scheduler".to_owned(), "p-1".to_owned());
    let mut book = Book::default();
    book.launches.insert(record.launch_id().to_owned(), Arc::new(record));
    book
}

/// The entries of a move, after which the book has it.
fn after(book: &mut Book, author: Option<Author>, step: &Move) -> Vec<AuditEntry> {
    let mut draft = Draft { author, ..Draft::default() };
    draft.step(book, "l-1", step, 7).unwrap();
    let bought = |id: &str| {
        let instance_type = (id == "i-1").then(|| "m5.large".to_owned())?;
        Some(Bought { instance_type, micro_usd_per_hour: 96_000, ..Bought::default() })
    };
    let entries = told(book, &draft, bought);
    book.absorb(draft);
    entries
}

fn bought() -> Move {
    Move::Launched { instance_id: "i-1".to_owned(), ec2_request_id: String::new() }
}

#[test]
fn a_purchase_is_the_deed_of_the_plan_that_asked_for_it() {
    let entries = after(&mut book(), None, &bought());
    let entry = <[AuditEntry; 1]>::try_from(entries).unwrap()[0].clone();
    assert_eq!(entry.kind(), AuditKind::Launched);
    assert_eq!((entry.caller.as_str(), entry.plan_id.as_str()), ("longshore://scheduler", "p-1"));
    assert_eq!((entry.cluster_id.as_str(), entry.instance_id.as_str()), ("prod", "i-1"));
    assert_eq!((entry.instance_type.as_str(), entry.micro_usd_per_hour), ("m5.large", 96_000));
    assert_eq!(entry.time, Some(timestamp(7)));
}

#[test]
fn an_end_is_the_deed_of_the_plan_that_wants_it_and_is_told_once() {
    let mut book = book();
    after(&mut book, None, &bought());
    let end = Move::Terminate { traceparent: "00-a-b-01".to_owned() };
    let entries = after(&mut book, Some(author()), &end);
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].kind(), entries[0].plan_id.as_str()), (AuditKind::Ended, "p-2"));
    assert_eq!(entries[0].traceparent, "00-a-b-01");
    assert_eq!(after(&mut book, Some(author()), &end), []);
    assert_eq!(after(&mut book, None, &Move::Gone { vanished: false }), []);
}

#[test]
fn what_goes_by_itself_and_what_fails_is_told() {
    let mut gone = book();
    after(&mut gone, None, &bought());
    let entries = after(&mut gone, None, &Move::Gone { vanished: true });
    assert_eq!(entries[0].kind(), AuditKind::Gone);
    let failure = Failure {
        reason: "DENIED_BY_POLICY".to_owned(),
        message: "201 nodes".to_owned(),
        retryable: false,
    };
    let entries = after(&mut book(), None, &Move::Fail(failure));
    assert_eq!((entries[0].kind(), entries[0].message.as_str()), (AuditKind::Failed, "201 nodes"));
}

#[test]
fn a_refusal_that_repeats_itself_is_told_once_an_hour() {
    let mut refused = Refused::default();
    let refusal = |id: &str| Refusal {
        id: id.to_owned(),
        reason: "FORBIDDEN".to_owned(),
        message: "too many".to_owned(),
    };
    let both = [refusal("i-9"), refusal("l-9")];
    let entries = refused.told(&both, ("prod", &author()), 1);
    let ids = |entry: &AuditEntry| (entry.instance_id.clone(), entry.launch_id.clone());
    let told: Vec<_> = entries.iter().map(ids).collect();
    assert_eq!(told, [("i-9".to_owned(), String::new()), (String::new(), "l-9".to_owned())]);
    assert_eq!(refused.told(&both, ("prod", &author()), AGAIN_MS), []);
    assert_eq!(refused.told(&both, ("prod", &author()), AGAIN_MS + 1).len(), 2);
}
