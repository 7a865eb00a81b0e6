//! What the refusals have in common: a world with pools, pods that each belong to one of them, and
//! what is said of an object.
//!
//! Invariant: pods of one pool never fit another, so that one pool's trouble cannot be another's.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use longshore_it::parts::poll;
use longshore_it::stage::services::Surroundings;
use longshore_it::stage::world::{World, WorldConfig};
use longshore_it::stage::{eyes, hands};
use longshore_lab::region::{CLUSTER, NODE_PROFILE, RegionConfig};
use serde_json::{Value, json};

/// Most time for anything on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);
/// Region of the world.
pub const REGION: &str = "us-east-1";

/// A world in which class and pool `good` work. Logs stay in the target folder.
pub async fn world(name: &str, adjust: impl FnOnce(&mut WorldConfig)) -> Result<World> {
    let mut config = WorldConfig::new(RegionConfig::simple(REGION)?, CLUSTER, &dir(name)?);
    adjust(&mut config);
    let world = World::start(config).await?;
    hands::apply(&world.client, &[class("good", CLUSTER), pool("good", "good", "c5")]).await?;
    Ok(world)
}

/// A folder for the logs of a test.
pub fn dir(name: &str) -> Result<std::path::PathBuf> {
    crate::kept_dir(&format!("refusals-{name}-"))
}

/// Surroundings of services that need no cluster.
pub fn surroundings(name: &str, region_url: &str) -> Result<Surroundings> {
    Ok(Surroundings::without_cluster(&dir(name)?, REGION, region_url))
}

/// A node class that selects subnets by the value of their discovery tag.
pub fn class(name: &str, tag: &str) -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": { "name": name },
        "spec": {
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": [{ "tags": { "karpenter.sh/discovery": tag } }],
            "securityGroupSelectorTerms": [{ "tags": { "karpenter.sh/discovery": CLUSTER } }],
            "instanceProfile": NODE_PROFILE,
        },
    })
}

/// A pool of one instance family.
pub fn pool(name: &str, class: &str, family: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": name },
        "spec": { "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class },
            "expireAfter": "Never",
            "requirements": [{
                "key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": [family],
            }],
        }}},
    })
}

/// A pod for the nodes of one pool, labelled `app` with its own name.
pub fn pod(name: &str, pool: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": name } },
        "spec": {
            "nodeSelector": { "karpenter.sh/nodepool": pool },
            "containers": [{
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10",
                "resources": { "requests": { "cpu": cpu } },
            }],
        },
    })
}

/// Brings a pod to the pool `good` and waits until it runs: others are served.
pub async fn good_pod_runs(client: &Client, name: &str) -> Result<()> {
    hands::apply(client, &[pod(name, "good", "500m")]).await?;
    runs(client, name).await
}

/// Waits until a pod runs.
pub async fn runs(client: &Client, name: &str) -> Result<()> {
    poll::until(&format!("pod {name} runs"), LIMIT, || async {
        let sight = eyes::look(client, "default", &format!("app={name}")).await?;
        ensure!(sight.running == 1, "{sight:?}; events: {:?}", events(client, name).await?);
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// A condition as a user sees it.
#[derive(Debug)]
pub struct Seen {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// In CamelCase.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// Waits until a condition has this status and reason, and gives its message.
pub async fn condition(
    client: &Client,
    (kind, name): (&str, &str),
    condition: &str,
    wanted: (&str, &str),
) -> Result<String> {
    condition_says(client, (kind, name), condition, wanted, &[]).await
}

/// The same, and until its message contains all of `parts`.
pub async fn condition_says(
    client: &Client,
    (kind, name): (&str, &str),
    condition: &str,
    (status, reason): (&str, &str),
    parts: &[&str],
) -> Result<String> {
    let what = format!("{kind} {name} is {condition}={status} for {reason} and says {parts:?}");
    poll::until(&what, LIMIT, || async {
        let seen = conditions(client, kind, name).await?;
        let seen = seen.into_iter().find(|(known, _)| known == condition);
        let seen = seen.context("it has no such condition")?.1;
        let said = parts.iter().all(|part| seen.message.contains(part));
        ensure!(seen.status == status && seen.reason == reason && said, "{seen:?}");
        Ok::<_, anyhow::Error>(seen.message)
    })
    .await
}

async fn conditions(client: &Client, kind: &str, name: &str) -> Result<Vec<(String, Seen)>> {
    let group = if kind == "NodePool" { "karpenter.sh" } else { "karpenter.k8s.aws" };
    let objects = eyes::list(client, group, "v1", kind).await?;
    let object = objects.into_iter().find(|object| object.name_any() == name);
    let object = object.with_context(|| format!("no {kind} {name}"))?;
    let list = object.data.pointer("/status/conditions").and_then(Value::as_array).cloned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let seen = |c: &Value| Seen {
        status: text(&c["status"]),
        reason: text(&c["reason"]),
        message: text(&c["message"]),
    };
    Ok(list.unwrap_or_default().iter().map(|c| (text(&c["type"]), seen(c))).collect())
}

/// Waits until an Event about an object contains all of `parts`, and gives its text.
pub async fn event(client: &Client, about: &str, parts: &[&str]) -> Result<String> {
    poll::until(&format!("an Event about {about} says {parts:?}"), LIMIT, || async {
        let all = events(client, about).await?;
        let says = |text: &&String| parts.iter().all(|part| text.contains(part));
        all.iter().find(says).cloned().with_context(|| format!("{all:?}"))
    })
    .await
}

async fn events(client: &Client, about: &str) -> Result<Vec<String>> {
    let all = eyes::list(client, "events.k8s.io", "v1", "Event").await?;
    let of = |event: &DynamicObject| event.data["regarding"]["name"] == about;
    let note = |event: DynamicObject| event.data["note"].as_str().map(str::to_owned);
    Ok(all.into_iter().filter(of).filter_map(note).collect())
}

/// Fails unless `text` contains all of `parts`.
pub fn says(text: &str, parts: &[&str]) -> Result<()> {
    let missing: Vec<_> = parts.iter().filter(|part| !text.contains(**part)).collect();
    ensure!(missing.is_empty(), "{missing:?} is not in: {text}");
    Ok(())
}

/// Mends an object with a merge patch.
pub async fn mend<K>(client: &Client, name: &str, patch: &Value) -> Result<()>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
