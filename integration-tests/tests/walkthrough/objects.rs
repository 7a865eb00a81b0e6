//! The objects that the walkthroughs do without: a pool with replicas, overlays, room kept for pods
//! to come. Without them a pool would not come or not shrink, and nobody would hear what a buffer
//! waits for.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt as _;
use longshore_it::parts::poll;
use longshore_it::stage::eyes;
use serde_json::{Value, json};

use super::scene::{self, LIMIT, Scene};

const REGION: &str = "us-east-1";
/// Pods of the example's workload.
const PODS: usize = 10;

#[tokio::test]
async fn objects_beside_pools_and_claims() -> Result<()> {
    let mut config = scene::region(REGION, "objects")?;
    scene::rename_node_role(&mut config, "KarpenterNodeRole-objects");
    let mut scene = Scene::start(config, "objects", |_| {}).await?;
    let example = scene.example("objects")?;
    scene.apply(&example).await?;
    scene.until("all pods run", "app=inflate", |sight| sight.running == PODS).await?;
    let zones = steady(&scene, 3).await?;
    ensure!(zones.len() == 3, "replicas are in {zones:?} only");
    told(&scene, ("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer"), "ReadyForProvisioning")
        .await?;
    told(&scene, ("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer"), "Provisioning").await?;
    told(&scene, ("karpenter.sh", "v1alpha1", "NodeOverlay"), "Ready").await?;
    let pool = example.iter().find(|object| object["metadata"]["name"] == "steady");
    let mut fewer = pool.context("no pool of replicas")?.clone();
    fewer["spec"]["replicas"] = json!(1);
    scene.apply(&[fewer]).await?;
    steady(&scene, 1).await?;
    let again = |sight: &eyes::Sight| sight.running == PODS && sight.pending == 0;
    scene.until("all pods run again", "app=inflate", again).await?;
    scene.balanced().await
}

/// Waits until the pool of replicas has this many nodes, all ready; gives their zones.
async fn steady(scene: &Scene, replicas: usize) -> Result<BTreeSet<String>> {
    let client = scene.world.client.clone();
    let what = format!("{replicas} replicas");
    let zones = poll::until(&what, LIMIT, || async {
        let mut nodes = eyes::pool_nodes(&client).await?;
        nodes.retain(|node| node.labels().get("pool").is_some_and(|pool| pool == "steady"));
        let ready = nodes.iter().filter(|node| eyes::is_ready(node)).count();
        ensure!(nodes.len() == replicas && ready == replicas, "{ready} of {} ready", nodes.len());
        let zone = |node: &k8s_openapi::api::core::v1::Node| {
            node.labels().get("topology.kubernetes.io/zone").cloned()
        };
        Ok::<_, anyhow::Error>(nodes.iter().filter_map(zone).collect())
    });
    zones.await.map_err(|error| error.context(scene.logs()))
}

/// Waits until a condition is true on every object of a kind.
async fn told(
    scene: &Scene,
    (group, version, kind): (&str, &str, &str),
    aspect: &str,
) -> Result<()> {
    let client = scene.world.client.clone();
    let what = format!("{aspect} of each {kind}");
    let all = poll::until(&what, LIMIT, || async {
        for object in eyes::list(&client, group, version, kind).await? {
            let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
            let mut conditions = conditions.into_iter().flatten();
            let met = conditions.any(|c| c["type"] == aspect && c["status"] == "True");
            ensure!(met, "{}: {:?}", object.name_any(), object.data.get("status"));
        }
        Ok::<_, anyhow::Error>(())
    });
    all.await.map_err(|error| error.context(scene.logs()))
}
