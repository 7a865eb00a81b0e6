//! Copies of `longshore up` above one simulated cluster and one region.
//!
//! Invariant: each copy has credentials of its own, so that the region knows who called. Everything
//! ends with the stage.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use longshore_lab::instance::InstanceSource as _;
use longshore_lab::kubelet::{KubeletConfig, Kubelets, StaticNode};
use longshore_lab::region::{CLUSTER, CallRecord, Region, RegionConfig, RegionHandle};

use super::agreement::Books;
use super::home::Home;
use super::services::{Surroundings, access_key, callers};
use super::world::ROOT;
use super::{eyes, hands, ledger, up};
use crate::parts::{Process, page, poll};

/// How long a node may take to be there.
const START_LIMIT: Duration = Duration::from_secs(60);
/// What a copy logs before the address at which others may look on.
const LOOKED_AT: &str = "listening address=";
/// A node that is there before Longshore is: what the region is learned from.
const HOST: (&str, i64, i64) = ("fargate-ip-10-0-0-1", 500, 1 << 30);

/// Everything that runs. Fields are in the order in which they have to end.
pub struct Together {
    copies: Vec<Copy>,
    /// A client of the cluster with every right.
    pub client: Client,
    /// The region.
    pub region: Arc<RegionHandle>,
    /// Folder with the logs.
    pub dir: PathBuf,
    _kubelets: Kubelets,
    _home: Home,
}

/// One process that does everything.
pub struct Copy {
    /// Its name among the copies, and in the session of its role.
    pub name: String,
    /// The process.
    pub process: Process,
    metrics: SocketAddr,
}

impl Together {
    /// Starts this many copies, none of which is told the region.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(mut config: RegionConfig, copies: usize, dir: &Path) -> Result<Self> {
        let names: Vec<String> = (0..copies).map(|index| format!("copy-{index}")).collect();
        config.principals.extend(callers(&names));
        let (name, zone) = (config.name.clone(), config.zones[0].name.clone());
        let region = Arc::new(Region::start(config).await?);
        let home = Home::start(false, dir).await?;
        let client = home.client.clone();
        hands::apply(&client, &hands::manifests(&Path::new(ROOT).join("deploy/crds"))?).await?;
        hands::established(&client).await?;
        let kubelet = KubeletConfig::new(CLUSTER, &name);
        let mut kubelets = Kubelets::start(client.clone(), Arc::clone(&region) as _, kubelet);
        let (host, cpu_millis, memory_bytes) = HOST;
        kubelets.add_static_node(StaticNode::fargate(host, &zone, cpu_millis, memory_bytes));
        poll::until("the first node is there", START_LIMIT, || async {
            Api::<Node>::all(client.clone()).get(host).await.map(drop)
        })
        .await?;
        let mut running = Vec::new();
        for name in names {
            let around = Surroundings {
                access_key: access_key(&name),
                kubeconfig: home.kubeconfig.clone(),
                queue: CLUSTER.to_owned(),
                ..Surroundings::without_cluster(dir, "", &region.endpoint_url())
            };
            let command = up::command(&name, &around)?;
            let mut process = Process::start(&name, command, dir)?;
            let metrics = up::metrics(&mut process).await?;
            running.push(Copy { metrics, name, process });
        }
        Ok(Self {
            copies: running,
            client,
            region,
            dir: dir.to_owned(),
            _kubelets: kubelets,
            _home: home,
        })
    }

    /// The copy that works: the one that the cluster's Lease names.
    ///
    /// # Errors
    /// When no copy holds it.
    pub async fn working(&self) -> Result<usize> {
        let holder = eyes::lease_holder(&self.client).await?;
        let found = self.copies.iter().position(|copy| copy.name == holder);
        found.with_context(|| format!("the Lease is held by {holder:?}"))
    }

    /// One of the copies.
    ///
    /// # Errors
    /// When there is no such copy.
    pub fn copy(&self, index: usize) -> Result<&Copy> {
        self.copies.get(index).context("no such copy")
    }

    /// Kills a copy (SIGKILL) and waits until it is gone.
    ///
    /// # Errors
    /// When there is no such copy.
    pub fn kill(&mut self, index: usize) -> Result<()> {
        self.copies.get_mut(index).context("no such copy")?.process.kill()
    }

    /// Every call of AWS that a copy made.
    ///
    /// # Errors
    /// When there is no such copy.
    pub fn calls_by(&self, index: usize) -> Result<Vec<CallRecord>> {
        let session = format!("/{}", self.copy(index)?.name);
        let mut calls = self.region.calls();
        calls.retain(|call| call.principal.ends_with(&session));
        Ok(calls)
    }

    /// Instances, the working copy's ledger, NodeClaims and Nodes agree.
    ///
    /// # Errors
    /// When they do not; the message names every disagreement.
    pub async fn reconciled(&self) -> Result<()> {
        let log = self.copy(self.working().await?)?.process.log()?;
        let line = log.lines().find(|line| line.contains(LOOKED_AT));
        let region = up::address(line.context("it does not listen yet")?, LOOKED_AT)?;
        let instances = self.region.instances();
        let ledger = ledger::read(&format!("http://{region}")).await?;
        let claims = eyes::claims(&self.client).await?;
        let mut nodes = eyes::list(&self.client, "", "v1", "Node").await?;
        nodes.retain(|node| node.metadata.name.as_deref() != Some(HOST.0));
        Books { instances: &instances, ledger: &ledger, claims: &claims, nodes: &nodes }.agree()
    }
}

impl Copy {
    /// Body of a page of its metrics server.
    ///
    /// # Errors
    /// When it does not answer, or not with 200.
    pub async fn page(&self, path: &str) -> Result<String> {
        let (status, body) = page::get(self.metrics, path).await?;
        ensure!(status == 200, "{path}: {status} {body}");
        Ok(body)
    }
}
