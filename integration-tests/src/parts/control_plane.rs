//! A Kubernetes control plane: etcd, API server, scheduler, controller manager; no nodes.
//!
//! Invariant: the API server ends before its etcd (it lingers otherwise), and everything before the
//! temporary folder that holds keys, configuration and logs. Pods are scheduled and controlled as
//! in life; the nodes they go to are the business of a test or of the lab's kubelets.

pub mod audit;
mod commands;
mod credentials;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use self::credentials::Credentials;
use super::{EtcdCluster, Process, poll, ports};

/// Control planes that run at once in one process: each takes half a GiB and, while starting, a
/// core.
const CONTROL_PLANES_MAX: usize = 2;
/// Within this the API server has to become ready on a busy machine (2.6 s on an idle one).
const READY_LIMIT: Duration = Duration::from_secs(180);

static SLOTS: Semaphore = Semaphore::const_new(CONTROL_PLANES_MAX);

/// Which programs run beside etcd and the API server.
#[derive(Clone, Copy, Debug)]
pub struct ControlPlaneOptions {
    /// kube-scheduler: binds pods to nodes.
    pub scheduler: bool,
    /// kube-controller-manager: Deployments, disruption budgets, garbage collection.
    pub controllers: Controllers,
    /// Whether there is one user more, with every right, whose requests are written down: see
    /// [`ControlPlane::observed`].
    pub observes: bool,
    /// Where the API server listens: loopback, or an address of this machine that containers reach.
    pub address: Ipv4Addr,
}

/// What kube-controller-manager does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// It does not run.
    None,
    /// It runs this one controller.
    Only(&'static str),
    /// It runs those that it runs by itself.
    Default,
}

impl Default for ControlPlaneOptions {
    /// Everything that runs in life, on loopback; nobody is observed.
    fn default() -> Self {
        let address = Ipv4Addr::LOCALHOST;
        Self { scheduler: true, controllers: Controllers::Default, observes: false, address }
    }
}

/// A user whose requests are written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
    /// The audit log: a line of JSON for each stage of each of its requests.
    pub log: PathBuf,
}

/// A running control plane. Fields are in the order in which they have to end.
pub struct ControlPlane {
    helpers: Vec<Process>,
    api_server: Process,
    etcd: EtcdCluster,
    client: Client,
    credentials: Credentials,
    dir: TempDir,
    observed: Option<Observed>,
    _slot: SemaphorePermit<'static>,
}

impl ControlPlane {
    /// Starts a control plane and waits until its API server is ready. Waits for a free slot first
    /// when [`CONTROL_PLANES_MAX`] are running.
    ///
    /// # Errors
    /// When Kubernetes is not installed, or a program ends or is not ready in time; the error holds
    /// the end of its log.
    pub async fn start(options: ControlPlaneOptions) -> Result<Self> {
        let slot = SLOTS.acquire().await?;
        let dir = tempfile::Builder::new().prefix("longshore-kubernetes-").tempdir()?;
        let address = (options.address, ports::free()?).into();
        let credentials = Credentials::write(dir.path(), address)?;
        let etcd = EtcdCluster::start(1).await?;
        let mut command = commands::api_server(&credentials, &etcd.endpoints())?;
        let observed = options.observes.then(|| audit::observe(&credentials, dir.path()));
        let observed = observed.transpose()?;
        audit::add_flags(&mut command, observed.as_ref(), dir.path());
        let mut api_server = Process::start("kube-apiserver", command, dir.path())?;
        let client = client(&credentials.admin_kubeconfig()).await?;
        ready(&mut api_server, &client).await?;
        let helpers = start_helpers(options, &credentials, dir.path())?;
        Ok(Self { helpers, api_server, etcd, client, credentials, dir, observed, _slot: slot })
    }

    /// A client with every right.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Where the API server listens, for a [`super::CutProxy`] in front of it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.credentials.address()
    }

    /// Address of the API server: `https://127.0.0.1:PORT` on loopback.
    #[must_use]
    pub fn url(&self) -> String {
        self.credentials.url()
    }

    /// A kubeconfig with every right, for programs.
    #[must_use]
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.credentials.admin_kubeconfig()
    }

    /// The user whose requests are written down, where [`ControlPlaneOptions::observes`] is set.
    #[must_use]
    pub fn observed(&self) -> Option<&Observed> {
        self.observed.as_ref()
    }

    /// Writes a kubeconfig with every right that connects through a proxy at `address`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn kubeconfig_through(&self, name: &str, address: SocketAddr) -> Result<PathBuf> {
        self.credentials.write_kubeconfig(name, address, self.credentials.admin_token())
    }

    /// Writes a kubeconfig for the bearer of `token` (a service account's, from the TokenRequest
    /// API) and returns its path: a program then has the rights of that account and no others.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn kubeconfig_for_token(&self, name: &str, token: &str) -> Result<PathBuf> {
        self.credentials.write_kubeconfig(name, self.credentials.address(), token)
    }

    /// The folder with the logs of all programs, named after them.
    #[must_use]
    pub fn log_dir(&self) -> &Path {
        self.dir.path()
    }

    /// Kills the API server (its state stays in etcd).
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn kill_api_server(&mut self) -> Result<()> {
        self.api_server.kill()
    }

    /// Starts a killed API server again, on the same address, and waits until it is ready.
    ///
    /// # Errors
    /// When it ends or is not ready in time.
    pub async fn restart_api_server(&mut self) -> Result<()> {
        let mut command = commands::api_server(&self.credentials, &self.etcd.endpoints())?;
        audit::add_flags(&mut command, self.observed.as_ref(), self.dir.path());
        self.api_server = Process::start("kube-apiserver", command, self.dir.path())?;
        ready(&mut self.api_server, &self.client).await
    }

    /// An error when one of the programs has ended, with the end of its log.
    ///
    /// # Errors
    /// When one of the programs has ended.
    pub fn ensure_running(&mut self) -> Result<()> {
        self.api_server.ensure_running()?;
        self.helpers.iter_mut().try_for_each(Process::ensure_running)
    }
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Client::try_from(config).context("the kubeconfig of the control plane makes no client")
}

async fn ready(api_server: &mut Process, client: &Client) -> Result<()> {
    poll::until("kube-apiserver is ready", READY_LIMIT, || {
        let alive = api_server.ensure_running();
        let client = client.clone();
        async move {
            if alive.is_err() {
                return Ok(alive);
            }
            client.request_text(Request::get("/readyz").body(Vec::new())?).await?;
            anyhow::Ok(Ok(()))
        }
    })
    .await?
}

fn start_helpers(
    options: ControlPlaneOptions,
    credentials: &Credentials,
    dir: &Path,
) -> Result<Vec<Process>> {
    let mut helpers = Vec::new();
    if options.scheduler {
        let command = commands::scheduler(credentials, dir)?;
        helpers.push(Process::start("kube-scheduler", command, dir)?);
    }
    if options.controllers != Controllers::None {
        let command = commands::controller_manager(credentials, options.controllers)?;
        helpers.push(Process::start("kube-controller-manager", command, dir)?);
    }
    Ok(helpers)
}
