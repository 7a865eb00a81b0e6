//! Launches that are asked for in one call.

mod journal;

use longshore_proto::types::v1::{CapacityType, Launch};
use longshore_runtime::platform::Platform;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::cloud::{Instance, TAG_BATCH, TAG_CLAIM, TAG_CLUSTER, TAG_LAUNCH, TAG_POOL};
use crate::ledger::{Book, Draft, JournaledStore, LAUNCHES_PER_CALL_MAX, MemoryStore, Store};
use crate::reconcile::{Action, Situation, reconcile};
use crate::testing::paper::Paper;
use crate::testing::{candidate, leader_on, leader_with};

struct Term {
    cloud: Arc<Scripted>,
    store: MemoryStore,
    leader: Arc<Leader>,
}

impl Term {
    async fn with(answers: impl IntoIterator<Item = Answer>, launches: usize) -> Self {
        let cloud = Arc::new(Scripted::default());
        lock(&cloud.answers).extend(answers);
        let term = Self::begin(cloud, MemoryStore::default(), 1).await;
        term.record((0..launches).map(|n| launch_of(n, "m5.large"))).await;
        term
    }

    /// A process with an empty memory, on a journal.
    async fn on_paper(cloud: Arc<Scripted>, paper: &Paper) -> Self {
        let owner = Supervisor::new(CancellationToken::new(), Platform::system());
        let store = MemoryStore::default();
        store.crown(1);
        let journaled = JournaledStore::new(store.clone(), Arc::new(paper.clone()));
        let term = (Store::Journaled(journaled), 1);
        let leader = leader_with(Arc::clone(&cloud), term, &owner).await;
        Self { cloud, store, leader }
    }

    async fn begin(cloud: Arc<Scripted>, store: MemoryStore, revision: i64) -> Self {
        let owner = Supervisor::new(CancellationToken::new(), Platform::system());
        let leader = leader_on(Arc::clone(&cloud), (store.clone(), revision), &owner).await;
        Self { cloud, store, leader }
    }

    /// The next leader, on the same store or on an empty one.
    async fn next(&self, store: MemoryStore) -> Self {
        Self::begin(Arc::clone(&self.cloud), store, 2).await
    }

    async fn record(&self, launches: impl Iterator<Item = Launch>) {
        let records: Vec<_> =
            launches.map(|launch| LaunchRecord::new(launch, "c-1", i64::MAX, 0)).collect();
        let put = move |_: &Book, draft: &mut Draft| records.into_iter().for_each(|r| draft.put(r));
        self.leader.ledger.edit(None, put).await.unwrap();
    }

    /// What reconciliation queues is gathered and worked on, until nothing more is queued. The
    /// groups.
    async fn go(&self) -> Vec<usize> {
        let queue = Fair::new();
        let ids: Vec<_> = self.actions().into_iter().filter_map(launched_id).collect();
        let mut queued: std::collections::BTreeSet<_> = ids.iter().cloned().collect();
        assert!(queue.push_all("c-1", ids).is_empty());
        let mut groups = Vec::new();
        while !queued.is_empty() {
            let group = group::gather(&self.leader, &queue, queue.pop().await);
            launch(&self.leader, &group).await;
            queued.retain(|id| !group.contains(id));
            self.leader.busy().clear();
            groups.push(group.len());
        }
        groups
    }

    /// As if the first listing of the term was over, and nothing had to rest.
    fn actions(&self) -> Vec<Action> {
        let book = self.leader.ledger.book();
        let mut inventory = self.leader.inventory.borrow().clone();
        inventory.settle(&book, &std::collections::BTreeSet::new());
        let none = std::collections::BTreeSet::new();
        reconcile(&book, &inventory, &Situation { now_ms: 1, busy: &none, waiting: &none })
    }

    fn orders(&self) -> Vec<Order> {
        lock(&self.cloud.orders).clone()
    }

    fn instance_of(&self, n: usize) -> String {
        self.leader.record(&id(n)).unwrap().instance_id.clone()
    }

    fn launched(&self) -> usize {
        self.leader.ledger.book().in_phase(Phase::Launched).count()
    }
}

fn launched_id(action: Action) -> Option<String> {
    if let Action::Launch(id) = action { Some(id) } else { None }
}

fn id(n: usize) -> String {
    format!("l-{n:03}")
}

fn launch_of(n: usize, instance_type: &str) -> Launch {
    let candidates = vec![
        candidate(instance_type, "a", CapacityType::OnDemand),
        candidate(instance_type, "b", CapacityType::OnDemand),
    ];
    Launch {
        launch_id: id(n),
        claim: format!("claim-{n:03}"),
        ..crate::testing::launch(candidates)
    }
}

fn some(ids: impl IntoIterator<Item = usize>) -> Answer {
    let one = |n| FleetInstance {
        instance_id: format!("i-{n:03}"),
        instance_type: "m5.large".to_owned(),
        zone: "a".to_owned(),
    };
    Ok(FleetOutcome { bought: ids.into_iter().map(one).collect(), ..FleetOutcome::default() })
}

/// An instance as EC2 shows it before its launch's tags are written.
fn untagged(n: usize, order: &Order) -> Instance {
    Instance { tags: order.tags.clone(), ..instance(&format!("i-{n:03}"), "") }
}

#[tokio::test]
async fn equal_launches_are_one_call() {
    let term = Term::with([some((0..LAUNCHES_PER_CALL_MAX).rev())], LAUNCHES_PER_CALL_MAX).await;
    assert_eq!(term.go().await, [LAUNCHES_PER_CALL_MAX]);
    let orders = term.orders();
    assert_eq!((orders.len(), orders[0].count), (1, 200));
    let tags = &orders[0].tags;
    assert_eq!(tags[TAG_BATCH], orders[0].client_token);
    assert_eq!((&*tags[TAG_CLUSTER], &*tags[TAG_POOL]), ("c-1", "default"));
    assert!(!tags.contains_key(TAG_LAUNCH) && !tags.contains_key(TAG_CLAIM));
    assert_eq!((term.instance_of(0), term.instance_of(199)), ("i-000".into(), "i-199".into()));
    let shown = term.leader.inventory.borrow();
    let first = shown.get("i-000").unwrap();
    assert_eq!((first.tag(TAG_LAUNCH), first.tag(TAG_CLAIM)), ("l-000", "claim-000"));
    assert_eq!(term.actions(), [], "nothing is tagged before EC2 shows it");
}

#[tokio::test]
async fn more_than_fit_one_call_are_several() {
    let more = LAUNCHES_PER_CALL_MAX + 3;
    let term = Term::with([some(0..LAUNCHES_PER_CALL_MAX), some(200..more)], more).await;
    assert_eq!(term.go().await, [LAUNCHES_PER_CALL_MAX, 3]);
    assert_eq!(term.launched(), more);
    let counts: Vec<_> = term.orders().iter().map(|order| order.count).collect();
    assert_eq!(counts, [200, 3]);
}

#[tokio::test]
async fn what_accepts_other_offerings_is_asked_for_by_itself() {
    let term = Term::with([some([0, 1]), some([5]), some([7])], 2).await;
    term.record([launch_of(5, "m5.xlarge")].into_iter()).await;
    assert_eq!(term.go().await, [2, 1]);
    let orders = term.orders();
    assert_eq!((orders[0].count, orders[1].count), (2, 1));
    assert_eq!(orders[1].client_token, "l-005-1", "one alone looks as it always did");
    assert_eq!(orders[1].tags[TAG_LAUNCH], "l-005");
    assert!(!orders[1].tags.contains_key(TAG_BATCH));
    assert!(term.leader.ledger.book().batches.values().all(|batch| batch.launch_ids.len() == 2));
}

#[tokio::test]
async fn what_a_call_did_not_get_is_asked_for_again_without_what_was_not_to_be_had() {
    let Ok(mut partial) = some([0, 1]) else { panic!() };
    let mut shortage = short(Class::Capacity, "m5.large").unwrap().shortages;
    "a".clone_into(&mut shortage[0].zone);
    partial.shortages = shortage;
    let term = Term::with([Ok(partial), some([2])], 3).await;
    term.go().await;
    assert_eq!(term.launched(), 3);
    let zones = |order: &Order| -> Vec<String> {
        order.offers.iter().flat_map(|o| &o.offers).map(|offer| offer.zone.clone()).collect()
    };
    let orders = term.orders();
    assert_eq!(
        (zones(&orders[0]), zones(&orders[1])),
        (vec!["a".into(), "b".into()], vec!["b".into()])
    );
    assert_eq!((orders[1].count, &*orders[1].client_token), (1, "l-002-2"));
}

#[tokio::test]
async fn a_definite_refusal_is_of_all_and_nothing_is_left() {
    let term = Term::with([Err(error(Class::Unauthorized))], 3).await;
    term.go().await;
    assert_eq!(
        (term.orders().len(), term.leader.ledger.book().in_phase(Phase::Failed).count()),
        (1, 3)
    );
    let term = Term::with([short(Class::Capacity, "m5.large")], 3).await;
    term.go().await;
    assert_eq!(term.leader.ledger.book().in_phase(Phase::Failed).count(), 3);
    assert_eq!(term.orders().len(), 1);
}

#[tokio::test]
async fn a_lost_answer_to_a_call_for_several_is_followed_by_the_same_call() {
    let term = Term::with([lost(), some(0..3)], 3).await;
    assert_eq!(term.go().await, [3]);
    assert!(term.leader.ledger.book().launches.values().all(|record| record.outcome_unknown()));
    assert_eq!(term.actions(), [Action::Launch(id(0))], "one stands for all");
    assert_eq!(term.go().await, [3]);
    let orders = term.orders();
    assert_eq!((orders.len(), &orders[0]), (2, &orders[1]));
    assert_eq!(term.launched(), 3);
}

#[tokio::test]
async fn a_leader_after_one_that_was_killed_at_the_call_resumes_it_for_all() {
    let before = Term::with([lost()], 3).await;
    before.go().await;
    let term = before.next(before.store.clone()).await;
    // The class is resolved anew, and otherwise: the call stays what it was.
    term.leader.classes.send_modify(|classes| {
        for class in classes.values_mut() {
            Arc::make_mut(class).subnets.reverse();
            Arc::make_mut(class).images.clear();
        }
    });
    lock(&term.cloud.answers).push_front(some(0..3));
    assert_eq!(term.go().await, [3]);
    let orders = term.orders();
    assert_eq!((orders.len(), &orders[0]), (2, &orders[1]));
    assert_eq!(term.launched(), 3);
}

#[tokio::test]
async fn a_listing_that_shows_only_some_decides_nothing() {
    let term = Term::with([lost(), some(0..3)], 3).await;
    term.go().await;
    let order = term.orders().remove(0);
    lock(&term.cloud.shown).push(untagged(2, &order));
    term.go().await;
    assert_eq!([0, 1, 2].map(|n| term.instance_of(n)), ["i-000", "i-001", "i-002"]);
    assert_eq!(term.orders()[1], order);
}

#[tokio::test]
async fn what_a_lost_call_launched_is_found_whole_and_no_other_call_is_made() {
    let term = Term::with([lost()], 2).await;
    term.go().await;
    let order = term.orders().remove(0);
    lock(&term.cloud.shown).extend([untagged(8, &order), untagged(7, &order)]);
    term.go().await;
    assert_eq!((term.instance_of(0), term.instance_of(1)), ("i-007".into(), "i-008".into()));
    assert_eq!(term.orders().len(), 1);
}

#[tokio::test]
async fn once_all_must_have_shown_those_that_did_are_all_there_is() {
    let term = Term::with([lost(), Err(error(Class::Unauthorized))], 2).await;
    term.go().await;
    let order = term.orders().remove(0);
    lock(&term.cloud.shown).push(untagged(1, &order));
    term.go().await;
    assert_eq!(term.launched(), 0, "the other may show yet");
    for n in 0..2 {
        term.leader.paces().of(&id(n)).asked = before(VISIBLE_WITHIN);
    }
    term.go().await;
    assert_eq!((term.launched(), term.instance_of(0)), (1, "i-001".into()));
    assert_eq!(term.leader.record(&id(1)).unwrap().phase(), Phase::Failed);
}

#[tokio::test]
async fn an_instance_that_a_launch_has_already_is_not_given_away_when_its_call_is_resumed() {
    let term = Term::with([lost(), some(0..3)], 3).await;
    term.go().await;
    // Its tags say whose it is: the record was lost that they were written after.
    let step = Move::Launched { instance_id: "i-000".to_owned(), ec2_request_id: String::new() };
    term.leader.ledger.record(vec![(id(1), step)], 1).await.unwrap();
    term.go().await;
    assert_eq!([0, 1, 2].map(|n| term.instance_of(n)), ["i-001", "i-000", "i-002"]);
}

#[tokio::test]
async fn one_that_is_called_off_keeps_its_call_from_nothing() {
    let term = Term::with([lost(), some(0..2)], 2).await;
    term.go().await;
    term.leader.ledger.record(vec![(id(0), Move::Cancel)], 1).await.unwrap();
    term.go().await;
    assert_eq!((term.instance_of(1), term.instance_of(0)), ("i-000".into(), "i-001".into()));
    assert_eq!(term.leader.record(&id(0)).unwrap().phase(), Phase::Terminating);
}

#[tokio::test]
async fn a_ledger_that_is_lost_gets_the_same_answer_for_the_same_launches() {
    let before = Term::with([some(0..2)], 2).await;
    before.go().await;
    let order = before.orders().remove(0);
    let term = before.next(MemoryStore::default()).await;
    let listed = [untagged(0, &order), untagged(1, &order)];
    crate::work::instances::take_found(&term.leader, &listed);
    let imports: Vec<_> = term.actions();
    for action in imports {
        let Action::Import(record) = action else { panic!("{action:?}") };
        assert_eq!((record.adopted, record.claim()), (false, ""));
        assert_eq!(record.launch_id(), format!("unclaimed-{}", record.instance_id));
        term.leader.ledger.edit(None, |_: &Book, d: &mut Draft| d.put(*record)).await.unwrap();
    }
    assert_eq!(term.actions(), [], "nothing is tagged with a made-up id");
    term.record((0..2).map(|n| launch_of(n, "m5.large"))).await;
    term.go().await;
    assert_eq!(term.orders()[1], order, "the same call");
    assert_eq!((term.instance_of(0), term.instance_of(1)), ("i-000".into(), "i-001".into()));
    assert_eq!(term.leader.ledger.book().launches.len(), 2, "the made-up ones are gone");
}

#[tokio::test]
async fn what_may_have_been_asked_for_alone_is_asked_for_alone_again() {
    let term = Term::with([some([0]), some([1]), some(2..4)], 0).await;
    let record = |n: usize| {
        let launch = launch_of(n, "m5.large");
        LaunchRecord { alone: n < 2, ..LaunchRecord::new(launch, "c-1", i64::MAX, 0) }
    };
    let put = move |_: &Book, draft: &mut Draft| (0..4).for_each(|n| draft.put(record(n)));
    term.leader.ledger.edit(None, put).await.unwrap();
    assert_eq!(term.go().await, [1, 1, 2]);
    let tokens: Vec<_> = term.orders().into_iter().map(|order| order.client_token).collect();
    assert_eq!(tokens[..2], ["l-000-1", "l-001-1"]);
}
