//! What users do all the while: deploy, scale, set budgets, change limits, delete.
//!
//! Invariant: through the API with an undisturbed client, at times and in amounts out of the seed.
//! What they ask for can always be had: what is at rest has all pods bound.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::journal::Journal;
use crate::random::Random;
use crate::verdict::Judge;

/// Workloads of a cluster.
pub const WORKLOADS: usize = 5;
/// Sizes of pods: thousandths of a CPU, MiB of memory.
const SIZES: [(u64, u64); 5] = [(250, 512), (500, 1024), (1000, 2048), (1500, 6144), (3000, 4096)];
/// The workload whose pods take most of their grace to stop.
const SLOW: usize = 4;
/// How long these take.
const SLOWLY: &str = "25s";
/// Pause between two deeds of a cluster's users, shortest and longest, in seconds.
const PAUSE_S: (u64, u64) = (20, 90);

/// The users of one cluster.
pub struct Users {
    cluster: Arc<Cluster>,
    random: Random,
    judge: Judge,
    journal: Journal,
    replicas: Vec<u64>,
}

impl Users {
    /// The users of a cluster, who want about this many pods.
    #[must_use]
    pub fn new(
        cluster: &Arc<Cluster>,
        seed: u64,
        (pods, judge): (u64, &Judge),
        journal: &Journal,
    ) -> Self {
        let random = Random::stream(seed, &format!("users/{}", cluster.label));
        let each = pods / u64::try_from(WORKLOADS).unwrap_or(1);
        Self {
            cluster: Arc::clone(cluster),
            random,
            judge: judge.clone(),
            journal: journal.clone(),
            replicas: vec![each; WORKLOADS],
        }
    }

    /// Acts until the time is over.
    pub async fn act(mut self, until: tokio::time::Instant) {
        for index in 0..WORKLOADS {
            self.deploy(index).await;
        }
        loop {
            let pause = Duration::from_secs(self.random.between(PAUSE_S.0, PAUSE_S.1));
            if tokio::time::Instant::now() + pause >= until {
                return;
            }
            tokio::time::sleep(pause).await;
            match self.random.between(0, 9) {
                0..=5 => self.scale().await,
                6 => self.budget().await,
                7 => self.limits().await,
                _ => self.delete_a_claim().await,
            }
        }
    }

    async fn scale(&mut self) {
        let index = self.random.index(WORKLOADS);
        self.replicas[index] = self.random.between(0, 2 * self.replicas[index].max(10));
        self.replicas[index] = self.replicas[index].min(60);
        self.deploy(index).await;
    }

    async fn deploy(&self, index: usize) {
        let replicas = self.replicas[index];
        self.note(&format!("scale app-{index} to {replicas}"));
        self.did(self.cluster.apply(deployment(index, replicas)).await);
    }

    async fn budget(&mut self) {
        let index = self.random.index(WORKLOADS);
        let allowed = self.random.between(1, 3);
        self.note(&format!("allow {allowed} of app-{index} to be away"));
        let budget = json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": { "name": format!("app-{index}"), "namespace": "default" },
            "spec": {
                "maxUnavailable": allowed,
                "selector": { "matchLabels": { "app": format!("app-{index}") } },
            },
        });
        self.did(self.cluster.apply(budget).await);
    }

    async fn limits(&mut self) {
        let cpu = self.random.between(400, 800);
        self.note(&format!("limit the pool to {cpu} CPUs"));
        let pool = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": { "name": "default" },
            "spec": { "limits": { "cpu": cpu.to_string() } },
        });
        self.did(self.cluster.merge_pool(pool).await);
    }

    async fn delete_a_claim(&mut self) {
        let api = self.cluster.karpenter("NodeClaim");
        let Ok(claims) = api.list(&ListParams::default()).await else { return };
        let names: Vec<String> =
            claims.items.into_iter().filter_map(|claim| claim.metadata.name).collect();
        let Some(name) = self.random.one(&names) else { return };
        self.journal.note(&format!("users of {}: delete claim {name}", self.cluster.label));
        self.judge.user_deletes(&self.cluster.label, name);
        self.did(api.delete(name, &DeleteParams::default()).await.map(drop).map_err(Into::into));
    }

    fn note(&self, text: &str) {
        self.journal.note(&format!("users of {}: {text}", self.cluster.label));
    }

    fn did(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.note(&format!("refused: {error:#}"));
        }
    }
}

/// The workload of a number, so large.
#[must_use]
pub fn deployment(index: usize, replicas: u64) -> Value {
    let (cpu, memory) = SIZES[index % SIZES.len()];
    let labels = json!({ "app": format!("app-{index}") });
    let stops = (index == SLOW).then(|| json!({ longshore_lab::kubelet::STOPS_AFTER: SLOWLY }));
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": format!("app-{index}"), "namespace": "default" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels, "annotations": stops },
                "spec": {
                    "containers": [{
                        "name": "main",
                        "image": "app",
                        "resources": { "requests": {
                            "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi"),
                        } },
                    }],
                },
            },
        },
    })
}
