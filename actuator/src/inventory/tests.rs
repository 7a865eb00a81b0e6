//! What listings and look-ups amount to.

use std::sync::Arc;

use longshore_proto::types::v1::{CapacityType, ClusterFacts, Launch};

use super::*;
use crate::ledger::{ClusterRecord, Draft, Move};

fn instance(id: &str, tags: &[(&str, &str)]) -> Instance {
    let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Instance {
        phase: InstancePhase::Running,
        instance_type: "t4g.small".to_owned(),
        zone: "a".to_owned(),
        capacity_type: CapacityType::Spot,
        tags: tags.collect(),
        ..Instance::unseen(id)
    }
}

fn ours(id: &str) -> Instance {
    instance(id, &[(TAG_LAUNCH, "l")])
}

/// A book with a launch that led to `i-1`, and a cluster `c` called `dev`.
fn book() -> Book {
    let mut book = Book::default();
    let launch = Launch { launch_id: "l".to_owned(), claim: "n".to_owned(), ..Launch::default() };
    let step = Move::Launched { instance_id: "i-1".to_owned(), ec2_request_id: String::new() };
    let mut draft = Draft::default();
    draft.put(LaunchRecord::new(launch, "c", 0, 0).after(&step, 1).unwrap());
    book.absorb(draft);
    let facts = ClusterFacts { name: "dev".to_owned(), ..ClusterFacts::default() };
    let cluster = ClusterRecord { facts: Some(facts), ..ClusterRecord::default() };
    book.clusters.insert("c".to_owned(), Arc::new(cluster));
    book
}

#[test]
fn an_instance_vanishes_only_when_its_id_is_denied_twice_apart_in_time() {
    let (book, mut inventory) = (book(), Inventory::default());
    inventory.observe(&book, ours("i-1"));
    for _ in 0..3 {
        assert_eq!(inventory.missing(&book, &[]), ["i-1"], "a listing alone says nothing");
        inventory.settle(&book, &BTreeSet::new());
        assert!(inventory.get("i-1").is_some_and(Instance::alive));
    }
    let first = Instant::now();
    assert_eq!(inventory.denied("i-1", "c", first), Denial::Noted);
    assert_eq!(inventory.denied("i-1", "c", first + VANISH_AFTER / 2), Denial::Noted);
    assert!(!inventory.ended("i-1"));
    assert_eq!(inventory.denied("i-1", "c", first + VANISH_AFTER), Denial::Vanished);
    assert!(inventory.ended("i-1") && inventory.vanished("i-1"));
    assert!(inventory.missing(&book, &[]).is_empty());
    inventory.observe(&book, ours("i-1"));
    assert!(!inventory.ended("i-1"), "seen again");
    let later = inventory.denied("i-1", "c", first + 3 * VANISH_AFTER);
    assert_eq!(later, Denial::Noted, "the time begins anew");
}

#[test]
fn a_new_leader_looks_up_what_the_ledger_believes_in() {
    let (book, inventory) = (book(), Inventory::default());
    assert_eq!(inventory.missing(&book, &[]), ["i-1"]);
    assert!(inventory.missing(&book, &[ours("i-1")]).is_empty());
}

#[test]
fn an_instance_whose_tags_were_stripped_stays_ours() {
    let (book, mut inventory) = (book(), Inventory::default());
    let stripped = inventory.observe(&book, instance("i-1", &[])).unwrap();
    let tags = [TAG_LAUNCH, TAG_CLUSTER, TAG_CLAIM].map(|key| stripped.tag(key).to_owned());
    assert_eq!(tags, ["l", "c", "n"], "by the ledger");
    inventory.observe(&book, instance("i-2", &[(TAG_LAUNCH, "m"), (TAG_CLUSTER, "c")]));
    let stripped = inventory.observe(&book, instance("i-2", &[])).unwrap();
    assert_eq!(stripped.tag(TAG_LAUNCH), "m", "by what was seen before");
}

#[test]
fn what_another_autoscaler_launched_for_a_known_cluster_is_adopted() {
    let named = (crate::cloud::TAG_CLUSTER_NAME, "dev");
    let owned = ("kubernetes.io/cluster/dev", "owned");
    let (claim, pool) = ((TAG_CLAIM, "n"), (TAG_POOL, "p"));
    let table: [(&[(&str, &str)], bool); 8] = [
        (&[pool, named], true),
        (&[pool, owned], true),
        (&[claim, pool, named], true),
        (&[claim, pool, owned], true),
        (&[claim, pool], false),
        (&[claim, owned], false),
        (&[claim, pool, ("kubernetes.io/cluster/dev", "shared")], false),
        (&[claim, pool, (crate::cloud::TAG_CLUSTER_NAME, "prod")], false),
    ];
    for (tags, adopted) in table {
        let seen = Inventory::default().observe(&book(), instance("i-9", tags));
        assert_eq!(seen.is_some_and(|seen| seen.tag(TAG_CLUSTER) == "c"), adopted, "{tags:?}");
    }
    let mut twins = book();
    let twin = twins.clusters["c"].clone();
    twins.clusters.insert("d".to_owned(), twin);
    let ambiguous = instance("i-9", &[claim, pool, named]);
    assert_eq!(Inventory::default().observe(&twins, ambiguous), None);
}

#[test]
fn ended_instances_are_dropped_once_nobody_waits_for_them() {
    let (mut book, mut inventory) = (book(), Inventory::default());
    let ended = Instance { phase: InstancePhase::Terminated, ..ours("i-1") };
    inventory.observe(&book, ended);
    assert!(inventory.settle(&book, &BTreeSet::new()).is_empty(), "its launch is not told yet");
    let mut draft = Draft::default();
    draft.step(&book, "l", &Move::Gone { vanished: false }, 2).unwrap();
    book.absorb(draft);
    assert!(inventory.settle(&book, &["i-1".to_owned()].into()).is_empty(), "listed still");
    assert_eq!(inventory.settle(&book, &BTreeSet::new()), ["i-1"]);
}

#[test]
fn few_instances_of_a_cluster_vanish_at_a_time() {
    let (book, mut inventory) = (Book::default(), Inventory::default());
    let ids: Vec<_> = (0..60).map(|n| format!("i-{n}")).collect();
    for id in &ids {
        inventory.observe(&book, instance(id, &[(TAG_LAUNCH, id), (TAG_CLUSTER, "c")]));
    }
    let first = Instant::now();
    let mut vanished_at = |time: Duration| {
        let denials: Vec<_> =
            ids.iter().map(|id| inventory.denied(id, "c", first + time)).collect();
        denials.iter().filter(|denial| **denial == Denial::Vanished).count()
    };
    assert_eq!(vanished_at(Duration::ZERO), 0);
    assert_eq!(vanished_at(VANISH_AFTER), 3, "5 % of 60");
    assert_eq!(inventory.denied("i-x", "d", first), Denial::Noted);
    let other = inventory.denied("i-x", "d", first + VANISH_AFTER);
    assert_eq!(other, Denial::Vanished, "another cluster's own matter");
}

#[test]
fn what_vanished_under_another_leader_counts_for_the_rest_of_its_time() {
    let mut book = Book::default();
    let mut draft = Draft::default();
    // The clock of the leader that saw it was a minute ahead of this one's.
    for (id, vanished_ms) in [("a", 900_000), ("b", 1_060_000), ("old", 400_000)] {
        let launch = Launch { launch_id: id.to_owned(), ..Launch::default() };
        let step = Move::Launched { instance_id: id.to_owned(), ec2_request_id: String::new() };
        let launched = LaunchRecord::new(launch, "c", 0, 0).after(&step, 1).unwrap();
        draft.put(launched.after(&Move::Gone { vanished: true }, vanished_ms).unwrap());
    }
    book.absorb(draft);
    let first = Instant::now();
    let mut inventory = Inventory::after(&book, 1_000_000, first);
    assert_eq!(inventory.denied("i-1", "c", first), Denial::Noted);
    assert_eq!(inventory.denied("i-1", "c", first + VANISH_AFTER), Denial::Frozen);
    let rest = Duration::from_secs(500);
    assert_eq!(inventory.denied("i-1", "c", first + rest / 2), Denial::Frozen);
    assert_eq!(inventory.denied("i-1", "c", first + rest), Denial::Vanished);
}

#[test]
fn an_instance_of_a_call_for_several_is_ours_and_lacks_the_tags_of_its_launch_until_ec2_shows_them()
{
    let (mut book, mut inventory) = (book(), Inventory::default());
    let call = |id: &str| instance(id, &[(TAG_BATCH, "b-1"), (TAG_CLUSTER, "c")]);
    inventory.observe(&book, call("i-7")).unwrap();
    assert!(inventory.untagged("i-7"));
    let launch = Launch { launch_id: "m".to_owned(), claim: "o".to_owned(), ..Launch::default() };
    let step = Move::Launched { instance_id: "i-7".to_owned(), ec2_request_id: String::new() };
    let mut draft = Draft::default();
    draft.put(LaunchRecord::new(launch, "c", 0, 0).after(&step, 1).unwrap());
    book.absorb(draft);
    let claimed = inventory.claimed(&book, &["i-7".to_owned(), "i-8".to_owned()]);
    let names = |found: &Instance| [TAG_LAUNCH, TAG_CLAIM].map(|key| found.tag(key).to_owned());
    assert_eq!(claimed.iter().map(names).collect::<Vec<_>>(), [["m", "o"]]);
    let listed = inventory.observe(&book, call("i-7")).unwrap();
    assert_eq!(names(&listed), ["m", "o"], "by the ledger");
    assert!(inventory.untagged("i-7"), "EC2 does not show them");
    inventory.observe(&book, instance("i-7", &[(TAG_BATCH, "b-1"), (TAG_LAUNCH, "m")]));
    assert!(!inventory.untagged("i-7"));
}
