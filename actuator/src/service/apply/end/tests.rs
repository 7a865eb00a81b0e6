//! What may be ended, by what is recorded, tagged and found.

use std::sync::Arc;

use longshore_proto::capacity::v1::InstancePhase;
use longshore_proto::types::v1::{CapacityType, ClusterFacts};

use super::super::tests::{book, end, good, plan};
use super::*;
use crate::cloud::{TAG_BATCH, TAG_POOL};
use crate::ledger::ClusterRecord;
use crate::testing;

/// A book in which the launch has led to instance i-1.
fn launched() -> Book {
    let mut book = book();
    let mut draft = Draft::default();
    let pending = LaunchRecord::new(good(), "c", 10, 0);
    let step = Move::Launched { instance_id: "i-1".to_owned(), ec2_request_id: String::new() };
    draft.put(pending.after(&step, 1).unwrap());
    book.absorb(draft);
    book
}

#[test]
fn a_termination_must_name_the_launch_that_led_to_the_instance() {
    let book = launched();
    for (instance, launch) in [("i-2", "l-1"), ("i-1", "l-9")] {
        let mut draft = Draft::default();
        let refusals = plan(vec![], vec![end(instance, launch)]).draft(&book, &mut draft);
        assert_eq!(refusals[0].reason, "LAUNCH_MISMATCH");
        assert!(draft.is_empty());
    }
    let mut draft = Draft::default();
    assert!(plan(vec![], vec![end("i-1", "l-1")]).draft(&book, &mut draft).is_empty());
    assert_eq!(draft.launch(&book, "l-1").unwrap().phase(), Phase::Terminating);
}

fn seen(instance_id: &str, launch_id: &str, claim: &str) -> Instance {
    let tags = [(TAG_LAUNCH, launch_id), (TAG_CLUSTER, "c"), (TAG_CLAIM, claim)];
    let tags = tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    Instance {
        phase: InstancePhase::Running,
        capacity_type: CapacityType::Spot,
        tags: tags.collect(),
        ..Instance::unseen(instance_id)
    }
}

fn absorbed(mut book: Book, record: LaunchRecord) -> Book {
    let mut draft = Draft::default();
    draft.put(record);
    book.absorb(draft);
    book
}

#[test]
fn an_instance_that_lives_is_ended_whatever_its_launch_is_recorded_as() {
    let failure =
        crate::ledger::Failure { reason: "X".to_owned(), message: "x".to_owned(), retryable: true };
    let pending = LaunchRecord::new(good(), "c", 10, 0);
    let failed = pending.after(&Move::Fail(failure), 1).unwrap();
    let gone = launched().launches["l-1"].after(&Move::Gone { vanished: true }, 1).unwrap();
    for record in [failed, gone] {
        let book = absorbed(book(), record);
        let (asked, _) = end("i-1", "l-1");
        let mut draft = Draft::default();
        let with = vec![(asked, Some(seen("i-1", "l-1", "claim-1")))];
        assert!(plan(vec![], with).draft(&book, &mut draft).is_empty());
        let now = draft.launch(&book, "l-1").unwrap();
        assert_eq!((now.phase(), now.instance_id.as_str()), (Phase::Terminating, "i-1"));
    }
}

#[test]
fn an_instance_of_another_autoscaler_is_ended_by_its_claim() {
    let of = |claim: &str| Termination {
        instance_id: "i-9".to_owned(),
        claim: claim.to_owned(),
        ..Termination::default()
    };
    let found = seen("i-9", "", "node-1");
    for (termination, instance, ended) in [
        (of("node-1"), Some(found.clone()), true),
        (of("node-2"), Some(found.clone()), false),
        (of("node-1"), Some(seen("i-9", "", "")), true),
        (of("node-1"), None, false),
        // Its claim has lost the id of the launch, it has not.
        (of("node-1"), Some(seen("i-9", "l-1", "node-1")), true),
        (of("node-1"), Some(seen("i-9", "l-1", "")), false),
    ] {
        let mut draft = Draft::default();
        let refusals = plan(vec![], vec![(termination, instance)]).draft(&book(), &mut draft);
        assert_eq!((refusals.is_empty(), draft.is_empty()), (ended, !ended), "{refusals:?}");
    }
    let book = absorbed(book(), crate::reconcile::imported(&found, 1));
    for (claim, ended) in [("node-1", true), ("node-2", false)] {
        let mut draft = Draft::default();
        let with = vec![(of(claim), Some(found.clone()))];
        let refusals = plan(vec![], with).draft(&book, &mut draft);
        assert_eq!((refusals.is_empty(), draft.is_empty()), (ended, !ended), "{refusals:?}");
    }
    // Imported before it was tagged, and then tagged or not.
    let book = absorbed(self::book(), crate::reconcile::imported(&seen("i-9", "", ""), 1));
    for (tagged, ended) in [("", true), ("node-1", true), ("node-2", false)] {
        let mut draft = Draft::default();
        let with = vec![(of("node-1"), Some(seen("i-9", "", tagged)))];
        let refusals = plan(vec![], with).draft(&book, &mut draft);
        assert_eq!((refusals.is_empty(), draft.is_empty()), (ended, !ended), "{refusals:?}");
    }
}

#[test]
fn an_instance_that_was_never_tagged_with_a_claim_is_ended_as_nobodys() {
    let untagged = seen("i-1", "", "");
    let own = crate::reconcile::imported(&untagged, 1);
    let other = LaunchRecord { cluster_id: "d".to_owned(), ..own.clone() };
    let claimed = crate::reconcile::imported(&seen("i-1", "", "node-1"), 1);
    let launched = crate::reconcile::imported(&seen("i-1", "l-1", ""), 1);
    for (record, instance, ended, why) in [
        (&own, Some(untagged.clone()), true, "nobody's"),
        (&own, None, false, "not listed"),
        (&own, Some(seen("i-1", "", "node-1")), false, "tagged since"),
        (&claimed, Some(untagged.clone()), false, "was tagged"),
        (&launched, Some(untagged.clone()), false, "launched by us"),
        (&other, Some(untagged), false, "of another cluster"),
    ] {
        let plan = plan(vec![], vec![(asked("", ""), instance)]);
        assert_eq!(outcome(&absorbed(book(), record.clone()), plan).is_some(), ended, "{why}");
    }
}

#[test]
fn what_was_taken_in_without_knowing_whose_it_is_ends_by_the_claim_that_names_it_or_as_an_orphan() {
    let call = tagged(&[(TAG_BATCH, "b-1"), (TAG_CLUSTER, "c"), (TAG_POOL, "p")]);
    let own = crate::reconcile::imported(&call, 1);
    let unclaimed = crate::ledger::unclaimed_id("i-1");
    for (launch_id, claim, cluster, ended) in [
        ("l-1", "claim-1", "c", true),
        ("", "claim-1", "c", true),
        (&unclaimed, "", "c", true),
        ("l-1", "", "c", false),
        ("", "", "c", false),
        ("l-1", "claim-1", "d", false),
    ] {
        let book = absorbed(book(), own.clone());
        let plan = plan(vec![], vec![(asked(launch_id, claim), Some(call.clone()))]);
        let record = outcome(&book, Plan { cluster_id: cluster.to_owned(), ..plan });
        assert_eq!(record.is_some(), ended, "{launch_id:?} {claim:?} of {cluster}");
        assert!(record.is_none_or(|record| record.phase() == Phase::Terminating));
    }
}

fn asked(launch_id: &str, claim: &str) -> Termination {
    Termination { claim: claim.to_owned(), ..end("i-1", launch_id).0 }
}

/// The instance with these tags and no others.
fn tagged(tags: &[(&str, &str)]) -> Instance {
    let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Instance { tags: tags.collect(), phase: InstancePhase::Running, ..Instance::unseen("i-1") }
}

/// Whether a termination is recorded, and as what.
fn outcome(book: &Book, plan: Plan) -> Option<Arc<LaunchRecord>> {
    let mut draft = Draft::default();
    let refusals = plan.draft(book, &mut draft);
    assert_eq!(refusals.is_empty(), !draft.is_empty(), "{refusals:?}");
    draft.launches.values().flatten().next().cloned()
}

#[test]
fn a_claim_that_lost_the_id_of_its_launch_still_ends_its_own_instance() {
    let book = launched();
    let instance = seen("i-1", "l-1", "claim-1");
    for (claim, cluster, ended) in
        [("claim-1", "c", true), ("claim-2", "c", false), ("claim-1", "d", false)]
    {
        let with = vec![(asked("", claim), Some(instance.clone()))];
        let plan = Plan { cluster_id: cluster.to_owned(), ..plan(vec![], with) };
        let record = outcome(&book, plan);
        assert_eq!(record.is_some(), ended, "{claim} of {cluster}");
        assert!(record.is_none_or(|record| record.phase() == Phase::Terminating));
    }
}

#[test]
fn a_record_made_of_incomplete_tags_keeps_nobody_from_ending_its_instance() {
    let partial = tagged(&[(TAG_LAUNCH, "l-1")]);
    let pooled = tagged(&[(TAG_POOL, "p"), (TAG_CLUSTER, "c")]);
    for found in [partial, pooled] {
        let book = absorbed(book(), crate::reconcile::imported(&found, 1));
        // The tags have come back, or have not.
        for seen in [found, seen("i-1", "l-1", "claim-1")] {
            let with = |claim| vec![(asked("l-1", claim), Some(seen.clone()))];
            let record = outcome(&book, plan(vec![], with("claim-1"))).unwrap();
            assert_eq!((record.phase(), &*record.cluster_id), (Phase::Terminating, "c"));
            let other = Plan { cluster_id: "d".to_owned(), ..plan(vec![], with("claim-1")) };
            let foreign = seen.tag(TAG_CLUSTER) == "c";
            assert!(!foreign || outcome(&book, other).is_none(), "another cluster's");
        }
    }
}

#[test]
fn an_instance_that_lost_tags_and_record_is_ended_unless_something_speaks_against_it() {
    let mut book = book();
    let facts = ClusterFacts { name: "dev".to_owned(), ..ClusterFacts::default() };
    let known = ClusterRecord { facts: Some(facts), ..(*book.clusters["c"]).clone() };
    book.clusters.insert("c".to_owned(), Arc::new(known));
    let (own, other) = ("kubernetes.io/cluster/dev", "kubernetes.io/cluster/other");
    for (tags, ended) in [
        (&[][..], true),
        (&[("Name", "x"), (own, "owned")], true),
        (&[(TAG_CLAIM, "claim-1"), (TAG_POOL, "p")], true),
        (&[(TAG_CLUSTER, "d")], false),
        (&[(other, "owned")], false),
        (&[(TAG_LAUNCH, "l-2")], false),
        (&[(TAG_CLAIM, "claim-2")], false),
    ] {
        for by_id in [true, false] {
            let listed = (!by_id).then(|| tagged(tags));
            let instances = if by_id { vec![tagged(tags)] } else { Vec::new() };
            let found = Found { instances, ..Found::default() };
            let plan = plan(vec![], vec![(asked("l-1", "claim-1"), listed)]);
            let record = outcome(&book, Plan { found, ..plan });
            assert_eq!(record.is_some(), ended, "{tags:?}");
            let Some(record) = record else { continue };
            let said = (record.launch_id(), record.claim(), &*record.cluster_id);
            assert_eq!(said, ("l-1", "claim-1", "c"));
            assert_eq!((record.phase(), &*record.instance_id), (Phase::Terminating, "i-1"));
        }
    }
}

#[test]
fn an_instance_that_ec2_denies_is_remembered_and_one_of_which_it_says_nothing_is_not() {
    for (unknown, remembered) in [(vec!["i-1".to_owned()], true), (vec![], false)] {
        let found = Found { unknown, ..Found::default() };
        let plan = plan(vec![], vec![(asked("l-1", "claim-1"), None)]);
        assert_eq!(outcome(&book(), Plan { found, ..plan }).is_some(), remembered);
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_nobody_knows_is_looked_up() {
    let cloud = Arc::new(testing::Scripted::default());
    *crate::leader::lock(&cloud.shown) = vec![testing::instance("i-1", "")];
    let leader = testing::leader(Arc::clone(&cloud)).await;
    let lost = vec![(asked("l-1", "claim-1"), None)];
    let found = look_up(&leader, &lost).await;
    assert_eq!(found.instances.len(), 1);
    let listed = vec![(asked("l-1", "claim-1"), Some(testing::instance("i-1", "")))];
    assert_eq!(look_up(&leader, &listed).await, Found::default());
    let record = crate::reconcile::imported(&testing::instance("i-1", "l-1"), 1);
    leader.ledger.edit(None, move |_: &Book, draft: &mut Draft| draft.put(record)).await.unwrap();
    assert_eq!(look_up(&leader, &lost).await, Found::default());
}
