//! Services in numbers, any of which can be killed, frozen and started again: actuators that elect
//! a leader in a real etcd cluster, schedulers behind one address, and watchers that share a Lease.
//!
//! Invariant: a service that is started again listens where it listened before, as behind a
//! Kubernetes Service. They reach each other, and everything else, through proxies. Everything ends
//! with the fleet.

mod looking;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use kube::Client;
use longshore_lab::kubelet::{KubeletConfig, Kubelets};
use longshore_lab::region::{CONTROLLER_KEY, Region, RegionConfig, RegionHandle};

use super::edges::Edges;
use super::hands;
use super::home::Home;
use super::services::{self, Service, Surroundings};
use super::world::ROOT;
use crate::parts::{EtcdCluster, Process};

/// Members of the etcd cluster: the fewest of which one may be lost.
pub const ETCD_MEMBERS: usize = 3;
/// A port picked by the system.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What a fleet is made of.
pub struct FleetConfig {
    /// The region.
    pub region: RegionConfig,
    /// Name of the cluster.
    pub cluster: String,
    /// True for a real control plane, false for the simulated cluster.
    pub real: bool,
    /// How many actuators run.
    pub actuators: usize,
    /// Further flags of actuators.
    pub actuator_flags: Vec<String>,
    /// How many schedulers run.
    pub schedulers: usize,
    /// How many watchers run.
    pub watchers: usize,
    /// Folder for logs.
    pub dir: PathBuf,
}

impl FleetConfig {
    /// One of each service, above a simulated cluster in this region.
    #[must_use]
    pub fn new(region: RegionConfig, cluster: &str, dir: &Path) -> Self {
        Self {
            region,
            cluster: cluster.to_owned(),
            real: false,
            actuators: 1,
            actuator_flags: Vec::new(),
            schedulers: 1,
            watchers: 1,
            dir: dir.to_owned(),
        }
    }
}

/// Everything that runs. Fields are in the order in which they have to end.
pub struct Fleet {
    watchers: Vec<Watcher>,
    schedulers: Vec<Service>,
    actuators: Vec<Actuator>,
    /// Where the actuators keep their ledger.
    pub etcd: EtcdCluster,
    /// A client of the cluster with every right.
    pub client: Client,
    /// The region.
    pub region: Arc<RegionHandle>,
    /// The roads between all of them.
    pub edges: Edges,
    surroundings: Surroundings,
    scheduler_url: String,
    starts: usize,
    _kubelets: Kubelets,
    _home: Home,
}

/// A watcher and its name, which a new life does not share with the one before, like a pod's.
struct Watcher {
    name: String,
    process: Process,
}

/// An actuator, and what all of its lives have in common.
struct Actuator {
    surroundings: Surroundings,
    service: Service,
    /// Where the schedulers reach it.
    url: String,
}

/// The actuator that leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Which one.
    pub actuator: usize,
    /// Its term.
    pub term: u64,
}

impl Fleet {
    /// Starts everything; our kinds are installed in the cluster.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(mut config: FleetConfig) -> Result<Self> {
        let names: Vec<String> = (0..config.actuators).map(actuator_name).collect();
        config.region.principals.extend(services::callers(&names));
        let region_name = config.region.name.clone();
        let region = Arc::new(Region::start(config.region).await?);
        let home = Home::start(config.real, &config.dir);
        let (home, etcd) = tokio::try_join!(home, EtcdCluster::start(ETCD_MEMBERS))?;
        let client = home.client.clone();
        hands::apply(&client, &hands::manifests(&Path::new(ROOT).join("deploy/crds"))?).await?;
        hands::established(&client).await?;
        let kubelet = KubeletConfig::new(&config.cluster, &region_name);
        let kubelets = Kubelets::start(client.clone(), Arc::clone(&region) as _, kubelet);
        let mut edges = Edges::default();
        let surroundings = Surroundings {
            region_url: edges.towards_ec2(&region.endpoint_url()).await?,
            region: region_name,
            access_key: CONTROLLER_KEY.to_owned(),
            queue: config.cluster.clone(),
            cluster: config.cluster,
            kubeconfig: edges.towards_api_server(&home.kubeconfig, &config.dir).await?,
            dir: config.dir,
            watcher_flags: Vec::new(),
            actuator_flags: config.actuator_flags,
            scheduler_flags: Vec::new(),
            etcd: Vec::new(),
            otlp: None,
            keys: None,
            ahead_s: BTreeMap::new(),
        };
        let mut fleet = Self {
            watchers: Vec::new(),
            schedulers: Vec::new(),
            actuators: Vec::new(),
            etcd,
            client,
            region,
            edges,
            surroundings,
            scheduler_url: String::new(),
            starts: 0,
            _kubelets: kubelets,
            _home: home,
        };
        fleet.start_services(&names, config.schedulers, config.watchers).await?;
        Ok(fleet)
    }

    async fn start_services(
        &mut self,
        actuators: &[String],
        schedulers: usize,
        watchers: usize,
    ) -> Result<()> {
        for name in actuators {
            let mut surroundings = self.surroundings.clone();
            surroundings.access_key = services::access_key(name);
            surroundings.etcd = self.edges.towards_etcd(&self.etcd).await?;
            let service = surroundings.start_actuator(name, ANY_PORT).await?;
            let url = self.edges.towards_actuator(&service).await?;
            self.actuators.push(Actuator { surroundings, service, url });
        }
        for index in 0..schedulers {
            let scheduler = self.start_scheduler(&format!("scheduler-{index}"), ANY_PORT).await?;
            self.schedulers.push(scheduler);
        }
        self.scheduler_url = self.edges.towards_schedulers(&self.schedulers).await?;
        for index in 0..watchers {
            let watcher = self.start_watcher(&format!("watcher-{index}"))?;
            self.watchers.push(watcher);
        }
        Ok(())
    }

    /// URL of the schedulers.
    #[must_use]
    pub fn scheduler_url(&self) -> String {
        self.scheduler_url.clone()
    }

    /// Folder with the logs of the services.
    #[must_use]
    pub fn log_dir(&self) -> &Path {
        &self.surroundings.dir
    }
}

/// Single processes.
impl Fleet {
    /// An actuator.
    ///
    /// # Errors
    /// When there is no such actuator.
    pub fn actuator(&mut self, index: usize) -> Result<&mut Process> {
        let actuator = self.actuators.get_mut(index).context("no such actuator")?;
        Ok(&mut actuator.service.process)
    }

    /// A scheduler.
    ///
    /// # Errors
    /// When there is no such scheduler.
    pub fn scheduler(&mut self, index: usize) -> Result<&mut Process> {
        Ok(&mut self.schedulers.get_mut(index).context("no such scheduler")?.process)
    }

    /// A watcher.
    ///
    /// # Errors
    /// When there is no such watcher.
    pub fn watcher(&mut self, index: usize) -> Result<&mut Process> {
        Ok(&mut self.watchers.get_mut(index).context("no such watcher")?.process)
    }
}

/// Starting again what has ended.
impl Fleet {
    /// Lets the wall clock of a program be this many seconds ahead from its next start on, or exact
    /// for 0.
    pub fn set_clock(&mut self, program: &str, ahead_s: i64) {
        let actuators = self.actuators.iter_mut().map(|actuator| &mut actuator.surroundings);
        for surroundings in actuators.chain([&mut self.surroundings]) {
            surroundings.ahead_s.insert(program.to_owned(), ahead_s);
            surroundings.ahead_s.retain(|_, ahead_s| *ahead_s != 0);
        }
    }

    /// Starts a killed actuator again.
    ///
    /// # Errors
    /// When there is no such actuator, or it does not listen in time.
    pub async fn restart_actuator(&mut self, index: usize) -> Result<()> {
        let name = self.next_name(&actuator_name(index));
        let actuator = self.actuators.get_mut(index).context("no such actuator")?;
        let address = actuator.service.address;
        actuator.service = actuator.surroundings.start_actuator(&name, address).await?;
        Ok(())
    }

    /// Starts a killed scheduler again.
    ///
    /// # Errors
    /// When it does not listen in time.
    pub async fn restart_scheduler(&mut self, index: usize) -> Result<()> {
        let name = self.next_name(&format!("scheduler-{index}"));
        let address = self.schedulers.get(index).context("no such scheduler")?.address;
        let started = self.start_scheduler(&name, address).await?;
        *self.schedulers.get_mut(index).context("no such scheduler")? = started;
        Ok(())
    }

    /// Starts a killed watcher again.
    ///
    /// # Errors
    /// When there is no such watcher, or the program cannot be started.
    pub fn restart_watcher(&mut self, index: usize) -> Result<()> {
        let name = self.next_name(&format!("watcher-{index}"));
        let started = self.start_watcher(&name)?;
        *self.watchers.get_mut(index).context("no such watcher")? = started;
        Ok(())
    }

    async fn start_scheduler(&self, name: &str, listen: SocketAddr) -> Result<Service> {
        self.surroundings.start_scheduler_as(name, listen, &self.actuator_urls()).await
    }

    fn start_watcher(&self, name: &str) -> Result<Watcher> {
        let mut surroundings = self.surroundings.clone();
        surroundings.watcher_flags.extend(["--identity".to_owned(), name.to_owned()]);
        let process = surroundings.start_watcher(name, &self.scheduler_url)?;
        Ok(Watcher { name: name.to_owned(), process })
    }

    fn next_name(&mut self, service: &str) -> String {
        self.starts += 1;
        format!("{service}-again-{}", self.starts)
    }
}

fn actuator_name(index: usize) -> String {
    format!("actuator-{index}")
}
