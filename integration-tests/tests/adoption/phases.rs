//! The steps of a takeover and of the way back, each with what has to hold at its end.
//!
//! Invariant: a phase waits for what it is about to be seen, never for time alone.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams,
};
use kube::{Client, ResourceExt as _};
use longshore_it::stage::{eyes, hands};
use serde_json::{Value, json};

use super::estate::{self, Estate, NODES, PODS, POOL, claim_of};
use super::inherited::Recording;
use super::witness::Witness;

/// Annotation of claims whose instance carries all of Karpenter's tags.
const TAGGED: &str = "karpenter.k8s.aws/tagged";
/// Kinds that are recorded.
const RECORDED: [(&str, &str, &str); 4] = [
    ("karpenter.k8s.aws", "v1", "EC2NodeClass"),
    ("karpenter.sh", "v1", "NodePool"),
    ("karpenter.sh", "v1", "NodeClaim"),
    ("", "v1", "Node"),
];
/// Annotation with the hash of a pool.
const HASH: &str = "karpenter.sh/nodepool-hash";
/// Annotation of the claims that we made.
const OURS: &str = "longshore.dev/launch-id";
/// Claims of this age are past everything that is judged by a young claim's age.
const AGE: Duration = Duration::from_secs(90);

/// Waits until so many claims are initialised.
pub async fn all_initialized(estate: &mut Estate, nodes: usize) -> Result<()> {
    estate
        .until("all claims are initialised", |client| async move {
            let claims = eyes::claims(&client).await?;
            let fit = claims.iter().filter(|claim| is_true(claim, "Initialized")).count();
            ensure!(fit == nodes && claims.len() == nodes, "{fit} of {} claims", claims.len());
            Ok(())
        })
        .await
}

/// While Karpenter leads, our services run and do nothing, and say so. A pod that comes meanwhile
/// is Karpenter's business.
pub async fn held_back(estate: &mut Estate) -> Result<()> {
    let witness = Witness::begin(estate, "web").await?;
    estate.start_ours().await?;
    estate.watcher()?.wait_for_line("Karpenter runs", estate::LIMIT).await?;
    hands::apply(&estate.client, &[estate::workload("during", 1)]).await?;
    estate
        .until("an Event on the pool says so", |client| async move {
            let said = said(&client, "Karpenter runs in this cluster").await?;
            ensure!(!said.is_empty(), "no Event says that Karpenter runs");
            Ok(())
        })
        .await?;
    let ours = estate.claims().await?.into_values().filter(is_ours).count();
    ensure!(ours == 0, "{ours} claims were made beside Karpenter");
    witness.calm(estate).await
}

/// We lead: nothing is touched, and what comes is served.
pub async fn taken_over(estate: &mut Estate) -> Result<()> {
    let witness = Witness::begin(estate, "web").await?;
    let known = estate.claims().await?.len();
    estate.until_running("during", 1).await?;
    let new = 2;
    hands::apply(&estate.client, &[estate::workload("new", estate::PODS_PER_NODE * new)]).await?;
    estate.until_running("new", estate::PODS_PER_NODE * new).await?;
    let ours = estate.claims().await?.into_values().filter(is_ours).count();
    ensure!(ours > 0 && ours <= new + 1, "{ours} claims of ours beside {known}");
    of_the_pools_hash(estate).await?;
    estate
        .until("the claims are old enough", |client| async move {
            let claims = eyes::claims(&client).await?;
            let young = claims.iter().filter(|claim| !is_ours(claim) && age(claim) < AGE).count();
            ensure!(young == 0, "{young} claims are young");
            Ok(())
        })
        .await?;
    hands::scale(&estate.client, "default", "new", 3 * count(estate::PODS_PER_NODE)).await?;
    estate.until_running("new", 3 * estate::PODS_PER_NODE).await?;
    witness.calm(estate).await?;
    estate.balanced().await
}

/// Our claims carry the hash that Karpenter has written on their pool, which nobody has changed
/// since.
async fn of_the_pools_hash(estate: &Estate) -> Result<()> {
    let pools = eyes::list(&estate.client, "karpenter.sh", "v1", "NodePool").await?;
    let pool = pools.first().context("no pool")?.annotations().get(HASH).cloned();
    ensure!(pool.is_some(), "Karpenter has left no hash on the pool");
    let claims = estate.claims().await?;
    let ours = claims.values().filter(|claim| is_ours(claim));
    let other = ours.map(|claim| claim.annotations().get(HASH).cloned()).find(|it| *it != pool);
    ensure!(other.is_none(), "a claim carries {other:?}, the pool {pool:?}");
    Ok(())
}

/// What is done to nodes is done to theirs as to ours.
pub async fn at_work(estate: &mut Estate) -> Result<()> {
    interrupted(estate).await?;
    deleted(estate).await?;
    consolidated(estate).await?;
    estate.balanced().await
}

/// Notice for an instance of theirs: its node is drained and the pods have another.
async fn interrupted(estate: &mut Estate) -> Result<()> {
    let theirs = theirs(estate).await?;
    let id = theirs.instance_id;
    estate.region.interrupt_spot(&id)?;
    gone(estate, &id).await?;
    estate.until_running("web", PODS).await
}

/// `kubectl delete nodeclaim` ends the instance.
async fn deleted(estate: &mut Estate) -> Result<()> {
    let theirs = theirs(estate).await?;
    let claim = claim_of(&theirs);
    api(&estate.client, "NodeClaim", "nodeclaims").delete(claim, &DeleteParams::default()).await?;
    gone(estate, &theirs.instance_id).await?;
    estate.until_running("web", PODS).await
}

/// Fewer pods need fewer nodes, whoever made them.
async fn consolidated(estate: &mut Estate) -> Result<()> {
    let pods = PODS / 5;
    hands::scale(&estate.client, "default", "web", count(pods)).await?;
    consolidate_after(estate, "5s").await?;
    estate
        .until("fewer nodes are left", |client| async move {
            let nodes = eyes::pool_nodes(&client).await?.len();
            ensure!(nodes <= NODES / 2, "{nodes} nodes");
            Ok(())
        })
        .await?;
    consolidate_after(estate, "Never").await?;
    estate.until_running("web", pods).await?;
    nothing_under_way(estate).await
}

/// Sets how long pods must have been quiet before nodes are consolidated.
pub async fn consolidate_after(estate: &Estate, wait: &str) -> Result<()> {
    let patch = json!({ "spec": { "disruption": { "consolidateAfter": wait } } });
    let pools = api(&estate.client, "NodePool", "nodepools");
    pools.patch(POOL, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// Waits until no claim goes and no node is closed, be it by Kubernetes itself: it takes the
/// taint of a node that was not ready away up to five seconds after pods have begun to run there.
pub async fn nothing_under_way(estate: &mut Estate) -> Result<()> {
    estate
        .until("nothing is under way", |client| async move {
            let claims = eyes::claims(&client).await?;
            let going = claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_some());
            ensure!(going.count() == 0, "claims are going");
            let nodes = eyes::pool_nodes(&client).await?;
            let taints = |node: &k8s_openapi::api::core::v1::Node| {
                node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default()
            };
            ensure!(nodes.iter().all(|node| taints(node).is_empty()), "nodes are closed");
            ensure!(nodes.len() == claims.len(), "{} of {}", nodes.len(), claims.len());
            Ok(())
        })
        .await
}

/// Karpenter leads again: it finds nothing to mend, and goes on.
pub async fn given_back(estate: &mut Estate) -> Result<()> {
    let witness = Witness::begin(estate, "web").await?;
    let more = 3 * estate::PODS_PER_NODE;
    hands::apply(&estate.client, &[estate::workload("back", more)]).await?;
    estate.until_running("back", more).await?;
    let ours = estate.claims().await?.into_values().find(is_ours);
    let ours = ours.context("no claim of ours is left")?;
    witness.calm(estate).await?;
    let provider_id = ours.data.pointer("/status/providerID").and_then(Value::as_str);
    let id = provider_id.and_then(|id| id.rsplit('/').next()).context("no instance")?.to_owned();
    let claims = api(&estate.client, "NodeClaim", "nodeclaims");
    claims.delete(&ours.name_any(), &DeleteParams::default()).await?;
    gone(estate, &id).await?;
    estate.balanced().await
}

/// Keeps what Karpenter wrote, of one claim that it is done with, beside the logs; it has to be of
/// the same shape as the recording that the other test uses.
pub async fn record(estate: &mut Estate) -> Result<()> {
    let claim = estate
        .until("a claim's instance is tagged", |client| async move {
            let claims = eyes::claims(&client).await?;
            let tagged = claims.into_iter().find(|it| it.annotations().contains_key(TAGGED));
            tagged.context("none is")
        })
        .await?;
    let text = |path: &str| claim.data.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (node, id) = (text("/status/nodeName"), text("/status/providerID"));
    let mut objects = Vec::new();
    for (group, version, kind) in RECORDED {
        let all = eyes::list(&estate.client, group, version, kind).await?;
        let of = [POOL, node, &claim.name_any()].map(ToOwned::to_owned);
        let found = all.into_iter().find(|it| of.contains(&it.name_any()));
        let mut found = found.with_context(|| format!("no {kind}"))?;
        found.metadata.managed_fields = None;
        let mut value = serde_json::to_value(found)?;
        value["kind"] = json!(kind);
        value["apiVersion"] =
            json!(if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") });
        objects.push(value);
    }
    let alive = estate.alive();
    let instance = alive.iter().find(|it| id.ends_with(&it.instance_id)).context("no instance")?;
    let recorded = json!({
        "objects": objects,
        "tags": instance.tags,
        "userData": String::from_utf8_lossy(&instance.user_data),
    });
    let file = estate.around.dir.join("recorded.json");
    std::fs::write(&file, serde_json::to_string_pretty(&recorded)? + "\n")?;
    let (old, new) = (Recording::read()?.shape(), Recording::of(&file)?.shape());
    let differ: Vec<_> = old.symmetric_difference(&new).collect();
    ensure!(differ.is_empty(), "{} is of another shape: {differ:#?}", file.display());
    Ok(())
}

/// Waits until an instance has ended and its claim and node are gone.
async fn gone(estate: &mut Estate, id: &str) -> Result<()> {
    let region = std::sync::Arc::clone(&estate.region);
    let id = id.to_owned();
    estate
        .until(&format!("{id} is gone"), |client| {
            let (region, id) = (std::sync::Arc::clone(&region), id.clone());
            async move {
                let state = region.record(&id).map(|record| record.seen.state);
                let over = state > Some(longshore_lab::instance::InstanceState::Running);
                let claims = eyes::claims(&client).await?;
                let has = |claim: &&DynamicObject| {
                    let id_of = claim.data.pointer("/status/providerID").and_then(Value::as_str);
                    id_of.is_some_and(|of| of.ends_with(&id))
                };
                ensure!(over, "the instance is {state:?}");
                let left = claims.iter().find(has);
                ensure!(left.is_none(), "its claim is there: {left:?}");
                Ok(())
            }
        })
        .await
}

/// An instance of a claim that Karpenter made.
async fn theirs(estate: &Estate) -> Result<longshore_lab::instance::Instance> {
    let claims = estate.claims().await?;
    let mut alive = estate.alive().into_iter();
    let theirs = alive.find(|it| {
        claims
            .get(claim_of(it))
            .is_some_and(|claim| !is_ours(claim) && claim.metadata.deletion_timestamp.is_none())
    });
    theirs.context("no instance of theirs is left")
}

/// Events whose text contains a part.
async fn said(client: &Client, part: &str) -> Result<Vec<String>> {
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::all(client.clone());
    let events = events.list(&kube::api::ListParams::default()).await?.items;
    let texts = events.into_iter().filter_map(|event| event.message);
    Ok(texts.filter(|text| text.contains(part) && text.contains("Longshore")).collect())
}

fn api(client: &Client, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("karpenter.sh", "v1", kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
}

fn is_ours(claim: &DynamicObject) -> bool {
    claim.annotations().contains_key(OURS)
}

fn is_true(claim: &DynamicObject, condition: &str) -> bool {
    let conditions = claim.data.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == "True")
}

fn age(claim: &DynamicObject) -> Duration {
    let created = claim.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let age = created.map(|created| Timestamp::now().duration_since(created));
    age.and_then(|age| Duration::try_from(age).ok()).unwrap_or_default()
}

/// A number of pods as a scale has it.
pub fn count(pods: usize) -> u32 {
    u32::try_from(pods).unwrap_or(u32::MAX)
}
