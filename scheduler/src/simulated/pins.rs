//! Pods that are let in to nodes while these boot.
//!
//! Invariant: each is told once where it belongs, and only where that is at stake.

use std::collections::BTreeMap;

use super::bursts::{GIB, PODS, created, of_one_core, waiting_in};
use super::*;

/// A scene with a watcher that lets pods in to closed nodes one by one, or not.
async fn scene(pins_pods: bool) -> Scene {
    let mut scene = Scene::new(&[], vec![pool(false)]).await;
    scene.reconnect_saying(cluster::Hello { pins_pods, ..hello(2, "", "") }).await;
    scene.snapshot(vec![pool(false)]);
    scene.next(Duration::from_secs(5), |_| None::<()>).await;
    scene
}

/// Pods of these kinds come, five milliseconds apart; how many are to come is known, or not.
async fn burst(scene: &mut Scene, kinds: &[(&str, i64)], foreseen: bool) {
    for number in 0..PODS {
        let coming = if foreseen { PODS - 1 - number } else { 0 };
        let come = |(kind, memory): &(&str, i64)| {
            [of_one_core(kind, *memory, coming), waiting_in(kind, number)]
        };
        scene.delta(kinds.iter().flat_map(come).collect());
        scene.next(Duration::from_millis(5), |_| None::<()>).await;
    }
    scene.next(Duration::from_secs(10), |_| None::<()>).await;
}

/// The claim to whose node each pod is let in, while these boot.
fn pinned(scene: &Scene) -> Vec<(String, String)> {
    let pins = scene.seen.iter().filter_map(|action| {
        let Action::PinPods(pin) = action else { return None };
        Some(pin.pods.iter().map(|pod| (pod.clone(), pin.claim.clone())))
    });
    pins.flatten().collect()
}

const KINDS: [(&str, i64); 2] = [("large", 7 * GIB / 2), ("small", 3 * GIB / 2)];

#[tokio::test(start_paused = true)]
async fn pods_are_let_in_to_nodes_that_boot_once_their_burst_is_over() {
    for foreseen in [false, true] {
        let mut scene = scene(true).await;
        burst(&mut scene, &KINDS, foreseen).await;
        let pinned = pinned(&scene);
        let claims: BTreeMap<_, _> = pinned.iter().cloned().collect();
        let all = KINDS.len() * PODS as usize;
        assert_eq!((claims.len(), pinned.len()), (all, all), "each of them, once; {foreseen}");
        let of = |create: &cluster::CreateClaim| create.claim.clone().unwrap().name;
        let names: Vec<String> = created(&scene).iter().map(of).collect();
        assert!(claims.values().all(|claim| names.contains(claim)), "{claims:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_let_in_early_where_any_place_is_as_good_or_the_watcher_cannot() {
    for (pins_pods, kinds) in [(true, &KINDS[..1]), (false, &KINDS[..])] {
        let mut scene = scene(pins_pods).await;
        burst(&mut scene, kinds, false).await;
        assert!(!created(&scene).is_empty(), "nodes are bought");
        assert_eq!(pinned(&scene), []);
    }
}
