//! Pods that come one after the other, and what is bought for them.
//!
//! Invariant: what is bought is compared with what the same pods get when all of them come at once.

use super::*;

/// Pods of a burst.
const PODS: u32 = 120;
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
