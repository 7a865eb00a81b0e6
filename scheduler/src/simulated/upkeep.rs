//! Nodes that must be replaced, and what stands in the way of that.
//!
//! Invariant: pods have somewhere to go before their node does, unless nothing on it can be relied
//! on.

use super::scenes::{deletion, disruption, marked};
use super::*;

/// What the cluster shows of the node that replaces the first.
fn replacement(name: &str, initialised: bool) -> Vec<Kind> {
    let (node, mut claim) = in_service(1);
    claim.name = name.to_owned();
    claim.initialize_time = claim.initialize_time.filter(|_| initialised);
    vec![Kind::Node(node), Kind::NodeClaim(claim)]
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ails_is_replaced_once_that_has_been_seen_for_a_while() {
    let nodes = (0..6).flat_map(|number| {
        let (mut node, claim) = in_service(number);
        if number == 0 {
            node.ailment = "NetworkingReady is False".to_owned();
            node.repair_time = claim.initialize_time;
        }
        [Kind::Node(node), Kind::NodeClaim(claim)]
    });
    let mut scene = Scene::new(&[], [pool(false)].into_iter().chain(nodes).collect()).await;
    (0..6).for_each(|number| scene.actuator.tell(Change::Instance(instance(number))));
    assert_eq!(scene.next(Duration::from_secs(290), deletion).await, None, "it may pass");
    let delete = scene.next(Duration::from_secs(30), deletion).await.unwrap();
    assert_eq!((delete.claim.as_str(), delete.reason.as_str()), ("claim-0", "Unhealthy"));
    assert!(delete.at_once && delete.on_absence, "{delete:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_pool_is_put_back_as_it_was_stays() {
    let mut objects = marked(0, "Drifted");
    let Kind::NodePool(mut pool) = pool(false) else { panic!("a pool") };
    let now = std::mem::replace(&mut pool.drift_hash, "1-before".to_owned());
    let before = Kind::NodePool(pool.clone());
    pool.drift_hash = now;
    objects.extend([Kind::NodePool(pool), bound("n-0")]);
    let mut scene = Scene::new(&[], objects).await;
    scene.actuator.tell(Change::Instance(instance(0)));
    let noted = |action: &Action| {
        let Action::NoteDrift(note) = action else { return None };
        note.drifted.clone()
    };
    let said = scene.next(PATIENCE, noted).await.unwrap();
    assert_eq!((said.status, said.reason.as_str()), (Some(true), "NodePoolDrifted"));
    assert_eq!(scene.next(Duration::from_secs(20), disruption).await, None, "it goes");
    scene.delta(vec![before]);
    let disrupt = scene.next(PATIENCE, disruption).await.unwrap();
    assert!(disrupt.cancel, "{disrupt:?}");
}

#[tokio::test(start_paused = true)]
async fn an_expired_node_goes_when_its_replacement_is_there_with_the_pods_that_were_looked_at() {
    let (node, mut claim) = in_service(0);
    claim.expire_after = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let objects = vec![pool(false), Kind::Node(node), Kind::NodeClaim(claim.clone()), bound("n-0")];
    let mut scene = Scene::new(&[], objects).await;
    scene.actuator.tell(Change::Instance(instance(0)));
    let disrupt = scene.next(PATIENCE, disruption).await.unwrap();
    assert_eq!((disrupt.claim.as_str(), disrupt.reason.as_str()), ("claim-0", "Expired"));
    assert_eq!(disrupt.assumes.unwrap().pods, ["pod-n-0"]);
    let [name] = disrupt.replaced_by.as_slice() else { panic!("{:?}", disrupt.replaced_by) };
    let mut marks = marked(0, "Expired");
    let Some(Kind::NodeClaim(marked)) = marks.get_mut(1) else { panic!("a claim") };
    marked.replaced_by = vec![name.clone()];
    marked.expire_after = claim.expire_after;
    scene.actuator.tell(Change::Instance(instance(1)));
    scene.delta(marks.into_iter().chain(replacement(name, false)).collect());
    assert_eq!(scene.next(Duration::from_secs(20), deletion).await, None, "it is not ready");
    scene.delta(replacement(name, true));
    let delete = scene.next(Duration::from_secs(10), deletion).await.unwrap();
    assert_eq!((delete.claim.as_str(), delete.reason.as_str()), ("claim-0", "Expired"));
    assert_eq!(delete.assumes.unwrap().pods, ["pod-n-0"]);
}

#[tokio::test(start_paused = true)]
async fn no_more_pods_move_within_an_hour_than_their_pool_lets_move() {
    let moved = async |evictions_per_hour, minutes: &[u64]| {
        let Kind::NodePool(mut pool) = pool(true) else { panic!("a pool") };
        let rules = pool.disruption.take().unwrap();
        pool.disruption = Some(v1::Disruption { evictions_per_hour, ..rules });
        let nodes = (0..4).flat_map(|number| {
            let (node, claim) = in_service(number);
            [bound(&node.name), Kind::Node(node), Kind::NodeClaim(claim)]
        });
        let mut scene =
            Scene::new(&[], [Kind::NodePool(pool)].into_iter().chain(nodes).collect()).await;
        (0..4).for_each(|number| scene.actuator.tell(Change::Instance(instance(number))));
        let mut counts = Vec::new();
        for minutes in minutes {
            let before = scene.seen.len();
            scene.next(Duration::from_secs(60 * minutes), |_| None::<()>).await;
            let begun = scene.seen[before..].iter().filter_map(disruption);
            counts.push(begun.filter(|disrupt| disrupt.reason == "Underutilized").count());
        }
        counts
    };
    assert!(moved(None, &[50]).await[0] > 2, "nothing bounds them");
    assert_eq!(moved(Some(0), &[50]).await, [0]);
    assert_eq!(moved(Some(1), &[50, 9, 3]).await, [1, 0, 1], "one an hour");
}

#[tokio::test(start_paused = true)]
async fn that_a_node_expires_is_said_once_and_ahead_of_time() {
    const AGE: Duration = Duration::from_secs(1_000);
    let (node, mut claim) = in_service(0);
    claim.create_time = Some(prost_types::Timestamp { seconds: 10_000, nanos: 0 });
    claim.expire_after = Some(AGE.try_into().unwrap());
    let objects = vec![pool(false), Kind::Node(node), Kind::NodeClaim(claim), bound("n-0")];
    let mut scene = Scene::new(&[], objects).await;
    scene.actuator.tell(Change::Instance(instance(0)));
    let expiring = |action: &Action| {
        let Action::PublishEvent(event) = action else { return None };
        (event.reason == "Expiring").then(|| event.clone())
    };
    assert_eq!(scene.next(AGE * 8 / 10, expiring).await, None, "it is far off");
    let event = scene.next(AGE / 5, expiring).await.unwrap();
    assert_eq!(event.about.unwrap().key, "claim-0");
    assert!(event.message.contains("at 1970-01-01T03:03:20Z"), "{}", event.message);
    assert_eq!(scene.next(AGE / 10, expiring).await, None, "it has been said");
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_does_not_come_up_costs_twelve_minutes_and_no_node() {
    let (node, mut claim) = in_service(0);
    claim.expire_after = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let objects = vec![pool(false), Kind::Node(node), Kind::NodeClaim(claim), bound("n-0")];
    let mut scene = Scene::new(&[], objects).await;
    scene.actuator.tell(Change::Instance(instance(0)));
    let disrupt = scene.next(PATIENCE, disruption).await.unwrap();
    let name = disrupt.replaced_by[0].clone();
    let mut marks = marked(0, "Expired");
    let Some(Kind::NodeClaim(marked)) = marks.get_mut(1) else { panic!("a claim") };
    marked.replaced_by = vec![name.clone()];
    scene.actuator.tell(Change::Instance(instance(1)));
    scene.delta(marks.into_iter().chain(replacement(&name, false)).collect());
    assert_eq!(scene.next(Duration::from_secs(700), disruption).await, None);
    let cancel = scene.next(Duration::from_secs(60), disruption).await.unwrap();
    assert!(cancel.cancel && cancel.claim == "claim-0", "{cancel:?}");
    assert!(!scene.seen.iter().any(|action| deletion(action).is_some()));
}

#[tokio::test(start_paused = true)]
async fn no_node_is_bought_for_pods_whose_node_may_as_well_stay() {
    let bought = async |reason: &str| {
        let objects = [pool(false), bound("n-0")].into_iter().chain(marked(0, reason)).collect();
        let mut scene = Scene::new(&[], objects).await;
        scene.actuator.tell(Change::Instance(instance(0)));
        scene.next(Duration::from_secs(20), |_| None::<()>).await;
        let is_bought = scene.seen.iter().any(|action| matches!(action, Action::CreateClaim(_)));
        let stays = scene.seen.iter().filter_map(disruption).any(|disrupt| disrupt.cancel);
        (is_bought, stays)
    };
    assert_eq!(bought("Underutilized").await, (false, true), "what it was to save is not there");
    assert_eq!(bought("Drifted").await, (true, false));
}
