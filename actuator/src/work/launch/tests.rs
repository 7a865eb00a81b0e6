//! Launches whose calls are answered in every way.

mod together;

use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::cloud::{Class, FleetInstance, FleetOutcome, Order, Shortage};
use crate::inventory::VISIBLE_WITHIN;
use crate::leader::lock;
use crate::pace::Answered;
use crate::testing::{Scripted, ask_for, error, instance, leader};

type Answer = Result<FleetOutcome, CloudError>;

struct World {
    cloud: Arc<Scripted>,
    leader: Arc<Leader>,
}

impl World {
    async fn with(answers: impl IntoIterator<Item = Answer>) -> Self {
        let cloud = Arc::new(Scripted::default());
        lock(&cloud.answers).extend(answers);
        let leader = leader(Arc::clone(&cloud)).await;
        ask_for(&leader).await;
        Self { cloud, leader }
    }

    async fn go(&self) -> LaunchRecord {
        launch(&self.leader, &["l-1".to_owned()]).await;
        (*self.leader.record("l-1").unwrap()).clone()
    }

    fn orders(&self) -> Vec<Order> {
        lock(&self.cloud.orders).clone()
    }

    fn tokens(&self) -> Vec<String> {
        self.orders().into_iter().map(|order| order.client_token).collect()
    }

    /// As if the instance profile of the class were made by us.
    fn with_role(&self) {
        self.leader.classes.send_modify(|classes| {
            for class in classes.values_mut() {
                "nodes".clone_into(&mut Arc::make_mut(class).class.role);
            }
        });
    }

    /// As if EC2 must have shown by now what was launched.
    fn must_show(&self) {
        self.leader.paces().of("l-1").asked = before(VISIBLE_WITHIN);
    }
}

fn before(span: Duration) -> Instant {
    Instant::now().checked_sub(span).unwrap()
}

fn lost() -> Answer {
    Err(error(Class::Unknown))
}

fn bought(instance_id: &str) -> Answer {
    let (instance_type, zone) = ("m5.large".to_owned(), "a".to_owned());
    let bought = FleetInstance { instance_id: instance_id.to_owned(), instance_type, zone };
    Ok(FleetOutcome { bought: vec![bought], ..FleetOutcome::default() })
}

fn short(class: Class, instance_type: &str) -> Answer {
    let shortage = Shortage {
        instance_type: instance_type.to_owned(),
        zone: String::new(),
        subnet_id: String::new(),
        error: error(class),
    };
    Ok(FleetOutcome { shortages: vec![shortage], ..FleetOutcome::default() })
}

#[tokio::test]
async fn a_call_whose_answer_is_lost_is_repeated_byte_for_byte() {
    let world = World::with([lost(), bought("i-1")]).await;
    assert!(world.go().await.outcome_unknown());
    world.leader.classes.send_modify(|classes| {
        for class in classes.values_mut() {
            Arc::make_mut(class).subnets.reverse();
            Arc::make_mut(class).images.clear();
        }
    });
    let record = world.go().await;
    assert_eq!((record.phase(), record.instance_id.as_str()), (Phase::Launched, "i-1"));
    let orders = world.orders();
    assert_eq!((orders.len(), &orders[0]), (2, &orders[1]));
}

#[tokio::test]
async fn a_bought_instance_is_shown_with_the_image_that_it_boots() {
    for (answers, known) in [(vec![bought("i-1")], true), (vec![lost(), bought("i-1")], false)] {
        let calls = answers.len();
        let world = World::with(answers).await;
        for _ in 0..calls {
            world.go().await;
        }
        let inventory = world.leader.inventory.borrow();
        let image = inventory.get("i-1").map(|found| found.image_id.clone());
        assert_eq!(image.is_some_and(|image| !image.is_empty()), known);
    }
}

#[tokio::test]
async fn what_a_lost_call_launched_is_found_before_anything_is_asked_again() {
    let world = World::with([lost()]).await;
    world.go().await;
    lock(&world.cloud.shown).push(instance("i-1", "l-1"));
    let record = world.go().await;
    assert_eq!((record.phase(), record.instance_id.as_str()), (Phase::Launched, "i-1"));
    assert_eq!(world.orders().len(), 1);
}

#[tokio::test]
async fn a_refused_repetition_fails_nothing_before_the_instance_must_show() {
    let world = World::with([lost(), Err(error(Class::Rejected))]).await;
    world.go().await;
    assert!(world.go().await.outcome_unknown(), "the first call may have got through");
    world.must_show();
    let record = world.go().await;
    assert_eq!((record.phase(), record.reason.as_str()), (Phase::Failed, "LAUNCH_REJECTED"));
}

#[tokio::test]
async fn a_refused_repetition_is_not_made_again_while_the_instance_may_yet_show() {
    let world = World::with([lost(), Err(error(Class::TemplateMissing)), bought("i-2")]).await;
    for _ in 0..5 {
        assert!(world.go().await.outcome_unknown());
    }
    assert_eq!(world.tokens(), ["l-1-1", "l-1-1"]);
    lock(&world.cloud.shown).push(instance("i-1", "l-1"));
    let record = world.go().await;
    assert_eq!((record.phase(), record.instance_id.as_str()), (Phase::Launched, "i-1"));
    assert_eq!(world.orders().len(), 2);
}

#[tokio::test]
async fn what_a_used_token_launched_is_found_though_no_answer_of_ours_was_lost() {
    let world = World::with([Err(error(Class::TokenReused)), bought("i-2")]).await;
    assert!(world.go().await.outcome_unknown());
    lock(&world.cloud.shown).push(instance("i-1", "l-1"));
    let record = world.go().await;
    assert_eq!((record.phase(), record.instance_id.as_str()), (Phase::Launched, "i-1"));
    assert_eq!(world.tokens(), ["l-1-1"]);
}

#[tokio::test]
async fn a_used_token_gets_a_successor_only_once_its_instance_must_show() {
    let world = World::with([lost(), Err(error(Class::TokenReused)), bought("i-2")]).await;
    for _ in 0..3 {
        assert!(world.go().await.outcome_unknown());
    }
    world.must_show();
    assert_eq!(world.go().await.phase(), Phase::Launched);
    assert_eq!(world.tokens(), ["l-1-1", "l-1-1", "l-1-2"]);
}

#[tokio::test]
async fn a_definite_answer_ends_its_token() {
    for class in [Class::Throttled, Class::Unknown] {
        let world = World::with([short(class, ""), bought("i-1")]).await;
        assert!(!world.go().await.outcome_unknown(), "{class:?}");
        assert_eq!(world.go().await.phase(), Phase::Launched);
        assert_eq!(world.tokens(), ["l-1-1", "l-1-2"]);
    }
}

#[tokio::test]
async fn a_profile_that_only_the_first_call_did_not_find_fails_nothing() {
    let world = World::with([lost(), short(Class::Profile, ""), bought("i-1")]).await;
    world.with_role();
    world.go().await;
    // The answer of the first call comes long after EC2 has learned of the profile.
    world.leader.paces().of("l-1").since = before(Duration::from_secs(120));
    assert_eq!(world.go().await.phase(), Phase::Pending);
    assert_eq!(world.go().await.phase(), Phase::Launched);
    assert_eq!(world.tokens(), ["l-1-1", "l-1-1", "l-1-2"]);
}

#[tokio::test]
async fn a_leader_that_knows_no_class_yet_fails_nothing_of_a_profile() {
    let world = World::with([lost(), short(Class::Profile, ""), bought("i-1")]).await;
    world.go().await;
    let resolved = world.leader.classes.send_replace(std::collections::BTreeMap::new());
    assert_eq!(world.go().await.phase(), Phase::Pending, "the class may be one with a role");
    world.leader.classes.send_replace(resolved);
    assert_eq!(world.go().await.phase(), Phase::Launched);
}

#[tokio::test]
async fn a_profile_that_was_new_when_ec2_answered_fails_nothing_later() {
    let world = World::with([lost(), bought("i-1")]).await;
    world.with_role();
    world.go().await;
    // The ledger could not take down what EC2 said early on.
    let said = Answered {
        client_token: "l-1-1".to_owned(),
        answer: short(Class::Profile, ""),
        repeated: false,
        at: before(Duration::from_secs(110)),
    };
    world.leader.paces().of("l-1").since = before(Duration::from_secs(120));
    world.leader.paces().of("l-1").answered = Some(Arc::new(said));
    assert_eq!(world.go().await.phase(), Phase::Pending);
    assert_eq!(world.go().await.phase(), Phase::Launched);
}

#[tokio::test]
async fn a_profile_of_ours_that_stays_unknown_is_called_what_it_is() {
    let world = World::with([short(Class::Profile, "")]).await;
    world.with_role();
    world.leader.paces().of("l-1").since = before(Duration::from_secs(120));
    let record = world.go().await;
    assert_eq!((record.phase(), record.retryable), (Phase::Failed, true));
    let says = "is made for role \"nodes\"; it is looked up and, if it is gone, made anew";
    assert!(record.message.contains(says), "{}", record.message);
}

#[tokio::test]
async fn a_template_that_stays_missing_fails_the_launch() {
    let world = World::with([Err(error(Class::TemplateMissing))]).await;
    for _ in 0..6 {
        world.go().await;
    }
    let record = world.go().await;
    assert_eq!(
        (record.phase(), record.reason.as_str()),
        (Phase::Failed, "LAUNCH_TEMPLATE_MISSING")
    );
    assert_eq!(world.orders().len(), 4);
}

#[tokio::test]
async fn a_type_that_is_refused_by_name_closes_and_its_class_does_not() {
    let world = World::with([short(Class::Unauthorized, "m5.large"), bought("i-1")]).await;
    assert_eq!(world.go().await.phase(), Phase::Launched);
    let types = |order: &Order| -> Vec<String> {
        let offers = order.offers.iter().flat_map(|offers| &offers.offers);
        offers.map(|offer| offer.instance_type.clone()).collect()
    };
    let orders = world.orders();
    assert_eq!(types(&orders[0]), ["m5.large", "m5.xlarge"]);
    assert_eq!(types(&orders[1]), ["m5.xlarge"]);
    let key = ("c-1".to_owned(), "EC2NodeClass/default".to_owned());
    assert_eq!(world.leader.fault_of(&key, 0), None);
}

#[tokio::test]
async fn a_launch_that_cannot_go_on_leaves_its_slot_and_ends_at_its_deadline() {
    let world = World::with([]).await;
    world.leader.classes.send_modify(std::collections::BTreeMap::clear);
    let began = Instant::now();
    assert_eq!(world.go().await.phase(), Phase::Pending);
    assert!(began.elapsed() < Duration::from_secs(1) && world.orders().is_empty());
    assert!(world.leader.paces().waiting().contains("l-1"));
    world.leader.paces().of("l-1").since = before(Duration::from_secs(300));
    let record = world.go().await;
    let failed = (record.phase(), record.reason.as_str(), record.retryable);
    assert_eq!(failed, (Phase::Failed, "LAUNCH_DEADLINE", true));
}

#[tokio::test]
async fn a_call_without_an_answer_is_not_made_again_once_its_launch_is_called_off() {
    let world = World::with([lost()]).await;
    world.go().await;
    let cancel = vec![("l-1".to_owned(), Move::Cancel)];
    world.leader.ledger.record(cancel, 1).await.unwrap();
    assert!(world.go().await.outcome_unknown());
    world.must_show();
    assert!(!world.go().await.outcome_unknown());
    assert_eq!(world.orders().len(), 1);
}
