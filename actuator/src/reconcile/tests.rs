//! Reconciliation by table.

use std::sync::Arc;

use longshore_proto::capacity::v1::InstancePhase;

use super::*;

const NOW_MS: i64 = 10_000_000;

fn record(phase: Phase) -> LaunchRecord {
    let launch = Launch { launch_id: "l".to_owned(), ..Launch::default() };
    let mut record = LaunchRecord::new(launch, "c", NOW_MS + 1, NOW_MS - 1);
    record.set_phase(phase);
    if !matches!(phase, Phase::Pending | Phase::Failed) {
        record.instance_id = "i-1".to_owned();
    }
    record
}

fn instance(launch_id: &str, phase: InstancePhase) -> Instance {
    Instance {
        phase,
        instance_type: "t4g.small".to_owned(),
        zone: "a".to_owned(),
        capacity_type: CapacityType::Spot,
        tags: [
            (TAG_LAUNCH.to_owned(), launch_id.to_owned()),
            (TAG_CLUSTER.to_owned(), "c".to_owned()),
            (TAG_CLAIM.to_owned(), "claim-1".to_owned()),
        ]
        .into(),
        ..Instance::unseen("i-1")
    }
}

fn run(records: Vec<LaunchRecord>, instances: Vec<Instance>, busy: &[&str]) -> Vec<Action> {
    let mut book = Book::default();
    let launches = records.into_iter().map(|r| (r.launch_id().to_owned(), Arc::new(r)));
    book.launches.extend(launches);
    let mut inventory = Inventory::default();
    let listed = instances.iter().map(|instance| instance.instance_id.clone()).collect();
    for instance in instances {
        inventory.observe(&book, instance);
    }
    inventory.settle(&book, &listed);
    settled(&book, &inventory, busy)
}

fn settled(book: &Book, inventory: &Inventory, busy: &[&str]) -> Vec<Action> {
    let busy = busy.iter().map(|id| (*id).to_owned()).collect();
    let waiting = ["i-slow".to_owned(), "slow".to_owned()].into();
    reconcile(book, inventory, &Situation { now_ms: NOW_MS, busy: &busy, waiting: &waiting })
}

fn launch() -> Vec<Action> {
    vec![Action::Launch("l".to_owned())]
}

fn terminate() -> Vec<Action> {
    let (instance_id, launch_id) = ("i-1".to_owned(), "l".to_owned());
    vec![Action::Terminate { instance_id, launch_id }]
}

fn adopt() -> Vec<Action> {
    let step = Move::Launched { instance_id: "i-1".to_owned(), ec2_request_id: String::new() };
    vec![Action::Record("l".to_owned(), step)]
}

fn gone_move() -> Vec<Action> {
    vec![Action::Record("l".to_owned(), Move::Gone { vanished: false })]
}

fn found_move() -> Vec<Action> {
    vec![Action::Record("l".to_owned(), Move::Found { instance_id: "i-1".to_owned() })]
}

#[test]
fn each_phase_meets_each_state_of_the_instance() {
    let running = || vec![instance("l", InstancePhase::Running)];
    let ended = || vec![instance("l", InstancePhase::Terminated)];
    let ending = || vec![instance("l", InstancePhase::ShuttingDown)];
    let table: Vec<(Phase, Vec<Instance>, Vec<Action>)> = vec![
        (Phase::Pending, vec![], launch()),
        (Phase::Pending, running(), adopt()),
        (Phase::Pending, ended(), adopt()),
        (Phase::Launched, running(), vec![]),
        (Phase::Launched, ended(), gone_move()),
        (Phase::Launched, vec![], vec![]),
        (Phase::Terminating, running(), terminate()),
        (Phase::Terminating, ending(), vec![]),
        (Phase::Terminating, ended(), gone_move()),
        (Phase::Terminating, vec![], terminate()),
        (Phase::Terminated, running(), found_move()),
        (Phase::Terminated, ended(), vec![]),
        (Phase::Failed, running(), found_move()),
        (Phase::Failed, ended(), vec![]),
        (Phase::Failed, vec![], vec![]),
    ];
    for (phase, instances, expected) in table {
        let shown = format!("{phase:?} {:?}", instances.first().map(|i| i.phase));
        assert_eq!(run(vec![record(phase)], instances, &[]), expected, "{shown}");
    }
}

#[test]
fn what_is_under_way_is_left_alone() {
    assert!(run(vec![record(Phase::Pending)], vec![], &["l"]).is_empty());
    let running = vec![instance("l", InstancePhase::Running)];
    assert!(run(vec![record(Phase::Terminating)], running.clone(), &["i-1"]).is_empty());
    assert!(run(vec![], running, &["l"]).is_empty());
}

#[test]
fn nothing_is_done_before_the_first_listing_of_the_term() {
    let mut book = Book::default();
    book.launches.insert("l".to_owned(), Arc::new(record(Phase::Pending)));
    assert!(settled(&book, &Inventory::default(), &[]).is_empty());
}

#[test]
fn an_expired_launch_fails_unless_it_was_asked_for() {
    let mut expired = record(Phase::Pending);
    expired.expire_ms = NOW_MS - SKEW_MAX_MS + 1;
    assert_eq!(run(vec![expired.clone()], vec![], &[]), launch(), "a clock may be off");
    expired.expire_ms -= 1;
    let actions = run(vec![expired.clone()], vec![], &[]);
    let [Action::Record(_, Move::Fail(failure))] = actions.as_slice() else { panic!() };
    assert_eq!((failure.reason.as_str(), failure.retryable), ("PLAN_EXPIRED", true));
    let asked = expired.after(&Move::Ask(CapacityType::Spot, Box::default()), NOW_MS).unwrap();
    assert_eq!(run(vec![asked], vec![], &[]), launch());
}

#[test]
fn an_unknown_instance_is_imported_from_its_tags() {
    let actions = run(vec![], vec![instance("lost", InstancePhase::Running)], &[]);
    let [Action::Import(record)] = actions.as_slice() else { panic!() };
    assert_eq!(
        (record.launch_id(), record.claim(), record.cluster_id.as_str(), record.phase()),
        ("lost", "claim-1", "c", Phase::Launched)
    );
    assert!(run(vec![], vec![instance("lost", InstancePhase::Terminated)], &[]).is_empty());
}

#[test]
fn an_instance_that_vanished_is_gone_without_anybody_having_seen_it_end() {
    let (mut book, mut inventory) = (Book::default(), Inventory::default());
    let mut draft = crate::ledger::Draft::default();
    draft.put(record(Phase::Launched));
    book.absorb(draft);
    inventory.settle(&book, &BTreeSet::new());
    let now = tokio::time::Instant::now();
    inventory.denied("i-1", "c", now);
    assert!(settled(&book, &inventory, &[]).is_empty());
    inventory.denied("i-1", "c", now + crate::inventory::VANISH_AFTER);
    let vanished = vec![Action::Record("l".to_owned(), Move::Gone { vanished: true })];
    assert_eq!(settled(&book, &inventory, &[]), vanished);
}

#[test]
fn an_instance_beside_the_one_a_launch_led_to_is_ended() {
    let second =
        Instance { instance_id: "i-2".to_owned(), ..instance("l", InstancePhase::Running) };
    let both = vec![instance("l", InstancePhase::Running), second.clone()];
    let (instance_id, launch_id) = ("i-2".to_owned(), "l".to_owned());
    let surplus = vec![Action::Terminate { instance_id, launch_id }];
    assert_eq!(run(vec![record(Phase::Launched)], both.clone(), &[]), surplus);
    assert_eq!(run(vec![record(Phase::Terminated)], vec![second], &[]), surplus);
    assert_eq!(run(vec![record(Phase::Pending)], both, &[]), adopt(), "one of them first");
}

#[test]
fn what_failed_lately_is_not_asked_of_ec2_but_recorded_all_the_same() {
    let slow = |phase| {
        let mut slow = record(phase);
        slow.launch = Some(Launch { launch_id: "slow".to_owned(), ..Launch::default() });
        slow.instance_id = "i-slow".to_owned();
        slow
    };
    assert!(run(vec![slow(Phase::Pending)], vec![], &[]).is_empty());
    assert!(run(vec![slow(Phase::Terminating)], vec![], &[]).is_empty());
    let ended = Instance {
        instance_id: "i-slow".to_owned(),
        ..instance("slow", InstancePhase::Terminated)
    };
    assert_eq!(run(vec![slow(Phase::Terminating)], vec![ended], &[]).len(), 1);
}

#[test]
fn an_instance_whose_record_cannot_be_read_is_left_alone() {
    let (mut book, mut inventory) = (Book::default(), Inventory::default());
    book.unreadable.insert(Key::Launch("l".to_owned()), "garbage".to_owned());
    inventory.observe(&book, instance("l", InstancePhase::Running));
    inventory.settle(&book, &BTreeSet::new());
    assert!(settled(&book, &inventory, &[]).is_empty());
}

#[test]
fn finished_launches_are_kept_for_a_while() {
    let mut finished = record(Phase::Failed);
    finished.changed_ms = NOW_MS - KEEP_FINISHED_MS + 1;
    assert!(run(vec![finished.clone()], vec![], &[]).is_empty());
    finished.changed_ms -= 1;
    assert_eq!(run(vec![finished], vec![], &[]), [Action::Forget("l".to_owned())]);
}
