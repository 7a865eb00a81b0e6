//! Whoever watches that nothing is touched.
//!
//! Invariant: nodes and claims are followed by watches, so that a taint that comes and goes is
//! seen, too; pods are told apart by UID, so that one that was evicted cannot be mistaken for its
//! successor.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use tokio::task::JoinSet;

use super::estate::{Estate, claim_of};

/// What stood when the watch began, and what was seen since.
pub struct Witness {
    pods: BTreeMap<String, String>,
    instances: Vec<String>,
    app: String,
    seen: Arc<Mutex<Vec<String>>>,
    _watches: JoinSet<()>,
}

impl Witness {
    /// Begins to watch the nodes and claims that there are, and the pods of an app.
    pub async fn begin(estate: &Estate, app: &str) -> Result<Self> {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut watches = JoinSet::new();
        // A node that has just joined has taints of its own.
        let served = |node: &Node| node.labels().contains_key("karpenter.sh/initialized");
        let nodes = estate.nodes().await?.into_iter().filter(|(_, node)| served(node));
        let mut names: Vec<String> = nodes.map(|(name, _)| name).collect();
        names.extend(estate.claims().await?.into_keys());
        let nodes: Api<Node> = Api::all(estate.client.clone());
        let (known, book) = (names.clone(), Arc::clone(&seen));
        watches.spawn(follow(nodes, move |node, gone| {
            if known.contains(&node.name_any()) {
                note(&book, touched_node(node, gone));
            }
        }));
        let kind = GroupVersionKind::gvk("karpenter.sh", "v1", "NodeClaim");
        let resource = ApiResource::from_gvk_with_plural(&kind, "nodeclaims");
        let claims: Api<DynamicObject> = Api::all_with(estate.client.clone(), &resource);
        let book = Arc::clone(&seen);
        watches.spawn(follow(claims, move |claim, gone| {
            if names.contains(&claim.name_any()) {
                note(&book, touched_claim(claim, gone));
            }
        }));
        let pods = estate.pods(app).await?;
        let instances = estate.alive().into_iter().map(|it| it.instance_id).collect();
        Ok(Self { pods, instances, app: app.to_owned(), seen, _watches: watches })
    }

    /// An error when a pod is not where it was.
    pub async fn stays(&self, estate: &Estate) -> Result<()> {
        let pods = estate.pods(&self.app).await?;
        let moved: Vec<_> =
            self.pods.iter().filter(|(uid, node)| pods.get(*uid) != Some(node)).collect();
        ensure!(moved.is_empty(), "{} pods are not where they were: {moved:?}", moved.len());
        Ok(())
    }

    /// An error when anything was touched that stood at the beginning.
    pub async fn calm(&self, estate: &Estate) -> Result<()> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ensure!(seen.is_empty(), "touched: {seen:#?}");
        let alive = estate.alive();
        let lives = |id: &String| alive.iter().any(|it| it.instance_id == *id);
        let ended: Vec<_> = self.instances.iter().filter(|id| !lives(id)).collect();
        ensure!(ended.is_empty(), "instances were ended: {ended:?}");
        self.stays(estate).await?;
        let claims = estate.claims().await?;
        let bare =
            alive.iter().find(|it| !claim_of(it).is_empty() && !claims.contains_key(claim_of(it)));
        ensure!(bare.is_none(), "no claim stands for {bare:?}");
        Ok(())
    }
}

fn note(book: &Mutex<Vec<String>>, what: Option<String>) {
    if let Some(what) = what {
        book.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

fn touched_node(node: &Node, gone: bool) -> Option<String> {
    let spec = node.spec.clone().unwrap_or_default();
    let taints = spec.taints.unwrap_or_default();
    let name = node.name_any();
    if gone || node.metadata.deletion_timestamp.is_some() {
        return Some(format!("Node {name} is deleted"));
    }
    if spec.unschedulable == Some(true) || !taints.is_empty() {
        return Some(format!("Node {name} is closed: {taints:?}"));
    }
    None
}

fn touched_claim(claim: &DynamicObject, gone: bool) -> Option<String> {
    let name = claim.name_any();
    if gone || claim.metadata.deletion_timestamp.is_some() {
        return Some(format!("NodeClaim {name} is deleted"));
    }
    let conditions = claim.data.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let bad = conditions.find(|it| {
        it["status"] == "True" && (it["type"] == "Drifted" || it["type"] == "DisruptionReason")
    });
    bad.map(|bad| format!("NodeClaim {name} is to go: {bad}"))
}

async fn follow<K>(api: Api<K>, see: impl Fn(&K, bool))
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let events = watcher(api, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    loop {
        match events.try_next().await {
            Ok(Some(watcher::Event::Apply(object) | watcher::Event::InitApply(object))) => {
                see(&object, false);
            }
            Ok(Some(watcher::Event::Delete(object))) => see(&object, true),
            Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) | Err(_) => {}
            Ok(None) => return,
        }
    }
}
