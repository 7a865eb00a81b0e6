//! Capacity reservations of a node class: found, sold, filled, and left when they are full.

use longshore_lab::region::{CONTROLLER_KEY, RegionConfig, ReservationConfig};
use longshore_proto::capacity::v1::LaunchPhase;
use longshore_proto::types::v1::{Candidate, CapacityType, NodeClass, SelectorTerm};

use crate::shown::Shown;
use crate::world::{CLASS, REGION, World, class};

fn reservation(id: &str, zone: &str, total: u32, team: &str) -> ReservationConfig {
    ReservationConfig {
        id: id.to_owned(),
        instance_type: "m5.large".to_owned(),
        zone: format!("{REGION}{zone}"),
        total,
        tags: [("team".to_owned(), team.to_owned())].into(),
    }
}

/// A class that may use the reservations of team a: one of two instances. There is another team.
async fn world(more: Vec<SelectorTerm>) -> World {
    let mut config = RegionConfig::simple(REGION).unwrap();
    config.reservations = vec![reservation("cr-1", "a", 2, "a"), reservation("cr-2", "b", 5, "b")];
    let tags = [("team".to_owned(), "a".to_owned())].into();
    let terms = [vec![SelectorTerm { tags, ..SelectorTerm::default() }], more].concat();
    let class = NodeClass { capacity_reservation_terms: terms, ..class() };
    let mut world = World::on(config, CONTROLLER_KEY, class).await;
    world.client.until("class ready", |shown| shown.class_ready()).await;
    world
}

/// Launches by a plan that takes what is reserved first, and goes without.
async fn launched(world: &mut World, seq: u64) -> (CapacityType, String) {
    let id = &*format!("l-{seq}");
    let of = |kind| world.client.shown.candidates(&["m5.large"], kind);
    let candidates: Vec<Candidate> =
        [of(CapacityType::Reserved), of(CapacityType::OnDemand)].concat();
    let launch = world.client.shown.launch(id, candidates);
    world.client.apply(seq, vec![launch], vec![]).await.unwrap();
    world.client.until(id, |shown| shown.phase(id) == LaunchPhase::Launched).await;
    let instance = world.client.shown.launches[id].instance_id.clone();
    let listed = |shown: &Shown| {
        let known = shown.instances.get(&instance);
        known.is_some_and(|known| !known.private_dns_name.is_empty())
    };
    world.client.until("EC2 lists it", listed).await;
    let found = &world.client.shown.instances[&instance];
    (found.capacity_type(), found.reservation_id.clone())
}

#[tokio::test]
async fn a_reservation_is_used_until_it_is_full() {
    let mut world = world(Vec::new()).await;
    let status = world.client.shown.classes[CLASS].status.clone().unwrap();
    let [found] = status.capacity_reservations.as_slice() else { panic!("{status:?}") };
    assert_eq!((found.id.as_str(), found.instance_type.as_str()), ("cr-1", "m5.large"));
    assert_eq!(found.instance_match_criteria, "targeted");
    let condition = world.client.shown.condition("CapacityReservationsReady");
    assert_eq!(condition.and_then(|(status, ..)| status), Some(true));
    assert_eq!(world.client.shown.left, [("cr-1".to_owned(), 2)].into());
    for (seq, left) in [(1, 1), (2, 0)] {
        let expected = (CapacityType::Reserved, "cr-1".to_owned());
        assert_eq!(launched(&mut world, seq).await, expected, "{left} are left");
        world.client.until("what is left", |shown| shown.left["cr-1"] == left).await;
    }
    // Its plan did not know that it was full.
    let expected = (CapacityType::OnDemand, String::new());
    assert_eq!(launched(&mut world, 3).await, expected);
    let closed = ("m5.large".to_owned(), format!("{REGION}a"), CapacityType::Reserved, false);
    world.client.until("it is closed", |shown| shown.closed.contains(&closed)).await;
    world.actuator.stop().await;
}

#[tokio::test]
async fn a_reservation_that_is_gone_is_none_and_no_error() {
    let gone = SelectorTerm { id: "cr-0".to_owned(), ..SelectorTerm::default() };
    let world = world(vec![gone]).await;
    let status = world.client.shown.classes[CLASS].status.clone().unwrap();
    let found: Vec<_> = status.capacity_reservations.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(found, ["cr-1"]);
    world.actuator.stop().await;
}
