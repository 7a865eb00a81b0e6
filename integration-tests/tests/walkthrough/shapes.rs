//! W2 with pods of two shapes, so that it matters which pod has which place: a plan is carried out
//! to the letter.
//!
//! Invariant: this is the walkthrough that `make busy` repeats; each place that was planned is
//! taken by a pod of the planned shape, and each pod that waited was told where to go.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use longshore_it::stage::{eyes, hands};
use serde_json::{Value, json};

use super::scene::{self, Scene};

/// Pods of the two Deployments, before and after; the many of both are planned together.
const FEW: u32 = 2;
const MANY: [(&str, u32); 2] = [("web", 64), ("cache", 36)];

#[tokio::test]
async fn walkthrough_w2_of_two_shapes() -> Result<()> {
    let mut config = scene::region("us-east-1", "w2")?;
    config.instance_profiles.iter_mut().for_each(|profile| profile.name = "w2-node".to_owned());
    // Nodes come after the pods that they are for, as they do in life.
    (config.timing.boot_min_ms, config.timing.boot_max_ms) = (8_000, 10_000);
    let mut scene = Scene::start(config, "w2", |_| {}).await?;
    scene.apply(&two_shapes(scene.example("w2-v1")?)?).await?;
    let sight = scene.until("the few run", TIER, |sight| sight.running == 4).await?;
    // Looked at before others come, who take what room there is beside them.
    scene.realised(sight.all_nodes).await?;
    for (name, replicas) in MANY {
        hands::scale(&scene.world.client, "default", name, replicas).await?;
    }
    let sight = scene.until("100 pods run", TIER, |sight| sight.running == 100).await?;
    let places = scene.realised(sight.all_nodes).await?;
    // The last node may come when pods of one shape are all that wait: no place of it is at stake
    // any more. They were told while it booted.
    let told = told(&scene.world.client).await?;
    ensure!(places.planned > 0 && told > 90, "of pods of two shapes, only {told} were told");
    ensure!(
        places.realised == places.planned,
        "{} of {} places are taken as planned",
        places.realised,
        places.planned
    );
    scene.balanced().await
}

/// How many pods were told where to go.
async fn told(client: &kube::Client) -> Result<usize> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pods = pods.list(&ListParams::default().labels(TIER)).await?;
    Ok(pods.iter().filter(|pod| eyes::is_written_to(pod)).count())
}

/// Selects the pods of both Deployments.
const TIER: &str = "tier=w2";

/// The example with a second Deployment, which wants much memory beside the first one's processors:
/// nodes that hold both are cheaper than nodes for each.
fn two_shapes(mut manifests: Vec<Value>) -> Result<Vec<Value>> {
    let web = manifests.iter_mut().find(|object| object["kind"] == "Deployment");
    let web = web.context("the example has no Deployment")?;
    web["spec"]["replicas"] = json!(FEW);
    web["spec"]["template"]["metadata"]["labels"]["tier"] = json!("w2");
    let mut cache = web.clone();
    for labels in ["/spec/selector/matchLabels/app", "/spec/template/metadata/labels/app"] {
        *cache.pointer_mut(labels).with_context(|| format!("no {labels}"))? = json!("cache");
    }
    cache["metadata"]["name"] = json!("cache");
    cache["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] =
        json!({ "cpu": "100m", "memory": "1280Mi" });
    manifests.push(cache);
    Ok(manifests)
}
