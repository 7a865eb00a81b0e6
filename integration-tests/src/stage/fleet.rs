//! Services in numbers, any of which can be killed and started again: actuators that elect a leader
//! in a real etcd cluster, a scheduler, and watchers that share a Lease.
//!
//! Invariant: a service that is started again listens where it listened before, as behind a
//! Kubernetes Service. Everything ends with the fleet.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use kube::Client;
use longshore_lab::instance::InstanceSource as _;
use longshore_lab::kubelet::{KubeletConfig, Kubelets};
use longshore_lab::region::{CONTROLLER_KEY, Region, RegionConfig, RegionHandle};

use super::agreement::Books;
use super::home::Home;
use super::ledger::{self, Ledger};
use super::services::{Service, Surroundings};
use super::world::ROOT;
use super::{agreement, eyes, hands};
use crate::demo::audit;
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
    /// How many watchers run.
    pub watchers: usize,
    /// Folder for logs.
    pub dir: PathBuf,
}

/// Everything that runs. Fields are in the order in which they have to end.
pub struct Fleet {
    watchers: Vec<Watcher>,
    scheduler: Service,
    actuators: Vec<Service>,
    /// Where the actuators keep their ledger.
    pub etcd: EtcdCluster,
    /// A client of the cluster with every right.
    pub client: Client,
    /// The region.
    pub region: Arc<RegionHandle>,
    surroundings: Surroundings,
    starts: usize,
    _kubelets: Kubelets,
    _home: Home,
}

/// A watcher and its name, which a new life does not share with the one before, like a pod's.
struct Watcher {
    name: String,
    process: Process,
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
    pub async fn start(config: FleetConfig) -> Result<Self> {
        let region_name = config.region.name.clone();
        let region = Arc::new(Region::start(config.region).await?);
        let home = Home::start(config.real, &config.dir);
        let (home, etcd) = tokio::try_join!(home, EtcdCluster::start(ETCD_MEMBERS))?;
        let client = home.client.clone();
        hands::apply(&client, &hands::manifests(&Path::new(ROOT).join("deploy/crds"))?).await?;
        hands::established(&client).await?;
        let kubelet = KubeletConfig::new(&config.cluster, &region_name);
        let kubelets = Kubelets::start(client.clone(), Arc::clone(&region) as _, kubelet);
        let surroundings = Surroundings {
            dir: config.dir,
            region_url: region.endpoint_url(),
            region: region_name,
            access_key: CONTROLLER_KEY.to_owned(),
            queue: config.cluster.clone(),
            cluster: config.cluster,
            kubeconfig: home.kubeconfig.clone(),
            watcher_flags: Vec::new(),
            actuator_flags: Vec::new(),
            etcd: etcd.endpoints(),
            otlp: None,
        };
        let mut actuators = Vec::new();
        for index in 0..config.actuators {
            let name = format!("actuator-{index}");
            actuators.push(surroundings.start_actuator(&name, ANY_PORT).await?);
        }
        let urls: Vec<String> = actuators.iter().map(Service::url).collect();
        let scheduler = surroundings.start_scheduler(ANY_PORT, &urls).await?;
        let mut fleet = Self {
            watchers: Vec::new(),
            scheduler,
            actuators,
            etcd,
            client,
            region,
            surroundings,
            starts: 0,
            _kubelets: kubelets,
            _home: home,
        };
        for index in 0..config.watchers {
            let watcher = fleet.start_watcher(&format!("watcher-{index}"))?;
            fleet.watchers.push(watcher);
        }
        Ok(fleet)
    }

    /// URL of the scheduler.
    #[must_use]
    pub fn scheduler_url(&self) -> String {
        self.scheduler.url()
    }

    /// Folder with the logs of the services.
    #[must_use]
    pub fn log_dir(&self) -> &Path {
        &self.surroundings.dir
    }
}

/// Killing (SIGKILL) and starting again.
impl Fleet {
    /// Kills an actuator and waits until it is gone.
    ///
    /// # Errors
    /// When there is no such actuator.
    pub fn kill_actuator(&mut self, index: usize) -> Result<()> {
        self.actuators.get_mut(index).context("no such actuator")?.process.kill()
    }

    /// Starts a killed actuator again.
    ///
    /// # Errors
    /// When there is no such actuator, or it does not listen in time.
    pub async fn restart_actuator(&mut self, index: usize) -> Result<()> {
        let name = self.next_name(&format!("actuator-{index}"));
        let actuator = self.actuators.get_mut(index).context("no such actuator")?;
        *actuator = self.surroundings.start_actuator(&name, actuator.address).await?;
        Ok(())
    }

    /// Kills the scheduler and waits until it is gone.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn kill_scheduler(&mut self) -> Result<()> {
        self.scheduler.process.kill()
    }

    /// Starts a killed scheduler again.
    ///
    /// # Errors
    /// When it does not listen in time.
    pub async fn restart_scheduler(&mut self) -> Result<()> {
        let urls: Vec<String> = self.actuators.iter().map(Service::url).collect();
        let mut surroundings = self.surroundings.clone();
        // Its log has a fixed name: a folder for each life keeps them apart.
        surroundings.dir = surroundings.dir.join(self.next_name("scheduler"));
        std::fs::create_dir_all(&surroundings.dir)?;
        self.scheduler = surroundings.start_scheduler(self.scheduler.address, &urls).await?;
        Ok(())
    }

    /// Kills a watcher and waits until it is gone.
    ///
    /// # Errors
    /// When there is no such watcher.
    pub fn kill_watcher(&mut self, index: usize) -> Result<()> {
        self.watchers.get_mut(index).context("no such watcher")?.process.kill()
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

    fn start_watcher(&self, name: &str) -> Result<Watcher> {
        let mut surroundings = self.surroundings.clone();
        surroundings.watcher_flags.extend(["--identity".to_owned(), name.to_owned()]);
        let process = surroundings.start_watcher(name, &self.scheduler.url())?;
        Ok(Watcher { name: name.to_owned(), process })
    }

    fn next_name(&mut self, service: &str) -> String {
        self.starts += 1;
        format!("{service}-again-{}", self.starts)
    }
}

/// Looking.
impl Fleet {
    /// The actuator that leads, and its term.
    ///
    /// # Errors
    /// When none does; the message says what each answered.
    pub async fn leader(&self) -> Result<Leader> {
        let mut answers = Vec::new();
        for (index, service) in self.actuators.iter().enumerate() {
            match ledger::term(&service.url()).await {
                Ok(term) => return Ok(Leader { actuator: index, term }),
                Err(error) => answers.push(format!("actuator {index}: {error:#}")),
            }
        }
        Err(anyhow!("nobody leads: {}", answers.join("; ")))
    }

    /// The watcher that works: the one that the cluster's Lease names.
    ///
    /// # Errors
    /// When none of the fleet's watchers holds it.
    pub async fn working_watcher(&self) -> Result<usize> {
        let holder = eyes::lease_holder(&self.client).await?;
        let found = self.watchers.iter().position(|watcher| watcher.name == holder);
        found.with_context(|| format!("the Lease is held by {holder:?}"))
    }

    /// What the leading actuator reports.
    ///
    /// # Errors
    /// When none leads.
    pub async fn ledger(&self) -> Result<Ledger> {
        let leader = self.leader().await?;
        let service = self.actuators.get(leader.actuator).context("no such actuator")?;
        ledger::read(&service.url()).await
    }

    /// Instances, ledger, NodeClaims and Nodes agree; returns the counts over all instances.
    ///
    /// # Errors
    /// When they do not; the message names every disagreement.
    pub async fn reconciled(&self) -> Result<audit::Books> {
        let instances = self.region.instances();
        let ledger = self.ledger().await?;
        let claims = eyes::claims(&self.client).await?;
        let nodes = eyes::list(&self.client, "", "v1", "Node").await?;
        let books =
            Books { instances: &instances, ledger: &ledger, claims: &claims, nodes: &nodes };
        books.agree()?;
        let claimed: BTreeSet<String> = agreement::provider_ids(&claims).collect();
        Ok(audit::books(&instances, &claimed))
    }
}
