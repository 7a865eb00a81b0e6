//! Nodes that go and are kept: what keeps them is said, by the cluster and by the command, until it
//! is gone.

use std::fmt::Debug;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use jiff::tz::TimeZone;
use jiff::{RoundMode, Timestamp, Unit, ZonedRound};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt as _;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams,
};
use longshore_it::parts::{binary, poll};
use longshore_it::stage::world::WorldConfig;
use longshore_it::stage::{crowd, eyes};
use longshore_lab::region::CLUSTER;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::scene::{self, LIMIT, Scene};

const REGION: &str = "us-east-1";
/// Pods that are kept on their node, each by something else.
const KEPT: [&str; 3] = ["guarded", "held", "twice"];
/// A pod that a finalizer keeps in the cluster, but not on its node.
const ENDED: &str = "ended";

#[tokio::test]
async fn what_keeps_a_node_from_being_drained_is_said_until_it_is_gone() -> Result<()> {
    let mut scene = Scene::start(scene::region(REGION, CLUSTER)?, CLUSTER, |_| {}).await?;
    scene.apply(&crowd::supply(&[crowd::families(&["t3"])])).await?;
    scene.apply(&KEPT.map(pod)).await?;
    scene.apply(&[pod(ENDED)]).await?;
    scene
        .apply(&[budget("guarded", "one"), budget("twice", "two"), budget("twice", "three")])
        .await?;
    let all_run = |sight: &eyes::Sight| sight.running == KEPT.len() + 1 && sight.all_nodes == 1;
    scene.until("all pods run on one node", "kept=yes", all_run).await?;
    let client = scene.world.client.clone();
    let [node] = &eyes::pool_nodes(&client).await?[..] else { anyhow::bail!("no one node") };
    let node = node.name_any();
    let kept = [
        "stays\n",
        "Pod/default/held: its annotation karpenter.sh/do-not-disrupt",
        "PodDisruptionBudget/default/one: it allows no eviction now, and covers 1 pod here",
        "Pod/default/twice: PodDisruptionBudgets default/three and default/two cover it",
        "NodePool/default: consolidateAfter Never",
    ];
    told(&scene, &node, &kept.map(str::to_owned)).await?;
    scene.apply(&attached(&node)).await?;

    let [claim] = &eyes::claims(&client).await?[..] else { anyhow::bail!("no one claim") };
    let claim = claim.name_any();
    delete_claim(&scene, &claim).await?;
    let held = "Pod/default/held: it refuses eviction by its annotation";
    scene.told(&[held]).await?;
    condition(&scene, &claim, "Drained", held).await?;
    let said = told(&scene, &node, &KEPT.map(|pod| format!("Pod/default/{pod}, since"))).await?;
    for part in [
        "is being drained; 3 pods are on it, and it is kept by",
        "Cannot evict pod as it would violate the pod's disruption budget",
        "no pod with two PodDisruptionBudgets is ever evicted",
    ] {
        ensure!(said.contains(part), "{part:?} is not said: {said}");
    }
    ensure!(!said.contains(ENDED), "{said}");

    release(&scene).await?;
    let volume = ["VolumeAttachment/lab-data, since".to_owned()];
    let said = told(&scene, &node, &volume).await?;
    ensure!(said.contains("volume data is still attached"), "{said}");
    let attached = "VolumeAttachment/lab-data: volume data is still attached";
    scene.told(&[attached]).await?;
    condition(&scene, &claim, "VolumesDetached", attached).await?;
    delete::<VolumeAttachment>(Api::all(client), "lab-data").await?;
    gone(&scene, &claim).await?;
    scene.balanced().await
}

/// Waits until a condition of a claim is unknown, for this reason among others, as `kubectl
/// describe` shows it.
async fn condition(scene: &Scene, claim: &str, kind: &str, why: &str) -> Result<()> {
    let client = scene.world.client.clone();
    let done = poll::until("the claim says what keeps it", LIMIT, || async {
        let claims = eyes::claims(&client).await?;
        let claim = claims.iter().find(|it| it.name_any() == claim).context("it is gone")?;
        let conditions = claim.data.pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        let said = conditions.find(|it| it["type"] == kind).context("no such condition")?;
        let says = said["message"].as_str().is_some_and(|message| message.contains(why));
        ensure!(said["status"] == "Unknown" && says, "{said}");
        Ok::<_, anyhow::Error>(())
    });
    done.await.map_err(|error| error.context(scene.logs()))
}

/// Waits until a claim is gone.
async fn gone(scene: &Scene, claim: &str) -> Result<()> {
    let client = scene.world.client.clone();
    let done = poll::until("the claim is gone", LIMIT, || async {
        let left = eyes::claims(&client).await?;
        ensure!(left.iter().all(|it| it.name_any() != claim), "it is there");
        Ok::<_, anyhow::Error>(())
    });
    done.await.map_err(|error| error.context(scene.logs()))
}

/// Takes away what keeps the pods.
async fn release(scene: &Scene) -> Result<()> {
    let client = scene.world.client.clone();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let (params, key) = (PatchParams::default(), "karpenter.sh/do-not-disrupt");
    let unheld = json!({ "metadata": { "annotations": { key: null } } });
    pods.patch("held", &params, &Patch::Merge(unheld)).await?;
    let free = json!({ "metadata": { "finalizers": null } });
    pods.patch(ENDED, &params, &Patch::Merge(free)).await?;
    for name in ["one", "two", "three"] {
        delete::<PodDisruptionBudget>(Api::default_namespaced(client.clone()), name).await?;
    }
    Ok(())
}

async fn delete_claim(scene: &Scene, name: &str) -> Result<()> {
    let kind = GroupVersionKind::gvk("karpenter.sh", "v1", "NodeClaim");
    let claims = Api::all_with(scene.world.client.clone(), &ApiResource::from_gvk(&kind));
    delete::<DynamicObject>(claims, name).await
}

async fn delete<K: Clone + Debug + DeserializeOwned>(api: Api<K>, name: &str) -> Result<()> {
    api.delete(name, &DeleteParams::default()).await.context(name.to_owned())?;
    Ok(())
}

/// What the command says of a node, once that has all of `parts`.
async fn told(scene: &Scene, node: &str, parts: &[String]) -> Result<String> {
    let said = poll::until("what keeps the node is said", LIMIT, || async {
        let said = explained(scene, node)?;
        let missing = parts.iter().find(|part| !said.contains(*part));
        ensure!(missing.is_none(), "{missing:?} is not said: {said}");
        Ok::<_, anyhow::Error>(said)
    });
    said.await.map_err(|error| error.context(scene.logs()))
}

/// What `longshore explain node` prints.
#[expect(clippy::print_stdout, reason = "what a person sees is a result of the test")]
fn explained(scene: &Scene, node: &str) -> Result<String> {
    let mut command = Command::new(binary::workspace_program("longshore")?);
    command.args(["explain", "node", node, "--cluster", CLUSTER]);
    command.args(["--scheduler", &scene.world.scheduler.url()]);
    let output =
        command.args(scene.world.keys.flags(&"longshore://client/test".parse()?)?).output()?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(!text.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    print!("{text}");
    Ok(text)
}

/// A pod that something keeps.
fn pod(name: &str) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": name, "kept": "yes" } },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10",
                "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } },
            }],
        },
    });
    match name {
        "held" => {
            pod["metadata"]["annotations"] = json!({ "karpenter.sh/do-not-disrupt": "true" });
        }
        ENDED => pod["metadata"]["finalizers"] = json!(["example.com/held"]),
        _ => {}
    }
    pod
}

/// A budget by which no pod of the name may be missing.
fn budget(of: &str, name: &str) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": of } } },
    })
}

/// A volume, attached to a node.
fn attached(node: &str) -> [Value; 2] {
    let volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": "data" },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "csi": { "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1" },
        },
    });
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": { "name": "lab-data" },
        "spec": {
            "attacher": "ebs.csi.aws.com",
            "nodeName": node,
            "source": { "persistentVolumeName": "data" },
        },
    });
    [volume, attachment]
}

/// A Deployment with one pod that asks to have the next one first, and a budget that lets it never
/// go.
fn singleton() -> [Value; 2] {
    let mut workload = crowd::workload("single", 1);
    let template = &mut workload["spec"]["template"];
    template["metadata"]["annotations"] = json!({ "longshore.dev/surge": "true" });
    template["metadata"]["labels"] = json!({ "app": "single" });
    [workload, budget("single", "single")]
}

#[tokio::test]
async fn the_only_pod_of_a_deployment_is_replaced_before_it_goes() -> Result<()> {
    let surge = |world: &mut WorldConfig| world.watcher_flags.push("--surge".to_owned());
    let mut scene = Scene::start(scene::region(REGION, CLUSTER)?, CLUSTER, surge).await?;
    scene.apply(&crowd::supply(&[crowd::families(&["t3"])])).await?;
    scene.apply(&singleton()).await?;
    let runs = |sight: &eyes::Sight| sight.running == 1 && sight.all_nodes == 1;
    scene.until("the pod runs", "app=single", runs).await?;
    let client = scene.world.client.clone();
    let [claim] = &eyes::claims(&client).await?[..] else { anyhow::bail!("no one claim") };
    delete_claim(&scene, &claim.name_any()).await?;
    scene.told(&["Deployment single makes its next pod"]).await?;
    let done = poll::until("the old node is gone", LIMIT, || async {
        let running = eyes::look(&client, "default", "app=single").await?.running;
        if running == 0 {
            return Ok(Err(anyhow::anyhow!("for a moment no pod ran")));
        }
        let left = eyes::claims(&client).await?;
        ensure!(left.iter().all(|it| it.name_any() != claim.name_any()), "it is there");
        Ok::<_, anyhow::Error>(Ok(()))
    });
    done.await.map_err(|error| error.context(scene.logs()))??;
    scene.until("the next pod runs", "app=single", runs).await?;
    scene.balanced().await
}

/// Least time until the window opens: the node has been empty for long enough by then.
const CLOSED_SECONDS: i64 = 40;

#[tokio::test]
async fn an_empty_node_goes_when_the_window_of_its_budget_opens() -> Result<()> {
    let mut scene = Scene::start(scene::region(REGION, CLUSTER)?, CLUSTER, |_| {}).await?;
    let [class, mut pool] = crowd::supply(&[crowd::families(&["t3"])]);
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let minutes = if i64::from(now.second()) + CLOSED_SECONDS > 60 { 2 } else { 1 };
    let minute = now.round(ZonedRound::new().smallest(Unit::Minute).mode(RoundMode::Trunc))?;
    let opens = minute.timestamp().as_second() + 60 * minutes;
    pool["spec"]["disruption"] = json!({
        "consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s",
        "budgets": [{
            "nodes": "0", "duration": format!("{minutes}m"),
            "schedule": format!("{} {} * * *", minute.minute(), minute.hour()),
        }],
    });
    scene.apply(&[class, pool, crowd::workload("web", 1)]).await?;
    let runs = |sight: &eyes::Sight| sight.running == 1 && sight.all_nodes == 1;
    scene.until("the pod runs", "app=web", runs).await?;
    scene::delete_deployment(&scene.world.client, "web").await?;
    let client = scene.world.client.clone();
    let done = poll::until("the node goes", 2 * LIMIT, || async {
        let claims = eyes::claims(&client).await?;
        let going = claims.iter().find_map(|claim| claim.metadata.deletion_timestamp.clone());
        Ok::<_, anyhow::Error>(going.context("it stays")?.0.as_second())
    });
    let went = done.await.map_err(|error| error.context(scene.logs()))?;
    ensure!((opens..opens + 30).contains(&went), "it opens at {opens}, the node went at {went}");
    scene.gone().await
}
