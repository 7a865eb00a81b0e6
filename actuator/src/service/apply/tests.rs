//! Plans as they are recorded.

use longshore_proto::types::v1::NodeClass;

use super::*;
use crate::testing::{candidate, launch};

pub(super) fn book() -> Book {
    let class = NodeClass {
        name: "EC2NodeClass/default".to_owned(),
        hash: "h".to_owned(),
        ..NodeClass::default()
    };
    let cluster = ClusterRecord { node_classes: vec![class], ..ClusterRecord::default() };
    let mut book = Book::default();
    book.clusters.insert("c".to_owned(), Arc::new(cluster));
    book
}

pub(super) fn plan(
    launches: Vec<Launch>,
    terminations: Vec<(Termination, Option<Instance>)>,
) -> Plan {
    let author = Author { plan_id: "p".to_owned(), ..Author::default() };
    let (cluster_id, found) = ("c".to_owned(), Found::default());
    Plan {
        author,
        cluster_id,
        expire_ms: 10,
        now_ms: 1,
        room: 0,
        fresh_from: None,
        launches,
        terminations,
        found,
        limits: Limits::default(),
        market: Arc::default(),
        running: Running::default(),
        has: Fleet::default(),
        rates: Arc::default(),
    }
}

pub(super) fn good() -> Launch {
    let candidates = vec![candidate("m5.large", "a", CapacityType::Spot)];
    Launch { node_class_hash: "h".to_owned(), ..launch(candidates) }
}

pub(super) fn end(instance_id: &str, launch_id: &str) -> (Termination, Option<Instance>) {
    let (instance_id, launch_id) = (instance_id.to_owned(), launch_id.to_owned());
    (Termination { instance_id, launch_id, ..Termination::default() }, None)
}

#[test]
fn a_launch_that_may_have_been_asked_for_by_a_process_before_is_marked() {
    let ids = [launch_id::new(6, 1 << 100), launch_id::new(7, 1 << 100), "another".to_owned()];
    let launches = || ids.iter().map(|id| Launch { launch_id: id.clone(), ..good() }).collect();
    let alone = |fresh_from: Option<u64>| {
        let mut draft = Draft::default();
        let plan = Plan { fresh_from, ..plan(launches(), vec![]) };
        assert!(plan.draft(&book(), &mut draft).is_empty());
        ids.clone().map(|id| draft.launches[&id].as_ref().is_some_and(|record| record.alone))
    };
    assert_eq!(alone(Some(7)), [true, false, true]);
    assert_eq!(alone(None), [false; 3], "the ledger knows");
}

#[test]
fn a_launch_is_recorded_once() {
    let mut book = book();
    let mut draft = Draft::default();
    assert!(plan(vec![good(), good()], vec![]).draft(&book, &mut draft).is_empty());
    assert_eq!(draft.launches.len(), 1);
    book.absorb(draft);
    let mut again = Draft::default();
    plan(vec![good()], vec![]).draft(&book, &mut again);
    assert!(again.is_empty());
}

#[test]
fn a_launch_from_another_class_is_refused_alone() {
    let unknown = Launch { node_class: "EC2NodeClass/x".to_owned(), ..good() };
    let unknown = Launch { launch_id: "l-2".to_owned(), ..unknown };
    let mut draft = Draft::default();
    let refusals = plan(vec![unknown, good()], vec![]).draft(&book(), &mut draft);
    assert_eq!((refusals.len(), refusals[0].id.as_str()), (1, "l-2"));
    assert_eq!(refusals[0].reason, "UNKNOWN_NODE_CLASS");
    assert_eq!(draft.launches.len(), 1);
}

#[test]
fn nothing_is_launched_from_a_class_that_is_being_deleted() {
    let mut book = book();
    let mut known = (*book.clusters["c"]).clone();
    known.node_classes[0].deleting = true;
    book.clusters.insert("c".to_owned(), Arc::new(known));
    let mut draft = Draft::default();
    let refusals = plan(vec![good()], vec![]).draft(&book, &mut draft);
    assert_eq!(refusals[0].reason, "UNKNOWN_NODE_CLASS");
    assert!(refusals[0].message.contains("being deleted") && draft.is_empty());
}

#[test]
fn a_pending_launch_is_called_off() {
    let mut book = book();
    let mut draft = Draft::default();
    plan(vec![good()], vec![]).draft(&book, &mut draft);
    book.absorb(draft);
    let mut draft = Draft::default();
    assert!(plan(vec![], vec![end("", "l-1")]).draft(&book, &mut draft).is_empty());
    assert!(draft.launch(&book, "l-1").unwrap().cancelled);
}

#[test]
fn malformed_plans_are_refused_whole() {
    let request = |launches: Vec<Launch>| ApplyPlanRequest {
        plan_id: "p".to_owned(),
        expire_time: Some(longshore_proto::time::timestamp(1)),
        launches,
        ..ApplyPlanRequest::default()
    };
    assert_eq!(check(&request(vec![good()])), Ok(()));
    let with = |change: fn(&mut Launch)| {
        let mut launch = good();
        change(&mut launch);
        check(&request(vec![launch])).unwrap_err()
    };
    let table = [
        (with(|l| l.launch_id = "a/b".to_owned()), "launch id"),
        (with(|l| l.launch_id = String::new()), "launch id"),
        (with(|l| l.candidates.clear()), "candidates"),
        (with(|l| l.candidates[0].set_capacity_type(CapacityType::Reserved)), "catalogue"),
        (with(|l| l.candidates = vec![l.candidates[0].clone(); 61]), "candidates"),
        (check(&request(vec![good(); 501])).unwrap_err(), "at most 500"),
    ];
    for (problem, part) in table {
        assert!(problem.contains(part), "{part} in {problem}");
    }
}

#[test]
fn a_launch_whose_record_cannot_be_read_is_frozen() {
    let mut book = book();
    book.unreadable.insert(Key::Launch("l-1".to_owned()), "garbage".to_owned());
    let mut draft = Draft::default();
    let refusals = plan(vec![good()], vec![end("i-1", "l-1")]).draft(&book, &mut draft);
    assert_eq!(refusals.iter().map(|r| r.reason.as_str()).collect::<Vec<_>>(), ["FROZEN"; 2]);
    assert!(draft.is_empty());
}

#[test]
fn launches_beyond_the_bound_of_a_cluster_are_refused_and_other_clusters_go_on() {
    let mut book = book();
    let mut draft = Draft::default();
    for n in 0..PENDING_PER_CLUSTER_MAX {
        let launch = Launch { launch_id: format!("p-{n}"), ..good() };
        draft.put(LaunchRecord::new(launch, if n == 0 { "d" } else { "c" }, 10, 0));
    }
    book.absorb(draft);
    let more = |id: &str| Launch { launch_id: id.to_owned(), ..good() };
    let mut draft = Draft::default();
    let refusals = plan(vec![more("one"), more("two")], vec![]).draft(&book, &mut draft);
    let refused: Vec<_> = refusals.iter().map(|r| (r.id.as_str(), r.reason.as_str())).collect();
    assert_eq!(refused, [("two", "OVERLOADED")]);
}
