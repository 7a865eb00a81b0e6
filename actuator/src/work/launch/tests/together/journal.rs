//! Calls for several launches whose ledger is memory with a journal, which may fail.

use super::*;
use crate::testing::paper::Fate;

#[tokio::test]
async fn a_process_that_finds_the_journal_repeats_the_call_of_one_that_was_killed_at_it() {
    let paper = Paper::default();
    let cloud = Arc::new(Scripted::default());
    lock(&cloud.answers).push_back(lost());
    let before = Term::on_paper(Arc::clone(&cloud), &paper).await;
    before.record((0..3).map(|n| launch_of(n, "m5.large"))).await;
    before.go().await;
    let term = Term::on_paper(Arc::clone(&cloud), &paper).await;
    // Others are like them, and would be company of another call.
    term.record((3..5).map(|n| launch_of(n, "m5.large"))).await;
    *lock(&cloud.answers) = [some(3..5), some(0..3)].into();
    assert_eq!(term.go().await, [2, 3]);
    let orders = term.orders();
    assert_eq!((orders.len(), &orders[0]), (3, &orders[2]));
    assert_eq!(term.launched(), 5);
}

#[tokio::test]
async fn a_process_that_finds_the_journal_knows_whose_instances_without_tags_are() {
    let paper = Paper::default();
    let cloud = Arc::new(Scripted::default());
    lock(&cloud.answers).push_back(some([2, 0, 1]));
    let before = Term::on_paper(Arc::clone(&cloud), &paper).await;
    before.record((0..3).map(|n| launch_of(n, "m5.large"))).await;
    before.go().await;
    let owned = [0, 1, 2].map(|n| before.instance_of(n));
    let term = Term::on_paper(Arc::clone(&cloud), &paper).await;
    let order = term.orders().remove(0);
    // One of them is not listed: it has ended, or does not show yet.
    let listed = [untagged(1, &order), untagged(2, &order)];
    crate::work::instances::take_found(&term.leader, &listed);
    assert_eq!([0, 1, 2].map(|n| term.instance_of(n)), owned);
    let tagged = |action: &Action| matches!(action, Action::Tag { .. });
    assert!(term.actions().iter().all(tagged), "{:?}", term.actions());
    assert_eq!(term.orders().len(), 1);
}

/// Only the ledger lacks the answer: EC2 would give the same again, as often as it is asked.
#[tokio::test]
async fn an_answer_that_the_ledger_cannot_take_down_is_kept_until_it_can() {
    let paper = Paper::default();
    let cloud = Arc::new(Scripted::default());
    lock(&cloud.answers).extend([some([2, 0]), some([5])]);
    let term = Term::on_paper(Arc::clone(&cloud), &paper).await;
    term.record((0..3).map(|n| launch_of(n, "m5.large"))).await;
    // The call is written down, and then nothing for a while.
    lock(&paper.fates).extend([Fate::Failed, Fate::Failed, Fate::Failed, Fate::Done]);
    let group = [0, 1, 2].map(id);
    for _ in 0..3 {
        launch(&term.leader, &group).await;
        assert_eq!((term.orders().len(), term.launched()), (1, 0));
    }
    launch(&term.leader, &group).await;
    let counts: Vec<u32> = term.orders().iter().map(|order| order.count).collect();
    assert_eq!(counts, [3, 1], "the one that there was nothing for is asked for anew");
    assert_eq!(term.launched(), 3);
}

/// The repetition was refused, and the call before had launched some: they are not forgotten with
/// the refusal.
#[tokio::test]
async fn what_was_found_of_a_refused_call_is_found_again_until_the_ledger_knows_it() {
    let paper = Paper::default();
    let cloud = Arc::new(Scripted::default());
    lock(&cloud.answers).extend([lost(), Err(error(Class::Unauthorized))]);
    let term = Term::on_paper(cloud, &paper).await;
    term.record((0..2).map(|n| launch_of(n, "m5.large"))).await;
    let group = [0, 1].map(id);
    launch(&term.leader, &group).await;
    let order = term.orders().remove(0);
    lock(&term.cloud.shown).push(untagged(1, &order));
    for n in 0..2 {
        term.leader.paces().of(&id(n)).asked = before(VISIBLE_WITHIN);
    }
    lock(&paper.fates).extend([Fate::Failed, Fate::Failed]);
    for _ in 0..2 {
        launch(&term.leader, &group).await;
        assert_eq!((term.orders().len(), term.launched()), (2, 0));
    }
    launch(&term.leader, &group).await;
    assert_eq!((term.launched(), term.instance_of(0)), (1, "i-001".into()));
}

#[tokio::test]
async fn what_the_journal_has_no_room_for_is_asked_for_alone() {
    let paper = Paper::default();
    let cloud = Arc::new(Scripted::default());
    lock(&cloud.answers).extend([some([0]), some([1]), some([2])]);
    let term = Term::on_paper(Arc::clone(&cloud), &paper).await;
    term.record((0..3).map(|n| launch_of(n, "m5.large"))).await;
    lock(&paper.fates).push(Fate::Refused);
    assert_eq!(term.go().await, [3]);
    assert_eq!((term.orders().len(), term.launched()), (0, 0));
    (0..3).for_each(|n| term.leader.paces().settled(&id(n)));
    assert_eq!(term.go().await, [1, 1, 1]);
    assert_eq!(term.launched(), 3);
}
