//! Karpenter beside a watcher: nothing is done while its Lease is renewed.

use futures::TryStreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use longshore_runtime::platform::Platform;
use longshore_runtime::tasks::Supervisor;
use longshore_watcher::{Config, Duty, Watcher};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::support::{World, pool, within};

const LEASE: &str = "karpenter-leader-election";

fn leases(world: &World) -> Api<Lease> {
    Api::default_namespaced(world.client.clone())
}

/// Writes the Lease as its holder does; nobody's with an empty name.
async fn renew(world: &World, holder: &str, seconds: u32) {
    let spec = json!({
        "holderIdentity": holder,
        "leaseDurationSeconds": 3600,
        "renewTime": format!("2026-01-01T00:00:{seconds:02}.000000Z"),
    });
    let patch = Patch::Merge(json!({ "spec": spec }));
    let api = leases(world);
    if api.get_opt(LEASE).await.unwrap().is_some() {
        api.patch(LEASE, &PatchParams::default(), &patch).await.unwrap();
        return;
    }
    let lease = json!({ "metadata": { "name": LEASE }, "spec": spec });
    let lease = serde_json::from_value(lease).unwrap();
    api.create(&PostParams::default(), &lease).await.unwrap();
}

async fn says_so(world: &World) {
    let events: Api<Event> = Api::all(world.client.clone());
    let events = kube::runtime::watcher(events, Default::default());
    let mut events = std::pin::pin!(events);
    within("an Event on the pool", async {
        loop {
            let Some(watcher::Event::Apply(event) | watcher::Event::InitApply(event)) =
                events.try_next().await.unwrap()
            else {
                continue;
            };
            let names = event.note.is_some_and(|note| note.contains("pod-1"));
            if names && event.reason.as_deref() == Some("KarpenterRuns") {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_watcher_holds_still_while_karpenter_leads_and_stops_when_it_is_back() {
    let mut world = World::start().await;
    let (first, session) = world.scheduler.session().await;
    pool(&world).await;

    // Karpenter comes: the session ends, and none is opened until it has gone.
    renew(&world, "pod-1", 1).await;
    says_so(&world).await;
    drop(session);

    // A second watcher that starts beside it stands by, and does not even take the Lease.
    let supervisor = Supervisor::new(CancellationToken::new(), Platform::system());
    let endpoint = world.scheduler.endpoint.clone();
    let config = Config {
        identity: "second".to_owned(),
        region: "us-east-1".to_owned(),
        ..Config::new("test", &endpoint)
    };
    let second = Watcher::start(config, world.client.clone(), &supervisor).await.unwrap();
    let mut duty = second.duty.clone();
    within("the second stands by", duty.wait_for(|duty| *duty == Duty::Standby)).await.unwrap();
    let ours: Api<Lease> = Api::namespaced(world.client.clone(), "kube-system");
    let held = ours.get("longshore-watcher").await.unwrap().spec.unwrap();
    assert_ne!(held.holder_identity.as_deref(), Some("second"));
    supervisor.token().cancel();

    // It gives its Lease up: work goes on.
    renew(&world, "", 2).await;
    let (next, _session) = world.scheduler.session().await;
    assert!(next.session_epoch > first.session_epoch);
    world.stop().await;
}
