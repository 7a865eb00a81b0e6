//! Pods that come one after the other, and what is bought for them.
//!
//! Invariant: what is bought is compared with what the same pods get when all of them come at once.

use super::scenes::disruption;
use super::*;

/// Pods of a burst.
pub(super) const PODS: u32 = 120;
pub(super) const GIB: i64 = 1 << 30;
/// From one pod to the next: a controller creates a hundred in half a second.
const APART: Duration = Duration::from_millis(5);

/// A pod without a place, which kube-scheduler has tried or not.
fn waiting(number: u32, tried: bool) -> Kind {
    let Kind::Pod(pod) = bound("") else { panic!("a pod") };
    let (uid, phase) = (format!("pod-{number}"), v1::PodPhase::Pending.into());
    // As old as the scene.
    let create_time = Some(prost_types::Timestamp { seconds: 10_000, nanos: 0 });
    let pod = v1::Pod { name: uid.clone(), uid, phase, unschedulable: tried, create_time, ..pod };
    Kind::Pod(pod)
}

/// Highest price of each claim that was asked for, in micro-dollars per hour.
fn bought(scene: &Scene) -> Vec<i64> {
    let creations = scene.seen.iter().filter_map(|action| {
        let Action::CreateClaim(create) = action else { return None };
        create.claim.clone()
    });
    let mut prices: Vec<i64> = creations.map(|claim| claim.max_price_micro_usd_per_hour).collect();
    prices.sort_unstable();
    prices
}

async fn at_once() -> Vec<i64> {
    let mut scene = Scene::new(&[], vec![pool(false)]).await;
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    scene.delta((0..PODS).map(|number| waiting(number, number == 0)).collect());
    scene.next(Duration::from_secs(10), |_| None::<()>).await;
    bought(&scene)
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_bought_as_if_all_of_it_had_come_at_once() {
    let mut scene = Scene::new(&[], vec![pool(false)]).await;
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    for number in 0..PODS {
        scene.delta(vec![waiting(number, false)]);
        // kube-scheduler fails the first, and none of the others before they are bought for.
        if number == 0 {
            scene.delta(vec![waiting(number, true)]);
        }
        scene.next(APART, |_| None::<()>).await;
    }
    scene.next(Duration::from_secs(10), |_| None::<()>).await;
    assert_eq!(bought(&scene), at_once().await);
}

#[tokio::test(start_paused = true)]
async fn a_pod_alone_is_bought_for_at_once() {
    let mut scene = Scene::new(&[], vec![pool(false)]).await;
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    scene.delta(vec![waiting(0, true)]);
    let creation = |action: &Action| matches!(action, Action::CreateClaim(_)).then_some(());
    let found = scene.next(Duration::from_millis(60), creation).await;
    assert!(found.is_some(), "a lone pod waits for nobody");
}

#[tokio::test(start_paused = true)]
async fn pods_that_come_for_ever_wait_a_second_and_no_longer() {
    let mut scene = Scene::new(&[], vec![pool(false)]).await;
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    let began = Instant::now();
    let creation = |action: &Action| matches!(action, Action::CreateClaim(_)).then_some(());
    for number in 0..1_000 {
        scene.delta(vec![waiting(number, true)]);
        if scene.next(Duration::from_millis(90), creation).await.is_some() {
            break;
        }
    }
    assert!(began.elapsed() <= Duration::from_millis(1_300), "{:?}", began.elapsed());
}

/// The shape of the pods, of which so many more are to come.
fn expecting(coming: u32) -> Kind {
    let Kind::PodShape(shape) = random::shape(&mut Random::new(1), 0) else { panic!("a shape") };
    Kind::PodShape(v1::PodShape { coming, ..shape })
}

/// Claims that were asked for, each with the pods that it is said to be for.
pub(super) fn created(scene: &Scene) -> Vec<cluster::CreateClaim> {
    let creation = |action: &Action| {
        let Action::CreateClaim(create) = action else { return None };
        Some(create.clone())
    };
    scene.seen.iter().filter_map(creation).collect()
}

#[tokio::test(start_paused = true)]
async fn a_burst_that_is_foreseen_is_bought_with_the_first_plan_and_no_pod_is_named_before_it_is_there()
 {
    let mut scene = Scene::new(&[], vec![pool(false)]).await;
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    scene.delta(vec![waiting(0, false)]);
    for number in 0..PODS {
        // The watcher has read the owner when kube-scheduler has failed the first.
        scene.delta(vec![expecting(PODS - 1 - number), waiting(number, number == 0)]);
        scene.next(APART, |_| None::<()>).await;
        let there = |uid: &String| (0..=number).any(|n| *uid == format!("pod-{n}"));
        assert!(created(&scene).iter().flat_map(|create| &create.pods).all(there), "{number}");
        if number == 20 {
            assert_eq!(bought(&scene), at_once().await, "a hundred more are to come");
        }
    }
    scene.next(Duration::from_secs(10), |_| None::<()>).await;
    assert_eq!(bought(&scene), at_once().await, "all of them have a place");
    let names = format!("{:?}", scene.seen);
    assert!(!names.contains("coming/"), "somebody hears of a pod that never was");
}

/// What is known of a bought node when it has joined, without a pod: it has the room that was asked
/// for.
fn joined(create: &cluster::CreateClaim, number: u64) -> [Kind; 2] {
    let (node, claim) = in_service(number);
    let wanted = create.claim.clone().unwrap();
    let (name, launch_id, allocatable) = (wanted.name, wanted.launch_id, wanted.requests);
    let node = v1::Node { allocatable: allocatable.clone(), ..node };
    let claim = v1::NodeClaim { name, launch_id, allocatable, ..claim };
    [Kind::Node(node), Kind::NodeClaim(claim)]
}

#[tokio::test(start_paused = true)]
async fn room_of_pods_that_do_not_come_is_kept_while_they_are_expected_and_goes_as_any_other() {
    let mut scene = Scene::new(&[], vec![pool(true)]).await;
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    scene.delta(vec![expecting(PODS - 1), waiting(0, true)]);
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    let claims = created(&scene);
    assert_eq!(bought(&scene), at_once().await);
    for (create, number) in claims.iter().zip(0..) {
        let (claim, launch_id) = create.claim.clone().map(|it| (it.name, it.launch_id)).unwrap();
        let instance = capacity::InstanceState { claim, launch_id, ..instance(number) };
        scene.actuator.tell(Change::Instance(instance));
        scene.delta(joined(create, number).into());
    }
    let early = scene.next(Duration::from_secs(30), disruption).await;
    assert_eq!(early, None, "its pods may still come");
    let Kind::Pod(pod) = waiting(0, false) else { panic!("a pod") };
    let pod = v1::Pod { node_name: "n-0".to_owned(), ..pod };
    scene.delta(vec![expecting(0), Kind::Pod(pod)]);
    let mut gone = std::collections::BTreeSet::new();
    while let Some(disrupt) = scene.next(Duration::from_secs(30), disruption).await {
        assert_eq!(disrupt.reason, "Empty");
        gone.insert(disrupt.claim);
    }
    assert_eq!(gone.len(), claims.len() - 1, "all but the one with the pod");
    assert_eq!(created(&scene).len(), claims.len(), "nothing more is bought");
}

#[tokio::test(start_paused = true)]
async fn what_a_limit_leaves_is_for_pods_that_are_there() {
    let Kind::NodePool(mut limited) = pool(false) else { panic!("a pool") };
    limited.limits = Some(v1::PoolLimits { values: [("cpu".to_owned(), 8_000)].into() });
    let mut scene = Scene::new(&[], vec![Kind::NodePool(limited)]).await;
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    let Kind::PodShape(shape) = expecting(0) else { panic!("a shape") };
    let other = v1::PodShape { shape_id: "s-9".to_owned(), owner: "Job/b".to_owned(), ..shape };
    let Kind::Pod(pod) = waiting(1, true) else { panic!("a pod") };
    let pod = v1::Pod { shape_id: "s-9".to_owned(), ..pod };
    scene.delta(vec![expecting(PODS), Kind::PodShape(other), waiting(0, true), Kind::Pod(pod)]);
    scene.next(Duration::from_secs(10), |_| None::<()>).await;
    let named: Vec<String> = created(&scene).into_iter().flat_map(|it| it.pods).collect();
    assert!(["pod-0", "pod-1"].iter().all(|pod| named.contains(&(*pod).to_owned())), "{named:?}");
}

/// A shape of pods of one core, of which so many more are to come.
pub(super) fn of_one_core(shape_id: &str, memory_bytes: i64, coming: u32) -> Kind {
    let Kind::PodShape(shape) = expecting(coming) else { panic!("a shape") };
    let requests = v1::Resources { cpu_millis: 1_000, memory_bytes, pods: 1, ..Default::default() };
    let shape_id = shape_id.to_owned();
    Kind::PodShape(v1::PodShape {
        owner: format!("Job/{shape_id}"),
        shape_id,
        requests: Some(requests),
        ..shape
    })
}

/// A pod of a named shape that waits; kube-scheduler has tried the first.
pub(super) fn waiting_in(shape: &str, number: u32) -> Kind {
    let Kind::Pod(pod) = waiting(number, number == 0) else { panic!("a pod") };
    let uid = format!("{shape}-{number}");
    Kind::Pod(v1::Pod { shape_id: shape.to_owned(), name: uid.clone(), uid, ..pod })
}

#[tokio::test(start_paused = true)]
async fn pods_that_come_take_the_places_that_were_bought_for_their_shape() {
    let kinds = [("large", 7 * GIB / 2), ("small", 3 * GIB / 2)];
    let coming = |(shape, memory): (&str, i64), number: u32| {
        vec![of_one_core(shape, memory, PODS - 1 - number), waiting_in(shape, number)]
    };
    let mut scene = Scene::new(&[], vec![pool(false)]).await;
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    for kind in kinds {
        scene.delta(coming(kind, 0));
        scene.next(Duration::from_secs(1), |_| None::<()>).await;
    }
    let all = bought(&scene);
    for number in 1..PODS {
        scene.delta(kinds.iter().rev().flat_map(|kind| coming(*kind, number)).collect());
        scene.next(APART, |_| None::<()>).await;
    }
    scene.next(Duration::from_secs(10), |_| None::<()>).await;
    assert_eq!(bought(&scene), all, "room for all of them was bought before they came");
}

#[tokio::test(start_paused = true)]
async fn two_owners_are_bought_for_together_when_the_count_of_one_follows_that_of_the_other() {
    let mut prices = Vec::new();
    for later in [Duration::ZERO, Duration::from_millis(150)] {
        let mut scene = Scene::new(&[], vec![pool(false)]).await;
        scene.next(Duration::from_secs(1), |_| None::<()>).await;
        let (large, small) = ("large", "small");
        let counted = of_one_core(small, GIB, PODS);
        let Kind::PodShape(counting) = of_one_core(small, GIB, 0) else { panic!("a shape") };
        let counting = Kind::PodShape(v1::PodShape { counting: true, ..counting });
        let one = of_one_core(large, 7 * GIB, PODS);
        scene.delta(vec![one, waiting_in(large, 0), counting, waiting_in(small, 0)]);
        scene.next(later, |_| None::<()>).await;
        scene.delta(vec![counted]);
        scene.next(Duration::from_secs(5), |_| None::<()>).await;
        prices.push(bought(&scene));
    }
    assert_eq!(prices[0], prices[1]);
}

/// A shape of which one pod fills a node, so many of which are about to be deleted.
fn filling(going: u32) -> Kind {
    let Kind::PodShape(shape) = of_one_core("web", GIB, 0) else { panic!("a shape") };
    let requests =
        v1::Resources { cpu_millis: 3_000, memory_bytes: GIB, pods: 1, ..Default::default() };
    Kind::PodShape(v1::PodShape { requests: Some(requests), going, ..shape })
}

#[tokio::test(start_paused = true)]
async fn pods_that_come_for_others_wait_for_these_to_end_and_are_bought_for_when_they_do_not() {
    let (node, claim) = in_service(1);
    let Kind::Pod(old) = bound(&node.name) else { panic!("a pod") };
    let old = Kind::Pod(v1::Pod { shape_id: "web".to_owned(), ..old });
    let objects = vec![pool(false), Kind::Node(node), Kind::NodeClaim(claim), filling(0), old];
    let mut scene = Scene::new(&[1], objects).await;
    scene.next(Duration::from_secs(1), |_| None::<()>).await;
    scene.delta(vec![filling(1), waiting_in("web", 0)]);
    let told = |action: &Action| {
        let claim = matches!(action, Action::CreateClaim(_)).then_some("a claim");
        claim.or(matches!(action, Action::NominatePods(_)).then_some("a nomination"))
    };
    assert_eq!(
        scene.next(Duration::from_secs(10), told).await,
        None,
        "its room is about to be free"
    );
    scene.delta(vec![filling(0)]);
    assert_eq!(scene.next(Duration::from_secs(2), told).await, Some("a claim"));
}
