//! Tables of states that must not last: disruptions that lead nowhere, nodes that are never ready.

use super::*;

#[test]
fn a_disrupted_claim_goes_after_a_second_look_at_its_node() {
    let disrupted = |verdict| {
        let mut case = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
        case = case.provided().node();
        case.claim.register_time = Some(Timestamp::default());
        case.claim.disruption_reason = "Underutilized".to_owned();
        case.verdict = verdict;
        case
    };
    assert_eq!(disrupted(None).only(), None);
    assert_eq!(disrupted(Some(Verdict::Wait)).only(), None);
    assert_eq!(disrupted(Some(Verdict::Cancel)).only().as_deref(), Some("cancel true"));
    let mut goes = disrupted(Some(Verdict::Go(Some(vec!["pod".to_owned()]))));
    assert_eq!(goes.only().as_deref(), Some("delete Underutilized"));
    let Step::Direct { action, .. } = goes.steps().remove(0) else { panic!("a directive") };
    let Action::DeleteClaim(delete) = *action else { panic!("a deletion") };
    assert_eq!(delete.assumes.unwrap().pods, ["pod"]);
    goes.claim.replaced_by = vec!["default-b".to_owned()];
    assert_eq!(goes.only().as_deref(), Some("cancel true"), "the replacement is gone");
    goes.claim.replaced_by = vec!["default-a".to_owned()];
    assert_eq!(goes.only(), None, "the replacement is not initialised");
    goes.claim.initialize_time = Some(Timestamp::default());
    assert!(goes.only().is_some());
    goes.claim.replaced_by.push("default-b".to_owned());
    assert!(
        goes.only().is_some_and(|it| it.starts_with("delete")),
        "its pods fit without that one"
    );
    goes.verdict = Some(Verdict::Cancel);
    assert_eq!(goes.only().as_deref(), Some("cancel true"), "they do not");
    for (kind, key) in [(ObjectKind::Pod, "uid"), (ObjectKind::NodeClaim, "default-a")] {
        let goes = disrupted(Some(Verdict::Go(Some(Vec::new())))).unreadable(kind, key);
        assert_eq!(goes.only(), None, "{kind:?} {key} cannot be read");
    }
}

#[test]
fn a_node_that_must_go_and_has_waited_for_long_goes_first() {
    let goes = |reason: &str, waited_ms: i64| {
        let mut case = Case::new().provided().launch(LaunchPhase::Launched);
        case = case.instance(InstancePhase::Running).node();
        case.claim.register_time = case.claim.create_time;
        case.claim.disruption_reason = "Underutilized".to_owned();
        case.nodes.values_mut().for_each(|node| node.disrupted = true);
        case.verdict = Some(Verdict::Go(Some(Vec::new())));
        let other = NodeClaim { disruption_reason: reason.to_owned(), ..case.claim.clone() };
        case.others.push(NodeClaim {
            name: "default-b".to_owned(),
            launch_id: String::new(),
            provider_id: "aws:///z/i-2".to_owned(),
            ..other
        });
        let (own, other) = ("disrupted/default-a".to_owned(), "disrupted/default-b".to_owned());
        case.sightings.observe(BTreeSet::from([other.clone()]), SESSION_MS - waited_ms);
        case.sightings.observe(BTreeSet::from([own, other]), SESSION_MS - 1_000);
        let goes = |step: &Step| matches!(step, Step::Direct { claim, .. } if claim == "default-a");
        case.steps().iter().any(goes)
    };
    assert!(goes("Drifted", ending::FIRST_AFTER_MS - 1), "it has not waited for long");
    assert!(!goes("Drifted", ending::FIRST_AFTER_MS));
    assert!(!goes("Expired", ending::FIRST_UNTIL_MS - 1));
    assert!(goes("Drifted", ending::FIRST_UNTIL_MS), "it does not wait for room");
    assert!(goes("Underutilized", ending::FIRST_AFTER_MS), "it may as well stay");
}

#[test]
fn a_disruption_that_leads_nowhere_is_called_off() {
    let mut case = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
    case = case.provided().node();
    case.claim.register_time = Some(Timestamp::default());
    case.claim.disruption_reason = "Drifted".to_owned();
    case.verdict = Some(Verdict::Wait);
    let case = case.lasting("disrupted/default-a", ending::DISRUPTION_TTL_MS);
    assert_eq!(case.only(), None);
    let case =
        case.lasting("other", 0).lasting("disrupted/default-a", ending::DISRUPTION_TTL_MS + 1);
    assert_eq!(case.only().as_deref(), Some("cancel true"));
}

#[test]
fn a_mark_without_its_taint_or_a_taint_without_its_mark_is_taken_off() {
    let mut case = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
    case = case.provided().node();
    let key = "astray/default-a";
    let astray = |case: &Case| case.seen(passing).contains(key);
    let states = |case: &mut Case, tainted: bool, reason: &str| {
        case.nodes.values_mut().for_each(|node| node.disrupted = tainted);
        reason.clone_into(&mut case.claim.disruption_reason);
        astray(case)
    };
    assert!(!states(&mut case, true, ""), "it is not in service yet");
    case.claim.register_time = Some(Timestamp::default());
    assert!(!states(&mut case, false, "") && !states(&mut case, true, "Empty"));
    assert!(states(&mut case, false, "Empty") && states(&mut case, true, ""));
    let case = case.lasting(key, passing::ASTRAY_PATIENCE_MS);
    assert_eq!(case.only(), None, "the order may still be on its way");
    let case = case.lasting("other", 0).lasting(key, passing::ASTRAY_PATIENCE_MS + 1);
    assert_eq!(case.only().as_deref(), Some("cancel true"));
}

#[test]
fn a_node_that_joins_and_is_never_ready_is_given_up() {
    let mut case = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
    case = case.provided().node().unready();
    case.claim.register_time = Some(Timestamp { seconds: NOW_MS / 1000, nanos: 0 });
    let case = case.lasting("unready/default-a", REGISTRATION_TTL_MS);
    assert_eq!(case.only(), None);
    let case = case.lasting("other", 0).lasting("unready/default-a", REGISTRATION_TTL_MS + 1);
    assert_eq!(case.only().as_deref(), Some("delete InitializationTimeout"));
    assert_eq!(case.dues()[0].evidence, Evidence::Absence("default-a".to_owned()));
}

#[test]
fn the_age_of_a_claim_by_another_clock_gives_up_no_registration() {
    let mut case = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
    case = case.provided();
    case.claim.create_time = Some(Timestamp { seconds: 0, nanos: 0 });
    let case = case.lasting("registering/default-a", REGISTRATION_TTL_MS / SEEN_PART);
    assert_eq!(case.only(), None, "the clock may be ten minutes ahead");
    let seen_ms = REGISTRATION_TTL_MS / SEEN_PART;
    let case = case.lasting("other", 0).lasting("registering/default-a", seen_ms + 1);
    assert_eq!(case.only().as_deref(), Some("delete RegistrationTimeout"));
}

#[test]
fn what_lasts_over_sessions_is_given_up_by_its_age_and_what_this_one_has_seen() {
    let long_ago = Some(Timestamp { seconds: 0, nanos: 0 });
    let mut launching = Case::new();
    launching.claim.launch_id = String::new();
    launching.claim.create_time = long_ago;
    let mut unready = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
    unready = unready.provided().node().unready();
    unready.claim.register_time = long_ago;
    for (case, state, ttl_ms, step) in [
        (launching, "launching/default-a", LAUNCH_TTL_MS, "delete NotLaunched"),
        (unready, "unready/default-a", REGISTRATION_TTL_MS, "delete InitializationTimeout"),
    ] {
        let seen_ms = ttl_ms / SEEN_PART;
        let case = case.lasting(state, seen_ms);
        assert_eq!(case.only(), None, "the clock may be ten minutes ahead");
        let case = case.lasting("other", 0).lasting(state, seen_ms + 1);
        assert_eq!(case.only().as_deref(), Some(step));
    }
}

#[test]
fn an_instance_that_stays_unknown_is_told_of() {
    let mut case = Case::new().provided();
    case.claim.register_time = Some(Timestamp::default());
    let claims = BTreeMap::from([(case.claim.name.clone(), case.claim.clone())]);
    let late = |case: &Case| unknown(&claims, &case.sightings, SESSION_MS).len();
    let case = case.lasting("unknown/default-a", passing::UNKNOWN_PATIENCE_MS);
    assert_eq!(late(&case), 0);
    let case =
        case.lasting("other", 0).lasting("unknown/default-a", passing::UNKNOWN_PATIENCE_MS + 1);
    assert_eq!(late(&case), 1);
}
