//! A real control plane without a kubelet, and the watcher's own eyes and hands.
//!
//! Invariant: nothing but this process and the control plane changes the cluster. It is emptied
//! between trials, so that one control plane serves all of them.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{Directive, DirectiveResult, DirectiveStatus};
use longshore_runtime::tasks::Supervisor;
use longshore_watcher::api::NodeClaim;
use longshore_watcher::args::Placement;
use longshore_watcher::counters::Counters;
use longshore_watcher::directives::Directives;
use longshore_watcher::index::{Index, Source, Store};
use longshore_watcher::names::UNREGISTERED_TAINT;
use longshore_watcher::{events, observe};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::parts::control_plane::Controllers;
use crate::parts::{ControlPlane, ControlPlaneOptions, poll};
use crate::stage::hands;
use crate::stage::world::ROOT;

/// How long anything may take that has to come.
pub(super) const LIMIT: Duration = Duration::from_secs(60);
/// The scheduler plans no later than this after a change, however many follow.
const CALM_WITHIN: Duration = Duration::from_millis(300);
/// Directives that may wait; far more than a trial sends at once.
const QUEUE: usize = 256;
/// Of the controllers only that of DaemonSets: no other acts on what a trial has.
const CONTROLLER: &str = "daemonset-controller";
/// Kinds whose absence from the eyes would go unnoticed.
const WATCHED: [Source; 3] = [Source::Pod, Source::Node, Source::NodeClaim];

/// The control plane with eyes and hands. Fields are in the order in which they have to end.
pub struct Cluster {
    supervisor: Supervisor,
    pinning: Hands,
    nominating: Hands,
    sent: u64,
    /// What is seen of the cluster.
    pub store: Store,
    client: Client,
    plane: ControlPlane,
}

/// What carries out directives, and what it answers.
struct Hands {
    queue: mpsc::Sender<Directive>,
    results: mpsc::Receiver<DirectiveResult>,
}

impl Hands {
    fn spawn(supervisor: &Supervisor, directives: Directives) -> Self {
        let (queue, asked) = mpsc::channel(QUEUE);
        let (answers, results) = mpsc::channel(QUEUE);
        let token = supervisor.token().clone();
        supervisor.spawn_once("directives", async move {
            token.run_until_cancelled(directives.run(asked, answers)).await;
            Ok(())
        });
        Self { queue, results }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.supervisor.token().cancel();
    }
}

impl Cluster {
    /// Starts a control plane with our kinds.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start() -> Result<Self> {
        let options = ControlPlaneOptions {
            controllers: Controllers::Only(CONTROLLER),
            ..ControlPlaneOptions::default()
        };
        let plane = ControlPlane::start(options).await?;
        let client = plane.client();
        hands::apply(&client, &hands::manifests(&Path::new(ROOT).join("deploy/crds"))?).await?;
        hands::established(&client).await?;
        let supervisor = Supervisor::new(
            tokio_util::sync::CancellationToken::new(),
            longshore_runtime::platform::Platform::system(),
        );
        let platform = supervisor.platform().clone();
        let store = Store::new(platform.clock.clone());
        observe::spawn(&supervisor, &client, &store);
        let counters = Counters::default();
        let (events, publisher) =
            events::events(client.clone(), "agree", counters.clone(), &platform);
        let token = supervisor.token().clone();
        supervisor.spawn_once("events", async move {
            token.run_until_cancelled(publisher.run()).await.unwrap_or(Ok(()))
        });
        let all = Directives::new(client.clone(), store.clone(), events, counters, platform);
        let hands = |placement| Hands::spawn(&supervisor, all.clone().with(placement));
        let (pinning, nominating) = (hands(Placement::Pin), hands(Placement::Nominate));
        let cluster = Self { supervisor, pinning, nominating, sent: 0, store, client, plane };
        cluster
            .see("the cluster is seen", |index| {
                WATCHED.iter().all(|kind| !index.unlisted().contains(kind))
            })
            .await?;
        Ok(cluster)
    }

    /// Waits until something is seen.
    ///
    /// # Errors
    /// When it is not within the limit.
    pub async fn see(&self, what: &str, holds: impl Fn(&Index) -> bool) -> Result<()> {
        ensure!(self.store.until(LIMIT, holds).await, "{what}: not within {LIMIT:?}");
        Ok(())
    }

    /// Waits until no waiting pod has changed for that long.
    pub async fn calm(&self, quiet: Duration) {
        let end = tokio::time::Instant::now() + CALM_WITHIN;
        while tokio::time::Instant::now() < end {
            let before = self.store.read(Index::stirs);
            if !self.store.until(quiet, |index| index.stirs() != before).await {
                return;
            }
        }
    }

    /// Carries out directives side by side and waits until each is answered.
    ///
    /// # Errors
    /// When one is not done.
    pub async fn direct(&mut self, placement: Placement, actions: Vec<Action>) -> Result<()> {
        let hands = match placement {
            Placement::Pin => &mut self.pinning,
            Placement::Nominate => &mut self.nominating,
        };
        let count = actions.len();
        for action in actions {
            self.sent += 1;
            let directive = Directive {
                directive_id: self.sent.to_string(),
                action: Some(action),
                ..Directive::default()
            };
            hands.queue.send(directive).await?;
        }
        for _ in 0..count {
            let result = hands.results.recv().await.ok_or_else(|| anyhow!("nobody answers"))?;
            let done = result.status() == DirectiveStatus::Done;
            ensure!(done, "a directive was not carried out: {}", result.message);
        }
        Ok(())
    }

    /// Creates objects of one kind, which belong to no namespace.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub async fn create_nodes(&self, nodes: Vec<Node>) -> Result<()> {
        create(&Api::all(self.client.clone()), nodes).await
    }

    /// Creates pods and DaemonSets, and classes of priority that are not there yet.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub async fn create<K>(&self, objects: &[Value]) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + DeserializeOwned + serde::Serialize + Debug,
    {
        let all = objects.iter().map(|it| serde_json::from_value(it.clone()));
        create::<K>(&Api::default_namespaced(self.client.clone()), all.collect::<Result<_, _>>()?)
            .await
    }

    /// Creates those classes of priority that are not there yet.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub async fn create_priorities(&self, classes: &[Value]) -> Result<()> {
        let api: Api<PriorityClass> = Api::all(self.client.clone());
        for class in classes {
            let class: PriorityClass = serde_json::from_value(class.clone())?;
            if api.get_opt(&class.name_any()).await?.is_none() {
                api.create(&PostParams::default(), &class).await?;
            }
        }
        Ok(())
    }

    /// Takes taints off nodes, all at once: every taint of one of these keys.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn open(&self, nodes: &[String], keys: &[&str]) -> Result<()> {
        let open = |_: &str, taints: &mut Vec<Taint>| {
            taints.retain(|taint| !keys.contains(&taint.key.as_str()));
        };
        self.taint(nodes, open).await
    }

    /// Closes nodes as one that joined a moment ago is, each in its own name.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn close(&self, nodes: &[String]) -> Result<()> {
        let close = |node: &str, taints: &mut Vec<Taint>| {
            taints.push(Taint {
                key: UNREGISTERED_TAINT.to_owned(),
                value: Some(node.to_owned()),
                effect: "NoExecute".to_owned(),
                time_added: None,
            });
        };
        self.taint(nodes, close).await
    }

    async fn taint(&self, nodes: &[String], edit: impl Fn(&str, &mut Vec<Taint>)) -> Result<()> {
        let api: Api<Node> = Api::all(self.client.clone());
        let taint_one = async |name: &String| -> Result<()> {
            let taints = api.get(name).await?.spec.and_then(|spec| spec.taints);
            let mut taints = taints.unwrap_or_default();
            edit(name, &mut taints);
            let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
            api.patch(name, &PatchParams::default(), &patch).await?;
            Ok(())
        };
        futures::future::try_join_all(nodes.iter().map(taint_one)).await?;
        Ok(())
    }

    /// Pods that are there now.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn pods(&self) -> Result<Vec<Pod>> {
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        Ok(api.list(&ListParams::default()).await?.items)
    }

    /// Deletes these pods, whatever they do, and sees them gone.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete_pods(&self, names: &[String]) -> Result<()> {
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        let now = DeleteParams::default().grace_period(0);
        for name in names {
            api.delete(name, &now).await?;
        }
        self.see("pods are gone", |index| {
            names
                .iter()
                .all(|name| index.pod_named(&("default".to_owned(), name.clone())).is_none())
        })
        .await
    }

    /// Empties the cluster, and sees it empty.
    ///
    /// # Errors
    /// When something stays, or a part of the control plane has ended.
    pub async fn clear(&mut self) -> Result<()> {
        self.plane.ensure_running()?;
        let now = DeleteParams::default().grace_period(0);
        let everything = ListParams::default();
        let sets: Api<DaemonSet> = Api::default_namespaced(self.client.clone());
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        sets.delete_collection(&now, &everything).await?;
        // The controller may be about to make a pod while its set goes.
        poll::until("no pods are left", LIMIT, || async {
            pods.delete_collection(&now, &everything).await?;
            ensure!(sets.list(&everything).await?.items.is_empty(), "DaemonSets are left");
            ensure!(pods.list(&everything).await?.items.is_empty(), "pods are left");
            Ok(())
        })
        .await?;
        release::<NodeClaim>(&Api::all(self.client.clone())).await?;
        release::<Node>(&Api::all(self.client.clone())).await?;
        self.see("the cluster is empty", |index| {
            index.node_names().next().is_none() && index.claims().next().is_none()
        })
        .await
    }
}

/// One after the other: kube-scheduler tries pods in the order in which they came.
async fn create<K>(api: &Api<K>, objects: Vec<K>) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + serde::Serialize + Debug,
{
    for object in objects {
        api.create(&PostParams::default(), &object).await?;
    }
    Ok(())
}

/// Deletes all objects of a kind whatever their finalizers wait for.
async fn release<K>(api: &Api<K>) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let held = api.list(&ListParams::default()).await?.items;
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    for object in held.iter().filter(|object| !object.finalizers().is_empty()) {
        api.patch(&object.name_any(), &PatchParams::default(), &free).await?;
    }
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    Ok(())
}
