//! Capacity that was reserved beforehand, and what is bought once it is used up.
//!
//! Invariant: pods of these scenes need a node each, of the one type that their pool allows.

use longshore_core::labels;

use super::bursts::{GIB, created};
use super::*;

/// The type, of which two instances are reserved in one zone.
const TYPE: &str = "r.2";
const ZONE: &str = "z-a";
const SHAPE: &str = "s-alone";

fn resources(cpu_millis: i64, memory_bytes: i64) -> Option<v1::Resources> {
    Some(v1::Resources { cpu_millis, memory_bytes, pods: 9, ..v1::Resources::default() })
}

fn catalogue() -> v1::Catalogue {
    let offering = |kind: v1::CapacityType, price_micro_usd_per_hour| v1::Offering {
        zone: ZONE.to_owned(),
        capacity_type: kind.into(),
        price_micro_usd_per_hour,
        available: true,
        ..v1::Offering::default()
    };
    let reserved = |id: &str| v1::Offering {
        reservation_id: id.to_owned(),
        reservation_count: 1,
        ..offering(v1::CapacityType::Reserved, 1)
    };
    let kind = v1::InstanceType {
        name: TYPE.to_owned(),
        capacity: resources(2_000, 8 * GIB),
        offerings: vec![
            reserved("cr-1"),
            reserved("cr-2"),
            offering(v1::CapacityType::OnDemand, 100_000),
        ],
        ..v1::InstanceType::default()
    };
    v1::Catalogue { catalogue_id: CATALOGUE.to_owned(), types: vec![kind], ..Default::default() }
}

/// Allows the type, reserved or on demand.
fn choosy() -> Kind {
    let Kind::NodePool(mut pool) = pool(false) else { panic!("a pool") };
    let wanted = |key: &str, values: &[&str]| v1::Requirement {
        key: key.to_owned(),
        operator: v1::Operator::In.into(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        min_values: None,
    };
    pool.requirements = vec![
        wanted(labels::INSTANCE_TYPE, &[TYPE]),
        wanted(labels::CAPACITY_TYPE, &["reserved", "on-demand"]),
    ];
    Kind::NodePool(pool)
}

fn alone(name: &str) -> Kind {
    let Kind::Pod(pod) = bound("") else { panic!("a pod") };
    Kind::Pod(v1::Pod {
        uid: name.to_owned(),
        name: name.to_owned(),
        shape_id: SHAPE.to_owned(),
        phase: v1::PodPhase::Pending.into(),
        unschedulable: true,
        ..pod
    })
}

/// A scene with so many pods that wait.
async fn scene(pods: &[&str]) -> Scene {
    let mut scene = Scene::new(&[], vec![choosy()]).await;
    scene.actuator.tell(Change::Catalogue(catalogue()));
    let shape = v1::PodShape {
        shape_id: SHAPE.to_owned(),
        namespace: "default".to_owned(),
        requests: resources(1_500, GIB).map(|it| v1::Resources { pods: 1, ..it }),
        ..v1::PodShape::default()
    };
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    let pods = pods.iter().map(|name| alone(name));
    scene.delta([Kind::PodShape(shape)].into_iter().chain(pods).collect());
    scene
}

impl Scene {
    /// Shows the session the claims that it asked for, as far as it has not seen them.
    async fn show_claims(&mut self, seen: usize) -> Vec<v1::NodeClaim> {
        self.next(Duration::from_secs(5), |_| None::<()>).await;
        let create_time = Some(prost_types::Timestamp { seconds: 10_000, nanos: 0 });
        let asked = created(self).into_iter().skip(seen).filter_map(|create| create.claim);
        let claims = asked.map(|claim| v1::NodeClaim { create_time, ..claim });
        let claims: Vec<v1::NodeClaim> = claims.collect();
        self.delta(claims.iter().cloned().map(Kind::NodeClaim).collect());
        self.next(Duration::from_secs(5), |_| None::<()>).await;
        claims
    }

    /// What each launch may be, in order of the reservations. One that nobody answers is asked for
    /// again.
    fn launched(&self) -> Vec<Bought> {
        let launches = self.actuator.launches.lock().unwrap();
        let bought = |launch: &v1::Launch| {
            let each = launch.candidates.iter();
            each.map(|it| (it.reservation_id.clone(), it.capacity_type())).collect()
        };
        let by_id: BTreeMap<&str, Bought> =
            launches.iter().map(|it| (it.launch_id.as_str(), bought(it))).collect();
        let mut all: Vec<Bought> = by_id.into_values().collect();
        all.sort();
        all
    }
}

/// Reservation and capacity type of each candidate of a launch.
type Bought = Vec<(String, v1::CapacityType)>;

fn of_reservation(id: &str) -> Bought {
    vec![(id.to_owned(), v1::CapacityType::Reserved)]
}

fn on_demand() -> Bought {
    vec![(String::new(), v1::CapacityType::OnDemand)]
}

#[tokio::test(start_paused = true)]
async fn each_instance_of_a_reservation_is_asked_for_once_and_the_rest_on_demand() {
    let mut scene = scene(&["p-1", "p-2", "p-3"]).await;
    scene.show_claims(0).await;
    let expected = [on_demand(), of_reservation("cr-1"), of_reservation("cr-2")];
    assert_eq!(scene.launched(), expected);
}

/// What is said to be left of a reservation.
fn left(id: &str, reservation_count: i64) -> Change {
    let update = v1::OfferingUpdate {
        instance_type: TYPE.to_owned(),
        zone: ZONE.to_owned(),
        capacity_type: v1::CapacityType::Reserved.into(),
        available: true,
        reservation_id: id.to_owned(),
        reservation_count,
        ..v1::OfferingUpdate::default()
    };
    Change::Offerings(capacity::OfferingUpdates { updates: vec![update], ..Default::default() })
}

#[tokio::test(start_paused = true)]
async fn a_reservation_of_which_nothing_is_left_is_passed_over_until_there_is() {
    let mut scene = scene(&[]).await;
    scene.actuator.tell(left("cr-1", 0));
    scene.delta(vec![alone("p-1"), alone("p-2")]);
    scene.show_claims(0).await;
    assert_eq!(scene.launched(), [on_demand(), of_reservation("cr-2")]);
    scene.actuator.tell(left("cr-1", 1));
    scene.delta(vec![alone("p-3")]);
    scene.show_claims(2).await;
    assert_eq!(scene.launched(), [on_demand(), of_reservation("cr-1"), of_reservation("cr-2")]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_told_the_reservation_that_its_instance_runs_in() {
    let mut scene = scene(&["p-1"]).await;
    let claims = scene.show_claims(0).await;
    assert_eq!(scene.launched(), [of_reservation("cr-1")]);
    scene.actuator.tell(Change::Launch(capacity::LaunchState {
        launch_id: claims[0].launch_id.clone(),
        cluster_id: "c".to_owned(),
        claim: claims[0].name.clone(),
        phase: capacity::LaunchPhase::Launched.into(),
        instance_id: "i-1".to_owned(),
        ..capacity::LaunchState::default()
    }));
    scene.actuator.tell(Change::Instance(capacity::InstanceState {
        launch_id: claims[0].launch_id.clone(),
        claim: claims[0].name.clone(),
        instance_type: TYPE.to_owned(),
        zone: ZONE.to_owned(),
        capacity_type: v1::CapacityType::Reserved.into(),
        reservation_id: "cr-1".to_owned(),
        ..instance(1)
    }));
    let recorded = |action: &Action| {
        let Action::RecordLaunch(record) = action else { return None };
        Some(record.clone())
    };
    let record = scene.next(Duration::from_secs(5), recorded).await.unwrap();
    assert_eq!(record.capacity_type(), v1::CapacityType::Reserved);
    assert_eq!(record.labels[labels::RESERVATION_ID], "cr-1");
    assert_eq!(record.labels[labels::RESERVATION_TYPE], "default");
}
