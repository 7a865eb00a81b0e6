//! Pods that come and go, and how many more are expected.

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use serde_json::{Value, json};

use super::*;
use crate::index::{Now, Watched as _, name_of};

/// An index whose pods have been listed, at some time.
fn listed() -> Index {
    let mut index = Index::default();
    index.begin::<Pod>();
    index.end::<Pod>();
    index
}

fn at(index: &mut Index, steady_ms: i64) {
    index.set_clock(Now { wall_ms: 0, steady_ms });
}

/// What makes a pod: its owner, and what is said of it.
struct Made<'a> {
    kind: &'a str,
    owner: &'a str,
    cpu: &'a str,
    failed: bool,
    leaving: bool,
}

const NEW: Made<'_> =
    Made { kind: "ReplicaSet", owner: "web", cpu: "1", failed: false, leaving: false };
const FAILED: Made<'_> = Made { failed: true, ..NEW };

fn object(name: &str, made: &Made<'_>) -> Value {
    let version = if made.kind == "Job" { "batch/v1" } else { "apps/v1" };
    let owner = json!({ "apiVersion": version, "kind": made.kind, "name": made.owner,
        "uid": made.owner, "controller": true });
    let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" });
    let hash = made.owner.strip_prefix("web-").unwrap_or("none");
    let labels = json!({ "pod-template-hash": hash });
    json!({
        "metadata": { "namespace": "default", "name": name, "uid": name, "labels": labels,
            "ownerReferences": [owner],
            "deletionTimestamp": made.leaving.then_some("2026-01-01T00:00:00Z") },
        "spec": { "containers": [
            { "name": "c", "resources": { "requests": { "cpu": made.cpu } } }] },
        "status": { "conditions": made.failed.then_some([condition]) },
    })
}

fn put(index: &mut Index, name: &str, made: &Made<'_>) {
    let pod = Pod::decode(&object(name, made).to_string()).unwrap();
    let (namespace, name) = name_of(&pod.metadata);
    let reference =
        ObjectReference { namespace: Some(namespace), name: Some(name), ..Default::default() };
    index.apply(reference, Ok(pod));
}

fn gone(index: &mut Index, name: &str) {
    index.forget::<Pod>(&("default".to_owned(), name.to_owned()));
}

/// What the scheduler is told to expect, of all shapes.
fn coming(index: &Index) -> u32 {
    let ids = index.shapes.keys();
    ids.filter_map(|id| index.shape(id)).map(|shape| shape.coming).sum()
}

/// Whether the scheduler is told to wait for how many that are.
fn is_counting(index: &Index) -> bool {
    let mut ids = index.shapes.keys();
    ids.any(|id| index.shape(id).is_some_and(|shape| shape.counting))
}

/// Reads the one owner that wants to be.
fn answer(index: &mut Index, wanted: Option<usize>) {
    let owner = index.take_unread_owner().unwrap();
    index.owner_read(&owner, wanted);
}

/// An owner that wants ten, with two of them there.
fn burst() -> Index {
    let mut index = listed();
    put(&mut index, "a", &FAILED);
    put(&mut index, "b", &NEW);
    answer(&mut index, Some(10));
    index
}

#[test]
fn an_owner_is_read_once_when_the_first_of_its_pods_has_failed() {
    let mut index = listed();
    put(&mut index, "a", &NEW);
    assert!(!index.has_unread_owners(), "kube-scheduler has not failed it");
    put(&mut index, "a", &FAILED);
    put(&mut index, "b", &FAILED);
    let owner = index.take_unread_owner().unwrap();
    assert_eq!((owner.name.as_str(), owner.namespace.as_str()), ("web", "default"));
    put(&mut index, "c", &FAILED);
    assert!(!index.has_unread_owners(), "the answer is on its way");
    index.owner_read(&owner, None);
    put(&mut index, "d", &FAILED);
    assert!(!index.has_unread_owners(), "it has said that nothing is to be expected");
    assert_eq!(coming(&index), 0);
}

#[test]
fn that_it_is_counted_is_told_until_the_owner_has_answered_or_has_no_pods_or_makes_no_more() {
    let mut index = listed();
    put(&mut index, "a", &NEW);
    assert!(!is_counting(&index));
    put(&mut index, "a", &FAILED);
    assert!(is_counting(&index));
    let owner = index.take_unread_owner().unwrap();
    put(&mut index, "b", &FAILED);
    assert!(is_counting(&index));
    index.owner_read(&owner, None);
    assert!(!is_counting(&index));

    put(&mut index, "c", &Made { owner: "gone", ..FAILED });
    put(&mut index, "d", &Made { owner: "late", ..FAILED });
    gone(&mut index, "c");
    assert!(is_counting(&index), "the other is still to answer");
    at(&mut index, GAP_MS);
    assert_eq!(index.take_unread_owner(), None);
    assert!(!is_counting(&index));
}

#[test]
fn what_is_to_come_is_what_is_wanted_less_what_has_come() {
    let mut index = burst();
    assert_eq!(coming(&index), 8);
    put(&mut index, "b", &FAILED);
    assert_eq!(coming(&index), 8, "it is no other pod");
    for number in 0..9 {
        put(&mut index, &format!("c{number}"), &NEW);
        assert_eq!(coming(&index), 7_u32.saturating_sub(number));
    }
    assert_eq!(index.expects_until_ms(), None);
}

#[test]
fn pods_that_cease_to_come_are_expected_no_more() {
    let mut index = burst();
    at(&mut index, 1_500);
    put(&mut index, "c", &NEW);
    assert_eq!(index.expects_until_ms(), Some(3_500));
    at(&mut index, 3_499);
    index.expect_less();
    assert_eq!(coming(&index), 7);
    index.settled().snapshot();
    at(&mut index, 3_500);
    index.expect_less();
    assert_eq!((coming(&index), index.expects_until_ms()), (0, None));
    let told = index.settled().step(usize::MAX).unwrap();
    assert_eq!(told.changes.len(), 1, "the scheduler hears of it");
    put(&mut index, "d", &NEW);
    assert_eq!(coming(&index), 0, "one that comes late brings none back");
}

#[test]
fn an_answer_that_comes_late_is_no_reason_to_expect_anything() {
    let mut index = listed();
    put(&mut index, "a", &FAILED);
    let owner = index.take_unread_owner().unwrap();
    at(&mut index, GAP_MS);
    index.owner_read(&owner, Some(10));
    assert_eq!(coming(&index), 0);
    put(&mut index, "b", &Made { owner: "other", ..FAILED });
    at(&mut index, 2 * GAP_MS);
    assert_eq!(index.take_unread_owner(), None, "nor is one asked whose pods have ceased to come");
}

#[test]
fn a_pod_that_goes_adds_none_before_its_owner_was_read_again() {
    let mut index = burst();
    gone(&mut index, "b");
    assert_eq!(coming(&index), 8, "it may have been scaled down");
    at(&mut index, 1_000);
    put(&mut index, "c", &FAILED);
    assert_eq!(coming(&index), 7);
    assert!(!index.has_unread_owners(), "it was read just now");
    at(&mut index, AGAIN_MS);
    put(&mut index, "d", &FAILED);
    answer(&mut index, Some(4));
    assert_eq!(coming(&index), 1, "three are there");
}

#[test]
fn nothing_is_expected_of_an_owner_all_of_whose_pods_have_gone() {
    let mut index = burst();
    let owner = index.pod("a").unwrap().owner.clone().unwrap();
    gone(&mut index, "a");
    gone(&mut index, "b");
    assert_eq!(index.expects_until_ms(), None);
    put(&mut index, "c", &NEW);
    assert_eq!(coming(&index), 0, "the same shape is there again");
    index.owner_read(&owner, Some(10));
    assert_eq!(coming(&index), 0, "that was asked because of the others");
    put(&mut index, "c", &FAILED);
    answer(&mut index, Some(10));
    assert_eq!(coming(&index), 9);
}

#[test]
fn pods_unlike_those_that_failed_are_not_foreseen() {
    let mut index = burst();
    put(&mut index, "c", &Made { cpu: "2", ..NEW });
    assert_eq!(coming(&index), 0);
    let mut index = burst();
    put(&mut index, "b", &Made { cpu: "2", ..NEW });
    assert_eq!(coming(&index), 0, "one has changed");
}

#[test]
fn a_pod_that_is_going_counts_where_it_must_have_gone_to_be_replaced() {
    for (kind, expected) in [("ReplicaSet", 8), ("Job", 8), ("StatefulSet", 7)] {
        let mut index = listed();
        let made = Made { kind, ..NEW };
        put(&mut index, "a", &Made { failed: true, ..made });
        put(&mut index, "b", &made);
        put(&mut index, "c", &Made { leaving: true, ..made });
        answer(&mut index, Some(10));
        assert_eq!(coming(&index), expected, "{kind}");
    }
}

#[test]
fn owners_whose_pods_are_alike_are_expected_together() {
    let mut index = listed();
    for owner in ["web-old", "web-new"] {
        put(&mut index, owner, &Made { owner, ..FAILED });
        answer(&mut index, Some(4));
    }
    assert_eq!((index.shapes.len(), coming(&index)), (1, 6));
    gone(&mut index, "web-old");
    assert_eq!(coming(&index), 3);
}

#[test]
fn what_is_there_when_the_watcher_starts_has_not_just_failed() {
    let mut index = Index::default();
    index.begin::<Pod>();
    put(&mut index, "a", &FAILED);
    index.end::<Pod>();
    put(&mut index, "a", &FAILED);
    assert!(!index.has_unread_owners());
    put(&mut index, "b", &FAILED);
    assert!(index.has_unread_owners(), "it goes on");
}

#[test]
fn no_more_owners_wait_to_be_read_than_there_is_room_for() {
    let mut index = listed();
    for number in 0..=UNREAD_MAX {
        let owner = format!("set-{number}");
        put(&mut index, &format!("{number}-a"), &Made { owner: &owner, ..FAILED });
    }
    let read = std::iter::from_fn(|| index.take_unread_owner()).count();
    assert_eq!(read, UNREAD_MAX);
    let last = format!("set-{UNREAD_MAX}");
    put(&mut index, "b", &Made { owner: &last, ..FAILED });
    assert!(index.take_unread_owner().is_some_and(|owner| owner.name == last), "its turn comes");
}

#[test]
fn a_pod_that_is_given_to_another_owner_counts_there() {
    let mut index = burst();
    put(&mut index, "a", &Made { owner: "other", ..FAILED });
    put(&mut index, "b", &Made { owner: "other", ..NEW });
    assert_eq!((coming(&index), index.expects_until_ms()), (0, None));
}

const OLD: Made<'_> = Made { owner: "web-old", ..NEW };
const NEWER: Made<'_> = Made { owner: "web-new", ..FAILED };

/// What the scheduler is told to be about to go, of all shapes.
fn going(index: &Index) -> u32 {
    let ids = index.shapes.keys();
    ids.filter_map(|id| index.shape(id)).map(|shape| shape.going).sum()
}

/// A Deployment of four that is about to replace them, three of which stay for now.
fn rollout() -> Index {
    let mut index = listed();
    (0..4).for_each(|number| put(&mut index, &format!("old{number}"), &OLD));
    put(&mut index, "new", &NEWER);
    let newest = index.take_unread_owner().unwrap();
    assert!(index.is_rollout(&newest));
    index.deployment_read(&newest, 3);
    index
}

#[test]
fn what_a_deployment_replaces_is_about_to_go_until_its_deletion_has_begun() {
    let mut index = rollout();
    assert_eq!(going(&index), 1);
    put(&mut index, "old0", &Made { leaving: true, ..OLD });
    assert_eq!(going(&index), 0);
    gone(&mut index, "old0");
    assert_eq!(going(&index), 0, "it went for itself");
}

#[test]
fn pods_that_cease_to_come_and_go_let_none_of_the_others_go() {
    let mut index = rollout();
    at(&mut index, GAP_MS - 1);
    put(&mut index, "newer", &NEWER);
    assert_eq!(index.expects_until_ms(), Some(2 * GAP_MS - 1));
    at(&mut index, 2 * GAP_MS - 2);
    index.expect_less();
    assert_eq!(going(&index), 1, "one has come meanwhile");
    at(&mut index, 2 * GAP_MS - 1);
    index.expect_less();
    assert_eq!((going(&index), index.expects_until_ms()), (0, None));
}

#[test]
fn a_deployment_that_is_changed_again_lets_go_of_its_pods_once() {
    let mut index = rollout();
    put(&mut index, "newest", &Made { owner: "web-newest", ..FAILED });
    let newest = index.take_unread_owner().unwrap();
    index.deployment_read(&newest, 3);
    assert_eq!(going(&index), 2, "of four and the one that came before");
}

#[test]
fn an_owner_without_older_ones_replaces_none() {
    let mut index = rollout();
    put(&mut index, "other", &Made { owner: "other-new", ..FAILED });
    put(&mut index, "alone", &Made { owner: "web", ..FAILED });
    while let Some(owner) = index.take_unread_owner() {
        assert!(!index.is_rollout(&owner), "{owner:?}");
    }
}
