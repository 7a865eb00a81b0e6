//! A whole world: region, cluster, kubelets, trace receiver and the three services as processes.
//!
//! Invariant: everything ends with the world; nothing listens beyond the loopback interface.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use kube::Client;
use longshore_lab::kubelet::{KubeletConfig, Kubelets};
use longshore_lab::region::{CONTROLLER_KEY, Region, RegionConfig, RegionHandle};

use super::hands;
use super::home::Home;
use super::keys::Keys;
use super::rights::Rights;
use super::services::{Service, Surroundings};
use crate::parts::Process;
use crate::trace::receiver::TraceReceiver;

/// Top of the checkout.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// How long a service may take to end after it was asked to.
const STOP_LIMIT: Duration = Duration::from_secs(15);
/// A port picked by the system.
const ANY_PORT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// What a world is made of.
pub struct WorldConfig {
    /// The region, with its roles, images and timing.
    pub region: RegionConfig,
    /// Name of the cluster.
    pub cluster: String,
    /// True for a real control plane, false for the simulated cluster.
    pub real: bool,
    /// Access key of the controller: decides which role it acts as.
    pub access_key: String,
    /// True when nodes run a driver that lists their devices.
    pub lists_devices: bool,
    /// Images on which nodes never turn ready.
    pub sick_images: BTreeSet<String>,
    /// Name of the interruption queue; empty for none.
    pub queue: String,
    /// Further flags of the watcher.
    pub watcher_flags: Vec<String>,
    /// Further flags of the actuator.
    pub actuator_flags: Vec<String>,
    /// Actuators besides the world's own that the scheduler knows, by URL; they may come later.
    pub more_actuators: Vec<String>,
    /// Folder for logs.
    pub dir: PathBuf,
}

impl WorldConfig {
    /// A simulated cluster in this region, with a controller that may do everything.
    #[must_use]
    pub fn new(region: RegionConfig, cluster: &str, dir: &Path) -> Self {
        Self {
            region,
            cluster: cluster.to_owned(),
            real: false,
            access_key: CONTROLLER_KEY.to_owned(),
            lists_devices: false,
            sick_images: BTreeSet::new(),
            queue: cluster.to_owned(),
            watcher_flags: Vec::new(),
            actuator_flags: Vec::new(),
            more_actuators: Vec::new(),
            dir: dir.to_owned(),
        }
    }
}

/// Everything that runs.
pub struct World {
    /// The region.
    pub region: Arc<RegionHandle>,
    /// A client of the cluster with every right.
    pub client: Client,
    /// A kubeconfig with every right.
    pub admin: PathBuf,
    /// What the watcher may do, on a real control plane.
    pub rights: Option<Rights>,
    /// By what its processes know each other.
    pub keys: Keys,
    /// Where traces arrive.
    pub traces: TraceReceiver,
    /// How the services find the world, for starting more of them.
    pub surroundings: Surroundings,
    /// The actuator.
    pub actuator: Service,
    /// The scheduler.
    pub scheduler: Service,
    /// The watcher.
    pub watcher: Process,
    _kubelets: Kubelets,
    _home: Home,
}

impl World {
    /// Starts everything; our kinds are installed in the cluster.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(config: WorldConfig) -> Result<Self> {
        std::fs::create_dir_all(&config.dir)?;
        let region_name = config.region.name.clone();
        let region = Arc::new(Region::start(config.region).await?);
        let home = Home::start(config.real, &config.dir).await?;
        let client = home.client.clone();
        hands::apply(&client, &hands::manifests(&Path::new(ROOT).join("deploy/crds"))?).await?;
        hands::established(&client).await?;
        let mut kubelet = KubeletConfig::new(&config.cluster, &region_name);
        kubelet.lists_devices = config.lists_devices;
        kubelet.sick_images = config.sick_images;
        let kubelets = Kubelets::start(client.clone(), Arc::clone(&region) as _, kubelet);
        let traces = TraceReceiver::start().await?;
        let keys = Keys::new(&config.dir)?;
        let surroundings = Surroundings {
            dir: config.dir,
            region_url: region.endpoint_url(),
            region: region_name,
            access_key: config.access_key,
            cluster: config.cluster,
            kubeconfig: home.account.clone(),
            queue: config.queue,
            watcher_flags: config.watcher_flags,
            actuator_flags: config.actuator_flags,
            scheduler_flags: Vec::new(),
            etcd: Vec::new(),
            otlp: Some(traces.endpoint().to_owned()),
            keys: Some(keys.clone()),
            ahead_s: BTreeMap::new(),
        };
        let actuator = surroundings.start_actuator("longshore-actuator", ANY_PORT).await?;
        let actuators = [vec![actuator.url()], config.more_actuators].concat();
        let scheduler = surroundings.start_scheduler(ANY_PORT, &actuators).await?;
        let watcher = surroundings.start_watcher("longshore-watcher", &scheduler.url())?;
        Ok(Self {
            region,
            client,
            admin: home.kubeconfig.clone(),
            rights: home.rights.clone(),
            keys,
            traces,
            surroundings,
            actuator,
            scheduler,
            watcher,
            _kubelets: kubelets,
            _home: home,
        })
    }

    /// An error with the end of its log when a service has ended.
    ///
    /// # Errors
    /// When a service has ended.
    pub fn ensure_running(&mut self) -> Result<()> {
        self.actuator.process.ensure_running()?;
        self.scheduler.process.ensure_running()?;
        self.watcher.ensure_running()
    }

    /// Ends the services in order, so that each flushes its spans.
    ///
    /// # Errors
    /// When one does not end.
    pub async fn stop_services(&mut self) -> Result<()> {
        let all = [&mut self.watcher, &mut self.scheduler.process, &mut self.actuator.process];
        for process in all {
            process.terminate()?;
            process.wait_for_exit(STOP_LIMIT).await?;
        }
        Ok(())
    }
}
