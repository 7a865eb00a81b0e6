//! Instances that are tagged, or cannot be.

use super::*;
use crate::cloud::{TAG_BATCH, TAG_CLAIM, TAG_LAUNCH, TAG_NAME};
use crate::leader::lock;
use crate::ledger::{Book, Draft, Move};
use crate::testing::{Scripted, ask_for, error, instance, leader};

/// A leader whose launch has led to an instance that EC2 shows with the tag of its call only.
async fn untagged(cloud: &Arc<Scripted>) -> Arc<Leader> {
    let leader = leader(Arc::clone(cloud)).await;
    ask_for(&leader).await;
    let launched = Move::Launched { instance_id: "i-1".to_owned(), ec2_request_id: String::new() };
    let edit = move |book: &Book, draft: &mut Draft| {
        let ask =
            Move::AskTogether(longshore_proto::types::v1::CapacityType::Spot, "b-1".to_owned());
        draft.step(book, "l-1", &ask, 1).and_then(|()| draft.step(book, "l-1", &launched, 1))
    };
    leader.ledger.edit(None, edit).await.unwrap().0.unwrap();
    shows(&leader, &[(TAG_BATCH, "b-1")]);
    leader
}

fn shows(leader: &Leader, tags: &[(&str, &str)]) {
    let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let seen = crate::cloud::Instance { tags: tags.collect(), ..instance("i-1", "") };
    let book = leader.ledger.book();
    leader.inventory.send_modify(|inventory| drop(inventory.observe(&book, seen)));
}

fn subject() -> Subject {
    Subject { instance_id: "i-1".to_owned(), launch_id: "l-1".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn an_instance_gets_the_tags_of_its_launch_and_keeps_its_name() {
    let cloud = Arc::new(Scripted::default());
    let leader = untagged(&cloud).await;
    assert!(leader.inventory.borrow().untagged("i-1"));
    tag(&leader, &subject()).await;
    shows(&leader, &[(TAG_BATCH, "b-1"), (TAG_NAME, "mine")]);
    tag(&leader, &subject()).await;
    let tagged = lock(&cloud.tagged).clone();
    assert_eq!(tagged[0].1[TAG_LAUNCH], "l-1");
    assert_eq!((&*tagged[0].1[TAG_CLAIM], &*tagged[0].1[TAG_NAME]), ("claim-1", "claim-1"));
    assert!(!tagged[1].1.contains_key(TAG_NAME));
    shows(&leader, &[(TAG_BATCH, "b-1"), (TAG_LAUNCH, "l-1")]);
    assert!(!leader.inventory.borrow().untagged("i-1"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_tagged_waits_and_nothing_fails_for_it() {
    for (class, seconds) in
        [(Class::Throttled, 1), (Class::NotFound, 1), (Class::Unauthorized, 600)]
    {
        let cloud = Arc::new(Scripted::default());
        let leader = untagged(&cloud).await;
        lock(&cloud.tagging).push_back(error(class));
        tag(&leader, &subject()).await;
        assert_eq!(leader.record("l-1").unwrap().phase(), Phase::Launched, "{class:?}");
        let waits = |leader: &Leader| leader.paces().waiting().contains(&tag_key("i-1"));
        tokio::time::advance(Duration::from_secs(seconds) - Duration::from_millis(1)).await;
        assert!(waits(&leader), "{class:?}");
        tokio::time::advance(Duration::from_millis(2)).await;
        assert!(!waits(&leader), "{class:?}");
        tag(&leader, &subject()).await;
        assert_eq!(lock(&cloud.tagged).len(), 1);
    }
}
