//! One simulated cluster and region, and the three programs that may serve them.
//!
//! Invariant: each program is the shipped one in a process of its own and keeps its address when it
//! is started again; all of it ends with the stand.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::Client;
use longshore_lab::cluster::{Cluster, ClusterConfig, ClusterHandle};
use longshore_lab::kubelet::{KubeletConfig, Kubelets};
use longshore_lab::region::{CLUSTER, Region, RegionConfig, RegionHandle};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use super::ClusterArgs;
use crate::parts::{Process, poll};
use crate::stage::services::{Service, Surroundings};
use crate::stage::world::ROOT;
use crate::stage::{crowd, hands};

/// The region.
const REGION: &str = "us-east-1";
/// Changes that the API server remembers of a resource: more than there are writes of pods.
const HISTORY: usize = 1_000_000;
/// What the scheduler writes once it has a cluster.
const WHOLE: &str = "view is whole";
/// What it writes of each plan that does something.
const PLAN: &str = "packing computed";
/// A port picked by the system.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Longest wait for anything.
pub const LIMIT: Duration = Duration::from_secs(900);

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// longshore-watcher.
    Watcher,
    /// longshore-scheduler.
    Scheduler,
    /// longshore-actuator.
    Actuator,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Watcher, Self::Scheduler, Self::Actuator];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Watcher => "watcher",
            Self::Scheduler => "scheduler",
            Self::Actuator => "actuator",
        }
    }
}

/// A plan, as the scheduler writes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Pods that have a place.
    pub pods: u64,
    /// Launches that wait for more pods.
    pub held: u64,
    /// Pods without a place.
    pub unplaced: u64,
}

/// Everything that runs. Fields are in the order in which they have to end.
pub struct Stand {
    watcher: Option<Process>,
    scheduler: Service,
    actuator: Service,
    around: Surroundings,
    _kubelets: Option<Kubelets>,
    /// The cluster.
    pub cluster: ClusterHandle,
    /// A client that calls its API server within this process.
    pub client: Client,
    _region: Arc<RegionHandle>,
    _dir: TempDir,
}

impl Stand {
    /// Starts everything but the watcher; with kubelets, instances turn into nodes. A class and a
    /// pool are there.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(args: &ClusterArgs, kubelets: bool) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let logs = args.logs.clone().unwrap_or_else(|| PathBuf::from(dir.path()));
        std::fs::create_dir_all(&logs)?;
        let region = Arc::new(Region::start(RegionConfig::simple(REGION)?).await?);
        let config = ClusterConfig {
            name: CLUSTER.to_owned(),
            history_per_resource: HISTORY,
            // Pods are bound by whoever fills the cluster.
            scheduler: false,
            controllers: false,
            ..ClusterConfig::default()
        };
        let cluster = Cluster::start(config).await?;
        let client = cluster.in_process_client();
        hands::apply(&client, &hands::manifests(&Path::new(ROOT).join("deploy/crds"))?).await?;
        hands::established(&client).await?;
        hands::apply(&client, &crowd::supply(&requirements())).await?;
        let join = || {
            let config = KubeletConfig::new(CLUSTER, REGION);
            Kubelets::start(client.clone(), Arc::clone(&region) as _, config)
        };
        let kubelets = kubelets.then(join);
        let kubeconfig = dir.path().join("kubeconfig");
        std::fs::write(&kubeconfig, cluster.kubeconfig_text())?;
        let plain = Surroundings::without_cluster(&logs, REGION, &region.endpoint_url());
        // As the chart has it: a container that is started again is called as before.
        let watcher_flags = ["--identity", Program::Watcher.name()].map(str::to_owned).to_vec();
        let around = Surroundings { kubeconfig, watcher_flags, ..plain };
        let actuator = around.start_actuator(Program::Actuator.name(), ANY_PORT).await?;
        let scheduler = around.start_scheduler(ANY_PORT, &[actuator.url()]).await?;
        Ok(Self {
            watcher: None,
            scheduler,
            actuator,
            around,
            _kubelets: kubelets,
            cluster,
            client,
            _region: region,
            _dir: dir,
        })
    }

    /// Starts a program, where it was before.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_program(&mut self, program: Program) -> Result<()> {
        match program {
            Program::Watcher => {
                let name = Program::Watcher.name();
                self.watcher = Some(self.around.start_watcher(name, &self.scheduler.url())?);
            }
            Program::Scheduler => {
                let (address, actuators) = (self.scheduler.address, [self.actuator.url()]);
                self.scheduler = self.around.start_scheduler(address, &actuators).await?;
            }
            Program::Actuator => {
                let address = self.actuator.address;
                self.actuator =
                    self.around.start_actuator(Program::Actuator.name(), address).await?;
            }
        }
        Ok(())
    }

    /// The process of a program.
    ///
    /// # Errors
    /// When it has not been started.
    pub fn process(&mut self, program: Program) -> Result<&mut Process> {
        match program {
            Program::Watcher => self.watcher.as_mut().context("the watcher is not started"),
            Program::Scheduler => Ok(&mut self.scheduler.process),
            Program::Actuator => Ok(&mut self.actuator.process),
        }
    }

    /// Waits until the scheduler has the whole cluster.
    ///
    /// # Errors
    /// When it has not in time, or ends.
    pub async fn whole(&mut self) -> Result<()> {
        self.scheduler.process.wait_for_line(WHOLE, LIMIT).await.map(drop)
    }

    /// Waits for a plan of which this is true.
    ///
    /// # Errors
    /// When there is none in time, or a program ends; the error names the last plan.
    pub async fn planned(&mut self, is_wanted: impl Fn(Planned) -> bool) -> Result<Planned> {
        let (scheduler, mut watcher) = (&mut self.scheduler.process, self.watcher.as_mut());
        poll::until("the scheduler has made its plan", LIMIT, || {
            let found = plans(scheduler).and_then(|plans| {
                watcher.as_mut().map_or(Ok(()), |watcher| watcher.ensure_running())?;
                let wanted = plans.iter().copied().find(|plan| is_wanted(*plan));
                wanted
                    .with_context(|| format!("{} plans, the last {:?}", plans.len(), plans.last()))
            });
            async move { found }
        })
        .await
    }

    /// Waits until a node is there and there is a plan of which this is true, and says when each
    /// was seen first.
    ///
    /// # Errors
    /// When one does not come in time, or a program ends; the error names the last plan.
    pub async fn back(&mut self, is_wanted: impl Fn(Planned) -> bool) -> Result<[Instant; 2]> {
        let (scheduler, cluster) = (&mut self.scheduler.process, &self.cluster);
        let (mut node, mut plan) = (None, None);
        poll::until("nodes and a plan for all", LIMIT, || {
            let mut nodes = 0;
            cluster.visit("nodes", |_| nodes += 1);
            let found = plans(scheduler);
            if nodes > 0 {
                node.get_or_insert_with(Instant::now);
            }
            if found.iter().flatten().any(|plan| is_wanted(*plan)) {
                plan.get_or_insert_with(Instant::now);
            }
            let (node, plan) = (node, plan);
            async move {
                let plans = found?;
                let last = || format!("{nodes} nodes, {} plans, {:?}", plans.len(), plans.last());
                Ok::<_, anyhow::Error>([node.with_context(last)?, plan.with_context(last)?])
            }
        })
        .await
    }
}

/// What the pool may buy: what users of large clusters have.
fn requirements() -> [Value; 3] {
    let requirement = |key: &str, operator: &str, values: &[&str]| json!({ "key": key, "operator": operator, "values": values });
    [
        requirement("karpenter.sh/capacity-type", "In", &["on-demand"]),
        requirement("karpenter.k8s.aws/instance-category", "In", &["c", "m", "r"]),
        requirement("karpenter.k8s.aws/instance-generation", "Gt", &["2"]),
    ]
}

/// The plans of which a scheduler has written since its start.
fn plans(scheduler: &mut Process) -> Result<Vec<Planned>> {
    scheduler.ensure_running()?;
    Ok(scheduler.log()?.lines().filter_map(planned).collect())
}

/// A plan of a line of the scheduler's log.
fn planned(line: &str) -> Option<Planned> {
    let number = |name: &str| -> Option<u64> {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name))?;
        word.parse().ok()
    };
    let (pods, held, unplaced) = (number("pods=")?, number("held=")?, number("unplaced=")?);
    line.contains(PLAN).then_some(Planned { pods, held, unplaced })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_from_the_log() {
        let line = "INFO session: pods batched, packing computed plan_id=\"7\" pods=300 launches=2 \
                    held=1 price_micro_usd_per_hour=5 unplaced=0 disrupted=0";
        assert_eq!(planned(line), Some(Planned { pods: 300, held: 1, unplaced: 0 }));
        assert_eq!(planned("INFO session: view is whole pods=1 held=0 unplaced=0"), None);
    }
}
