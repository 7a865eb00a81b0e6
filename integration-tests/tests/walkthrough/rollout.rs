//! A new image over the nodes of a pool: a few at a time, each only once the one that takes over
//! from it is in service.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use longshore_it::parts::poll;
use longshore_it::stage::{crowd, eyes};
use longshore_lab::region::{CLUSTER, RELEASES};
use serde_json::{Value, json};

use super::scene::{self, LIMIT, Scene};

const REGION: &str = "us-east-1";
/// Nodes, with a pod each.
const NODES: usize = 12;
/// The share of them that may be disturbed at once, 10 %, rounded up.
const AT_ONCE: usize = 2;

#[tokio::test]
async fn an_image_rolls_out_over_a_pool() -> Result<()> {
    let mut scene = Scene::start(scene::region(REGION, CLUSTER)?, CLUSTER, |_| {}).await?;
    let [old, new] = RELEASES;
    let [_, pool] = crowd::supply(&[crowd::families(&["t3"])]);
    scene.apply(&[crowd::class_of(old.al2023), hasty(pool, "10m"), budget()]).await?;
    let pods = u32::try_from(NODES)?;
    scene.apply(&[crowd::workload("web", pods)]).await?;
    let all_run = |sight: &eyes::Sight| sight.running == NODES && sight.all_nodes == NODES;
    scene.until("all pods run", "app=web", all_run).await?;
    let [before] = images(&scene)
        .await?
        .into_keys()
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|images| anyhow::anyhow!("several images: {images:?}"))?;

    scene.apply(&[crowd::class_of(new.al2023)]).await?;
    scene.told(&["EC2NodeClass/default selects", &before]).await?;
    rolled_out(&scene, &before).await?;
    scene.until("all pods run again", "app=web", all_run).await?;
    scene.balanced().await
}

/// A pool that looks at its first new node for a moment, and gives it so long.
fn hasty(mut pool: Value, patience: &str) -> Value {
    pool["metadata"]["annotations"] = json!({
        "longshore.dev/canary-wait": "1s",
        "longshore.dev/canary-patience": patience,
    });
    pool
}

#[tokio::test]
async fn an_image_that_never_turns_ready_costs_one_node_and_no_pod() -> Result<()> {
    let region = scene::region(REGION, CLUSTER)?;
    let [old, new] = RELEASES;
    let sick = region.parameters.iter().filter(|(name, _)| name.contains(new.al2023));
    let sick: BTreeSet<String> = sick.map(|(_, id)| id.clone()).collect();
    let mut scene = Scene::start(region, CLUSTER, |world| world.sick_images = sick).await?;
    let [_, pool] = crowd::supply(&[crowd::families(&["t3"])]);
    scene.apply(&[crowd::class_of(old.al2023), hasty(pool, "15s"), budget()]).await?;
    scene.apply(&[crowd::workload("web", u32::try_from(NODES)?)]).await?;
    let all_run = |sight: &eyes::Sight| sight.running == NODES && sight.all_nodes == NODES;
    scene.until("all pods run", "app=web", all_run).await?;
    let pods = scene.until("all pods run", "app=web", all_run).await?.pods_on;

    scene.apply(&[crowd::class_of(new.al2023)]).await?;
    let said = stopped(&scene).await?;
    ensure!(said.contains("longshore.dev/retry-rollout="), "{said}");
    scene.told(&[&said[1..40]]).await?;
    // What has drifted stays, with its pods; the first new node is the only one.
    let kept = |sight: &eyes::Sight| sight.pods_on == pods && sight.all_nodes == NODES + 1;
    scene.until("nothing moves", "app=web", kept).await?;
    going(&scene, 0).await?;

    scene.apply(&[crowd::class_of(old.al2023)]).await?;
    healthy(&scene).await?;
    scene.until("nothing has moved", "app=web", kept).await?;
    scene.balanced().await
}

/// Waits until the pool says that its rollout has been stopped, and why.
async fn stopped(scene: &Scene) -> Result<String> {
    let done = poll::until("the rollout is stopped", LIMIT, || async {
        let condition = rollout(scene).await?;
        let failed = condition["reason"].as_str().is_some_and(|it| it.starts_with("CanaryFailed:"));
        ensure!(condition["status"] == "False" && failed, "{condition}");
        Ok::<_, anyhow::Error>(condition["message"].to_string())
    });
    done.await.map_err(|error| error.context(scene.logs()))
}

/// Waits until the pool says that nothing is the matter with its rollout.
async fn healthy(scene: &Scene) -> Result<()> {
    let done = poll::until("the rollout is healthy", LIMIT, || async {
        let condition = rollout(scene).await?;
        ensure!(condition["status"] == "True", "{condition}");
        Ok::<_, anyhow::Error>(())
    });
    done.await.map_err(|error| error.context(scene.logs()))
}

/// What the pool says of its rollout.
async fn rollout(scene: &Scene) -> Result<Value> {
    let pools = eyes::list(&scene.world.client, "karpenter.sh", "v1", "NodePool").await?;
    let pool = pools.first().context("no pool")?;
    let conditions = pool.data.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.find(|it| it["type"] == "RolloutHealthy").cloned().context("nothing is said")
}

/// Waits until so many nodes are about to go.
async fn going(scene: &Scene, wanted: usize) -> Result<()> {
    let done = poll::until("nodes are about to go", LIMIT, || async {
        let claims = eyes::claims(&scene.world.client).await?;
        let going = claims.iter().filter(|claim| eyes::is_going(claim)).count();
        ensure!(going == wanted, "{going} nodes are about to go");
        Ok::<_, anyhow::Error>(())
    });
    done.await.map_err(|error| error.context(scene.logs()))
}

/// One pod may be missing, no more.
fn budget() -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "web" } } },
    })
}

/// Waits until no node has the image any more. Meanwhile, no more nodes than the pool's budget
/// allows are on their way out with what runs there, one alone until the first new node is in
/// service, and no more pods are missing than theirs.
async fn rolled_out(scene: &Scene, image: &str) -> Result<()> {
    let client = scene.world.client.clone();
    let done = poll::until("no node has the old image", 2 * LIMIT, || async {
        let claims = eyes::claims(&client).await?;
        let leaving = |claim: &&DynamicObject| eyes::is_going(claim) && !is_drained(claim);
        let going = claims.iter().filter(leaving).count();
        let is_proven =
            |claim: &DynamicObject| eyes::image_of(claim) != Some(image) && is_in_service(claim);
        let allowed = if claims.iter().any(is_proven) { AT_ONCE } else { 1 };
        let running = eyes::look(&client, "default", "app=web").await?.running;
        if going > allowed || running + 1 < NODES {
            return Ok(Err(anyhow::anyhow!("{going} nodes go at once, {running} pods run")));
        }
        let images = images(scene).await?;
        ensure!(!images.contains_key(image), "{images:?}");
        Ok::<_, anyhow::Error>(Ok(()))
    });
    done.await.map_err(|error| error.context(scene.logs()))?
}

/// True once the pods of a claim that is to go have left, and nothing but the end of its instance
/// is waited for.
fn is_drained(claim: &DynamicObject) -> bool {
    condition(claim, "Drained").is_some_and(|status| status == "True")
        && condition(claim, "VolumesDetached").is_some_and(|status| status != "Unknown")
}

/// True for a claim whose node takes pods.
fn is_in_service(claim: &DynamicObject) -> bool {
    condition(claim, "Initialized").is_some_and(|status| status == "True")
}

/// The status of a condition.
fn condition<'c>(claim: &'c DynamicObject, kind: &str) -> Option<&'c Value> {
    let conditions = claim.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|it| it["type"] == kind).map(|it| &it["status"])
}

/// Nodes by the image that they booted.
async fn images(scene: &Scene) -> Result<BTreeMap<String, usize>> {
    let mut images = BTreeMap::new();
    for claim in eyes::claims(&scene.world.client).await? {
        let image =
            eyes::image_of(&claim).with_context(|| format!("{} has no image", claim.name_any()));
        *images.entry(image?.to_owned()).or_default() += 1;
    }
    Ok(images)
}
