//! Starting and stopping the kubelets of a cluster.
//!
//! Invariant: every task belongs to the handle; dropping it ends them all, as a power cut would.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::client::KubeletClient;
use super::dispatch::Dispatcher;
use super::machine::{Surroundings, live, live_static};
use super::refusals::Refusals;
use super::{KubeletConfig, StaticNode};
use crate::instance::{Instance, InstanceSource};

/// News of nodes waiting for the dispatcher; it takes them faster than nodes come.
const NEWS_MAX: usize = 1_024;

/// The kubelets of one cluster.
pub struct Kubelets {
    tasks: JoinSet<()>,
    around: Surroundings,
}

impl std::fmt::Debug for Kubelets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cluster = &self.around.config.cluster_name;
        formatter.debug_struct("Kubelets").field("cluster", cluster).finish_non_exhaustive()
    }
}

impl Kubelets {
    /// Starts a kubelet on every instance of the source that names this cluster, now and later.
    pub fn start(
        client: kube::Client,
        source: Arc<dyn InstanceSource>,
        config: KubeletConfig,
    ) -> Self {
        let mut kubelets = Self::without_instances(client, config);
        let around = kubelets.around.clone();
        kubelets.tasks.spawn(follow(source, around));
        kubelets
    }

    /// Starts with no machine at all, for clusters of static nodes.
    pub fn without_instances(client: kube::Client, config: KubeletConfig) -> Self {
        let client =
            KubeletClient::new(client, config.requests_in_flight_max, config.clock.clone());
        let config = Arc::new(config);
        let (served, news) = mpsc::channel(NEWS_MAX);
        let around = Surroundings {
            client: client.clone(),
            config: Arc::clone(&config),
            served,
            refusals: Arc::new(Refusals::new()),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(Dispatcher::new(client, config).run(news));
        Self { tasks, around }
    }

    /// Adds a node that is no instance, and runs its pods.
    pub fn add_static_node(&mut self, node: StaticNode) {
        self.tasks.spawn(live_static(node, self.around.clone()));
    }

    /// Instances that never join, by id, and why.
    pub fn refusals(&self) -> BTreeMap<String, String> {
        self.around.refusals.all()
    }

    /// Announces the number of refusals whenever one is added.
    pub fn refusals_changed(&self) -> watch::Receiver<usize> {
        self.around.refusals.changes()
    }

    /// Ends all kubelets at once; their nodes stay as they are.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Starts a task for each instance and passes on what becomes of it.
async fn follow(source: Arc<dyn InstanceSource>, around: Surroundings) {
    let mut changes = source.changes();
    let mut known: HashMap<String, watch::Sender<Instance>> = HashMap::new();
    let mut lives = JoinSet::new();
    loop {
        changes.mark_unchanged();
        let listed = source.instances();
        let ids: std::collections::HashSet<&str> =
            listed.iter().map(|instance| instance.instance_id.as_str()).collect();
        known.retain(|id, _| ids.contains(id.as_str()));
        for instance in listed {
            if let Some(sender) = known.get(&instance.instance_id) {
                sender.send_if_modified(|seen| {
                    let differs = *seen != instance;
                    *seen = instance;
                    differs
                });
            } else {
                let id = instance.instance_id.clone();
                let (sender, receiver) = watch::channel(instance);
                lives.spawn(live(receiver, around.clone()));
                known.insert(id, sender);
            }
        }
        tokio::select! {
            outcome = changes.changed() => if outcome.is_err() { return },
            Some(ended) = lives.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "the task of a machine failed");
                }
            }
        }
    }
}
