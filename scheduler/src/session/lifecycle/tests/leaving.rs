//! What becomes of claims that go, and of their instances.

use super::*;

#[test]
fn a_deleted_claim_is_drained_then_terminated_then_released() {
    let running = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
    let mut deleting = running.provided().node();
    deleting.claim.deleting = true;
    assert_eq!(deleting.only(), None, "the watcher is still draining");
    deleting.claim.drained = true;
    assert_eq!(deleting.only().as_deref(), Some("terminate i-1"));
    let mut ending = deleting.instance(InstancePhase::ShuttingDown);
    assert_eq!(ending.only(), None);
    ending = ending.instance(InstancePhase::Terminated);
    assert_eq!(ending.only().as_deref(), Some("release"));
}

#[test]
fn nothing_is_ended_before_its_claim_is_seen_to_go() {
    let launched = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
    for mut case in [launched, Case::new(), Case::new().launch(LaunchPhase::Pending)] {
        case.watched = Some(case.claim.clone());
        case.claim.deleting = true;
        assert_eq!(case.only(), None, "the deletion may be refused");
        case.watched = None;
        assert!(case.only().is_some());
    }
}

#[test]
fn nothing_is_released_while_a_launch_may_still_succeed() {
    let mut case = Case::new().launch(LaunchPhase::Pending);
    case.claim.deleting = true;
    assert_eq!(case.only().as_deref(), Some("terminate "), "by its launch id");
    let mut unlaunched = Case::new();
    unlaunched.claim.deleting = true;
    assert_eq!(unlaunched.only().as_deref(), Some("release"));
}

#[test]
fn a_claim_that_was_never_launched_is_released_once_nothing_can_be_on_its_way() {
    let mut case = Case::new();
    case.claim.deleting = true;
    case.asked.insert("default-a".to_owned());
    assert_eq!(case.only(), None, "its launch was asked a moment ago");
    case.asked.clear();
    case.settled = false;
    assert_eq!(case.only(), None, "an earlier session may have asked");
    case.settled = true;
    assert_eq!(case.only().as_deref(), Some("release"));
}
