//! The services and their lives: started with what their `main` would hand them.
//!
//! Invariant: a service knows the world through its platform, its clients and its arguments only.

use std::sync::{Arc, Mutex};

use longshore_actuator::policy::PolicyArgs;
use longshore_actuator::{EtcdArgs, Sharing, Tuning};
use longshore_runtime::metrics::Metrics;
use longshore_runtime::server::AccessArgs;
use longshore_watcher::Config;
use longshore_watcher::counters::Counters;
use longshore_watcher::service::Watcher;

use super::{SCHEDULERS, Site, World};
use crate::apiserver::Road;
use crate::cloud::CloudClient;
use crate::process::{Machine, Process, spawn};
use crate::random::Random;

/// What a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An actuator of a site.
    Actuator {
        /// Index of the site.
        site: usize,
    },
    /// A scheduler.
    Scheduler,
    /// The watcher of a cluster.
    Watcher {
        /// Index of the cluster.
        cluster: usize,
    },
    /// All three of a cluster, in one process.
    Standalone {
        /// Index of the cluster.
        cluster: usize,
    },
}

/// A service and its present life.
pub struct Service {
    /// What it runs on.
    pub machine: Machine,
    /// What it is.
    pub kind: Kind,
    /// Choices made on its behalf.
    pub random: Arc<Mutex<Random>>,
    /// Its present life, when it has one.
    pub process: Option<Process>,
}

impl World {
    /// Begins a life of a service, after the end of the one before.
    pub fn boot(&mut self, index: usize) {
        self.kill(index);
        let process = self.services[index].machine.boot();
        self.journal.note(&format!("{} starts", self.services[index].machine.name));
        let outcome = match self.services[index].kind {
            Kind::Actuator { site } => self.start_actuator(index, site, &process),
            Kind::Scheduler => self.start_scheduler(index, &process),
            Kind::Watcher { cluster } => {
                self.start_watcher(index, cluster, &process);
                Ok(())
            }
            Kind::Standalone { cluster } => {
                self.start_standalone(index, cluster, &process);
                Ok(())
            }
        };
        if let Err(error) = outcome {
            self.journal.note(&format!("cannot start: {error:#}"));
        }
        self.services[index].process = Some(process);
    }

    /// Ends the life of a service at once.
    pub fn kill(&mut self, index: usize) {
        let service = &mut self.services[index];
        if let Some(process) = service.process.take() {
            service.machine.kill(&process);
        }
    }

    /// Stops a service as SIGSTOP does, or lets it go on.
    pub fn stop(&self, index: usize, stopped: bool) {
        let service = &self.services[index];
        if let Some(process) = &service.process {
            service.machine.stop(process, stopped);
        }
    }

    /// Services that have ended by themselves.
    #[must_use]
    pub fn ended(&self) -> Vec<usize> {
        let ended = |service: &Service| service.process.as_ref().is_some_and(Process::has_ended);
        let services = self.services.iter().enumerate();
        services.filter(|(_, service)| ended(service)).map(|(index, _)| index).collect()
    }

    fn start_actuator(&self, index: usize, site: usize, process: &Process) -> anyhow::Result<()> {
        let service = &self.services[index];
        let site = &self.sites[site];
        let config = longshore_actuator::Config {
            region: site.region.with(|model, _| model.config.name.clone()),
            listen: service.machine.address(),
            metrics_listen: None,
            etcd: EtcdArgs { endpoints: site.etcd.endpoints(), ..EtcdArgs::default() },
            advertise: Some(service.machine.url()),
            lease_seconds: 3,
            access: AccessArgs::default(),
            policy: PolicyArgs::default(),
            tuning: Tuning {
                inventory_interval: std::time::Duration::from_secs(5),
                interruption_queue: None,
                sharing: Sharing::All,
            },
        };
        let listener = self.net.listen(service.machine.address());
        let (cloud, metrics) = (Arc::new(self.cloud_of(index, site)), Metrics::new());
        longshore_actuator::start_with(config, listener, cloud, &metrics, &process.supervisor)
            .map(drop)
    }

    fn start_scheduler(&self, index: usize, process: &Process) -> anyhow::Result<()> {
        let service = &self.services[index];
        let actuator = |service: &&Service| matches!(service.kind, Kind::Actuator { .. });
        let actuators = self.services.iter().filter(actuator);
        let config = longshore_scheduler::args::Config {
            actuator_endpoints: actuators.map(|service| service.machine.url()).collect(),
            settings: longshore_scheduler::settings::Settings::default(),
            memory_mib: longshore_scheduler::memory::MIB_DEFAULT,
            access: AccessArgs::default(),
        };
        let listener = self.net.listen(service.machine.address());
        longshore_scheduler::start(config, listener, &process.supervisor)
    }

    fn start_watcher(&self, index: usize, cluster: usize, process: &Process) {
        let road = self.road_of(index, cluster, process);
        let config = self.watcher_config(index, cluster, &format!("http://{SCHEDULERS}"));
        let supervisor = process.supervisor.clone();
        spawn(&process.gate, async move {
            let client = road.client();
            let started = Watcher::start_with(config, client, &supervisor, Counters::default());
            if let Err(error) = started.await {
                tracing::error!(%error, "the watcher does not start");
                supervisor.token().cancel();
            }
        });
    }

    /// A service's way to the region of a site.
    pub(super) fn cloud_of(&self, index: usize, site: &Site) -> CloudClient {
        let service = &self.services[index];
        CloudClient {
            region: site.region.clone(),
            weather: site.weather.clone(),
            net: self.net.clone(),
            host: service.machine.host,
            address: site.address,
            random: Arc::clone(&service.random),
        }
    }

    /// A service's way to the API server of a cluster.
    pub(super) fn road_of(&self, index: usize, cluster: usize, process: &Process) -> Road {
        let (service, cluster) = (&self.services[index], &self.clusters[cluster]);
        Road {
            server: cluster.handle.service(),
            weather: cluster.weather.clone(),
            net: self.net.clone(),
            host: service.machine.host,
            address: cluster.address,
            gate: process.gate.clone(),
            label: cluster.label.clone(),
            identity: service.machine.name.clone(),
            judge: self.judge.clone(),
            random: Arc::clone(&service.random),
        }
    }

    /// What the watcher of a cluster is told.
    pub(super) fn watcher_config(&self, index: usize, cluster: usize, scheduler: &str) -> Config {
        let cluster = &self.clusters[cluster];
        let site = &self.sites[cluster.site].region;
        let (region, account) =
            site.with(|model, _| (model.config.name.clone(), model.config.account_id.clone()));
        let mut config = Config::new(&cluster.name, scheduler);
        config.region = region;
        config.account_id = account;
        config.identity.clone_from(&self.services[index].machine.name);
        config.cluster_endpoint = "https://api.sim.eks.amazonaws.com".to_owned();
        config.interruption_queue = "sim".to_owned();
        config
    }
}
