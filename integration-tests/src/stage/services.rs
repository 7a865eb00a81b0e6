//! The three services as child processes.
//!
//! Invariant: every port is picked by the system and read from the service's own log.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use longshore_lab::region::{ACCOUNT, CONTROLLER_ROLE, PrincipalConfig};
use longshore_runtime::identity::Identity;

use crate::parts::binary::workspace_command;
use crate::parts::process::Process;
use crate::parts::skew;
use crate::stage::keys::{CLIENT_RIGHTS, Keys};

/// How long a service may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(60);
/// What a service logs once it listens.
const LISTENING: &str = "listening address=";

/// Where the services find the world, and how they present themselves.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Folder for logs.
    pub dir: PathBuf,
    /// URL of the region's API.
    pub region_url: String,
    /// Name of the region.
    pub region: String,
    /// Access key id of the controller.
    pub access_key: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Kubeconfig of the watcher.
    pub kubeconfig: PathBuf,
    /// Name of the interruption queue; empty for none.
    pub queue: String,
    /// Further flags of the watcher.
    pub watcher_flags: Vec<String>,
    /// Further flags of actuators.
    pub actuator_flags: Vec<String>,
    /// Further flags of schedulers.
    pub scheduler_flags: Vec<String>,
    /// etcd endpoints; empty for a standalone actuator.
    pub etcd: Vec<String>,
    /// Collector of traces; none for no traces.
    pub otlp: Option<String>,
    /// By what processes know each other; without it they take any word.
    pub keys: Option<Keys>,
    /// By how many seconds the wall clock of a program that starts is ahead, by its name; behind
    /// when negative. Exact for those that are not named.
    pub ahead_s: BTreeMap<String, i64>,
}

/// A service under way and where it listens.
pub struct Service {
    /// The process.
    pub process: Process,
    /// Its gRPC address.
    pub address: SocketAddr,
    /// Scheme of its URL.
    scheme: &'static str,
}

impl Service {
    /// URL of the service.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }
}

impl Surroundings {
    /// For services that need no cluster.
    #[must_use]
    pub fn without_cluster(dir: &Path, region: &str, region_url: &str) -> Self {
        Self {
            dir: dir.to_owned(),
            region_url: region_url.to_owned(),
            region: region.to_owned(),
            access_key: longshore_lab::region::CONTROLLER_KEY.to_owned(),
            cluster: longshore_lab::region::CLUSTER.to_owned(),
            kubeconfig: PathBuf::new(),
            queue: String::new(),
            watcher_flags: Vec::new(),
            actuator_flags: Vec::new(),
            scheduler_flags: Vec::new(),
            etcd: Vec::new(),
            otlp: None,
            keys: None,
            ahead_s: BTreeMap::new(),
        }
    }

    /// Starts an actuator; `name` tells the logs of several apart.
    ///
    /// # Errors
    /// When it does not listen in time.
    pub async fn start_actuator(&self, name: &str, listen: SocketAddr) -> Result<Service> {
        let mut command = self.command("longshore-actuator")?;
        command
            .args(["--region", &self.region, "--listen", &listen.to_string()])
            .env("AWS_ENDPOINT_URL", &self.region_url)
            .env("AWS_REGION", &self.region)
            .env("AWS_ACCESS_KEY_ID", &self.access_key)
            .env("AWS_SECRET_ACCESS_KEY", "lab");
        command.args(&self.actuator_flags);
        let (account, region) = (ACCOUNT.to_owned(), self.region.clone());
        self.identify(&mut command, &Identity::Actuator { account, region })?;
        if !self.etcd.is_empty() {
            command.args(["--etcd-endpoints", &self.etcd.join(",")]);
        }
        self.listening(name, command).await
    }

    /// Starts a scheduler that knows these actuators.
    ///
    /// # Errors
    /// When it does not listen in time.
    pub async fn start_scheduler(
        &self,
        listen: SocketAddr,
        actuators: &[String],
    ) -> Result<Service> {
        self.start_scheduler_as("longshore-scheduler", listen, actuators).await
    }

    /// Starts one of several schedulers; `name` tells their logs apart.
    ///
    /// # Errors
    /// When it does not listen in time.
    pub async fn start_scheduler_as(
        &self,
        name: &str,
        listen: SocketAddr,
        actuators: &[String],
    ) -> Result<Service> {
        let mut command = self.command("longshore-scheduler")?;
        command.args(["--listen", &listen.to_string()]);
        command.args(["--actuator-endpoints", &actuators.join(",")]);
        command.args(&self.scheduler_flags);
        self.identify(&mut command, &Identity::Scheduler)?;
        self.listening(name, command).await
    }

    /// Starts a watcher that dials this scheduler.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start_watcher(&self, name: &str, scheduler: &str) -> Result<Process> {
        let mut command = self.command("longshore-watcher")?;
        command
            .args(["--cluster-name", &self.cluster, "--scheduler-endpoint", scheduler])
            .args(["--region", &self.region])
            .arg("--kubeconfig")
            .arg(&self.kubeconfig);
        command.args(&self.watcher_flags);
        if let Some(keys) = &self.keys {
            let [account, region, name] = [ACCOUNT, &self.region, &self.cluster].map(str::to_owned);
            command.args(keys.flags(&Identity::Cluster { account, region, name })?);
        }
        if !self.queue.is_empty() {
            command.args(["--interruption-queue", &self.queue]);
        }
        Process::start(name, command, &self.dir)
    }

    /// Gives a server its identity, and lets the client of tests in.
    fn identify(&self, command: &mut Command, identity: &Identity) -> Result<()> {
        if let Some(keys) = &self.keys {
            command.args(keys.flags(identity)?).args(["--clients", CLIENT_RIGHTS]);
        }
        Ok(())
    }

    async fn listening(&self, name: &str, command: Command) -> Result<Service> {
        let mut process = Process::start(name, command, &self.dir)?;
        let line = process.wait_for_line(LISTENING, START_LIMIT).await?;
        let text = line.split(LISTENING).nth(1).unwrap_or_default();
        let text = text.split_whitespace().next().unwrap_or_default();
        let address = text.parse().with_context(|| format!("{name}: no address in {line:?}"))?;
        let scheme = if self.keys.is_some() { "https" } else { "http" };
        Ok(Service { process, address, scheme })
    }

    fn command(&self, program: &str) -> Result<Command> {
        let mut command = workspace_command(program)?;
        command.env("RUST_BACKTRACE", "1").env_remove("AWS_PROFILE");
        if let Some(ahead_s) = self.ahead_s.get(program) {
            skew::shift(&mut command, *ahead_s)?;
        }
        if let Some(otlp) = &self.otlp {
            // Spans leave soon, so that a run can look at its own trace.
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", otlp).env("OTEL_BSP_SCHEDULE_DELAY", "200");
        }
        Ok(command)
    }
}

/// The access key id of the caller that is called so, among the principals of a region.
#[must_use]
pub fn access_key(name: &str) -> String {
    format!("AKIALAB{name}")
}

/// Callers with the controller's rights and a name each, so that a region knows who called.
#[must_use]
pub fn callers(names: &[String]) -> Vec<PrincipalConfig> {
    let caller = |name: &String| PrincipalConfig {
        access_key_id: access_key(name),
        role: CONTROLLER_ROLE.to_owned(),
        session: name.clone(),
    };
    names.iter().map(caller).collect()
}
