//! Which pods run: those bound to nodes that are being served.
//!
//! Invariant: each such pod has exactly one task, which ends with the pod or with its node.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::KubeletConfig;
use super::client::KubeletClient;
use super::pod::{Addresses, Behaviour, ended, running};

/// News about a node's service.
#[derive(Clone, Debug)]
pub enum Served {
    /// From now on its pods run.
    From {
        /// Name of the node.
        node: String,
        /// Its address.
        ip: String,
    },
    /// From now on nobody cares for its pods.
    Until {
        /// Name of the node.
        node: String,
    },
}

struct Runner {
    latest: watch::Sender<Pod>,
    node: String,
    task: AbortHandle,
}

/// Starts and ends the tasks of pods.
pub struct Dispatcher {
    client: KubeletClient,
    config: Arc<KubeletConfig>,
    nodes: BTreeMap<String, String>,
    pods: HashMap<String, Pod>,
    runners: HashMap<String, Runner>,
    tasks: JoinSet<()>,
    addresses_given: u32,
}

impl Dispatcher {
    /// A dispatcher that serves no node yet.
    pub fn new(client: KubeletClient, config: Arc<KubeletConfig>) -> Self {
        Self {
            client,
            config,
            nodes: BTreeMap::new(),
            pods: HashMap::new(),
            runners: HashMap::new(),
            tasks: JoinSet::new(),
            addresses_given: 0,
        }
    }

    /// Dispatches until it is dropped.
    pub async fn run(mut self, mut news: mpsc::Receiver<Served>) {
        let bound = watcher::Config::default().fields("spec.nodeName!=");
        let mut events = watcher(self.client.pods(), bound).default_backoff().boxed();
        loop {
            tokio::select! {
                Some(news) = news.recv() => self.follow(news),
                event = events.try_next() => match event {
                    Ok(Some(event)) => self.observe(event),
                    Ok(None) => return,
                    Err(error) => tracing::debug!(%error, "the watch of pods is being renewed"),
                },
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = ended && !error.is_cancelled() {
                        tracing::error!(%error, "the task of a pod failed");
                    }
                }
            }
        }
    }

    fn follow(&mut self, news: Served) {
        match news {
            Served::From { node, ip } => {
                self.nodes.insert(node.clone(), ip);
                let here = self.pods.iter().filter(|(_, pod)| node_of(pod) == node);
                let here: Vec<(String, Pod)> =
                    here.map(|(uid, pod)| (uid.clone(), pod.clone())).collect();
                here.into_iter().for_each(|(uid, pod)| self.start(uid, pod));
            }
            Served::Until { node } => {
                self.nodes.remove(&node);
                self.runners.retain(|_, runner| {
                    let stays = runner.node != node;
                    if !stays {
                        runner.task.abort();
                    }
                    stays
                });
            }
        }
    }

    fn observe(&mut self, event: watcher::Event<Pod>) {
        match event {
            watcher::Event::Apply(pod) | watcher::Event::InitApply(pod) => self.apply(pod),
            watcher::Event::Delete(pod) => {
                let uid = pod.metadata.uid.unwrap_or_default();
                self.pods.remove(&uid);
                if let Some(runner) = self.runners.remove(&uid) {
                    runner.task.abort();
                }
            }
            watcher::Event::Init | watcher::Event::InitDone => {}
        }
    }

    fn apply(&mut self, pod: Pod) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.pods.insert(uid.clone(), pod.clone());
        match self.runners.get(&uid) {
            Some(runner) => drop(runner.latest.send_replace(pod)),
            None => self.start(uid, pod),
        }
    }

    fn start(&mut self, uid: String, pod: Pod) {
        let node = node_of(&pod).to_owned();
        let Some(host) = self.nodes.get(&node).cloned() else { return };
        if self.runners.contains_key(&uid) {
            return;
        }
        let on_host = pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
        let address = if on_host { host.clone() } else { self.next_address() };
        let behaviour = Behaviour::of(&pod, &self.config);
        let (latest, follow) = watch::channel(pod);
        let life = PodLife {
            client: self.client.clone(),
            behaviour,
            addresses: Addresses { host, pod: address },
            status_interval: self.config.status_interval,
            latest: follow,
        };
        let task = self.tasks.spawn(life.live());
        self.runners.insert(uid, Runner { latest, node, task });
    }

    fn next_address(&mut self) -> String {
        self.addresses_given = self.addresses_given.wrapping_add(1);
        let [_, b, c, d] = self.addresses_given.to_be_bytes();
        format!("100.{}.{c}.{d}", 64 + b % 64)
    }
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// True when the control plane has called the pod not ready because its node was.
fn is_doubted(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|one| one.type_ == "Ready");
    ready.is_some_and(|one| one.status == "False" && one.reason.as_deref() == Some("NodeNotReady"))
}

/// One pod's task.
struct PodLife {
    client: KubeletClient,
    behaviour: Behaviour,
    addresses: Addresses,
    status_interval: Duration,
    latest: watch::Receiver<Pod>,
}

impl PodLife {
    async fn live(self) {
        let mut deletion = self.latest.clone();
        tokio::select! {
            () = self.run() => {}
            _ = deletion.wait_for(|pod| pod.metadata.deletion_timestamp.is_some()) => {}
        }
        // A pod that ended stays until somebody deletes it.
        let asked = deletion.wait_for(|pod| pod.metadata.deletion_timestamp.is_some()).await;
        let Ok(pod) = asked.map(|pod| pod.clone()) else { return };
        self.stop(&pod).await;
    }

    /// Starts the containers and waits for them to end by themselves, if they do.
    async fn run(&self) {
        let pod = self.latest.borrow().clone();
        if ["Succeeded", "Failed"].contains(&phase(&pod)) {
            return;
        }
        let behaviour = &self.behaviour;
        if phase(&pod) != "Running" {
            sleep(behaviour.starts_after).await;
            if !behaviour.ready_after.is_zero() {
                let status = running(&pod, &self.addresses, false, &self.client.now());
                self.client.patch_pod(&pod, &status).await;
                sleep(behaviour.ready_after).await;
            }
            self.client
                .patch_pod(&pod, &running(&pod, &self.addresses, true, &self.client.now()))
                .await;
        }
        match behaviour.runs_for {
            Some(time) => tokio::select! {
                () = sleep(time) => {}
                () = self.stay_ready() => {}
            },
            None => self.stay_ready().await,
        }
        self.client.patch_pod(&pod, &ended(&pod, behaviour.exit_code, &self.client.now())).await;
    }

    /// Says again that the pod is ready when the control plane has called it not ready with its
    /// node, and the node is back: as a kubelet does that finds another status than its own. Never
    /// ends.
    async fn stay_ready(&self) {
        let mut latest = self.latest.clone();
        loop {
            if latest.wait_for(is_doubted).await.is_err() {
                return std::future::pending().await;
            }
            sleep(self.status_interval).await;
            let pod = latest.borrow_and_update().clone();
            if is_doubted(&pod) && self.client.is_ready(node_of(&pod)).await {
                let status = running(&pod, &self.addresses, true, &self.client.now());
                self.client.patch_pod(&pod, &status).await;
            }
        }
    }

    async fn stop(&self, pod: &Pod) {
        sleep(self.behaviour.stop_time(pod.metadata.deletion_grace_period_seconds)).await;
        let is_over = ["Succeeded", "Failed"].contains(&phase(&self.latest.borrow()));
        let waited_for = pod.metadata.finalizers.as_ref().is_some_and(|list| !list.is_empty());
        if waited_for && !is_over {
            // Whoever holds a finalizer, such as the Job controller, waits for the end.
            self.client.patch_pod(pod, &ended(pod, 143, &self.client.now())).await;
        }
        self.client.delete_pod(pod).await;
    }
}
