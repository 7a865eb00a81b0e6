//! Starting, reaching and stopping a simulated cluster.
//!
//! Invariant: every task belongs to the handle; after [`ClusterHandle::stop`] none runs.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use kube::config::Kubeconfig;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::faults::Faults;
use super::http::{Endpoint, router};
use super::server::{Server, WriteOptions};
use super::store::Key;
use super::{ClusterConfig, control};

/// Why a cluster could not be started or reached.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The listening address is not to be had.
    #[error("simulated cluster: cannot listen on {address}: {source}")]
    Listen {
        /// Address asked for.
        address: SocketAddr,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A client could not be built from the cluster's own address.
    #[error("simulated cluster: cannot build a client: {0}")]
    Client(String),
    /// A namespace every cluster has could not be made.
    #[error("simulated cluster: cannot create what every cluster has: {0}")]
    Furnish(#[from] super::error::ApiError),
}

/// Entry point.
#[derive(Debug)]
pub struct Cluster;

impl Cluster {
    /// Starts an API server, the controllers and the scheduler.
    ///
    /// # Errors
    /// [`ClusterError::Listen`] when the address is taken.
    pub async fn start(config: ClusterConfig) -> Result<ClusterHandle, ClusterError> {
        let address = config.listen;
        let listen = |source| ClusterError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let mut cluster = Self::assemble(config, address)?;
        let (app, ended) = (router(cluster.endpoint.clone()), cluster.stop.clone());
        cluster.tasks.spawn(async move {
            use axum::serve::ListenerExt as _;
            let listener = listener.tap_io(|stream| {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY was refused");
                }
            });
            let served = axum::serve(listener, app)
                .with_graceful_shutdown(async move { ended.cancelled().await })
                .await;
            if let Err(error) = served {
                tracing::error!(%error, "the simulated API server stopped serving");
            }
        });
        Ok(cluster)
    }

    /// The same without a listener: reached by [`ClusterHandle::in_process_client`] only, for
    /// simulated time and network.
    ///
    /// # Errors
    /// [`ClusterError::Furnish`], which is a bug.
    pub fn in_process(config: ClusterConfig) -> Result<ClusterHandle, ClusterError> {
        let address = config.listen;
        Self::assemble(config, address)
    }

    fn assemble(config: ClusterConfig, address: SocketAddr) -> Result<ClusterHandle, ClusterError> {
        let clock = Clock::starting_at(config.start_time);
        let server = Arc::new(Server::new(clock, config.seed, config.history_per_resource));
        furnish(&server)?;
        let stop = CancellationToken::new();
        let faults = Arc::new(Faults::default());
        let endpoint = Endpoint {
            server: Arc::clone(&server),
            faults: Arc::clone(&faults),
            stop: stop.clone(),
            bookmark_interval: config.bookmark_interval,
            kubernetes_minor: config.kubernetes_minor,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(control::run(Arc::clone(&server), config.control(), stop.clone()));
        Ok(ClusterHandle { address, config, server, endpoint, faults, stop, tasks })
    }
}

/// A running cluster. Dropping it ends all its tasks at once.
pub struct ClusterHandle {
    address: SocketAddr,
    config: ClusterConfig,
    server: Arc<Server>,
    endpoint: Endpoint,
    faults: Arc<Faults>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for ClusterHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ClusterHandle").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl ClusterHandle {
    /// Base URL of the API server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Name the cluster goes by, as user data names it.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// A kubeconfig file's text, in JSON, which every client reads as YAML.
    pub fn kubeconfig_text(&self) -> String {
        let name = &self.config.name;
        serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{ "name": name, "cluster": { "server": self.url() } }],
            "users": [{ "name": "lab", "user": {} }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": "lab" } }],
        })
        .to_string()
    }

    /// The same as a parsed kubeconfig.
    ///
    /// # Errors
    /// [`ClusterError::Client`] when the text does not parse, which is a bug.
    pub fn kubeconfig(&self) -> Result<Kubeconfig, ClusterError> {
        serde_json::from_str(&self.kubeconfig_text())
            .map_err(|error| ClusterError::Client(error.to_string()))
    }

    /// A client's configuration. It does not repeat refused requests: kube's default policy would
    /// repeat an eviction that a budget forbids for minutes.
    ///
    /// # Errors
    /// [`ClusterError::Client`] when the address is no URI, which is a bug.
    pub fn client_config(&self) -> Result<kube::Config, ClusterError> {
        let uri = self.url().parse().map_err(|error| ClusterError::Client(format!("{error}")))?;
        let mut config = kube::Config::new(uri);
        config.default_retry = false;
        Ok(config)
    }

    /// A client over TCP.
    ///
    /// # Errors
    /// As [`ClusterHandle::client_config`].
    pub fn client(&self) -> Result<kube::Client, ClusterError> {
        kube::Client::try_from(self.client_config()?)
            .map_err(|error| ClusterError::Client(error.to_string()))
    }

    /// The API server as a service, for simulated time and network: whoever holds it may disturb
    /// what passes.
    pub fn service(&self) -> axum::Router {
        router(self.endpoint.clone())
    }

    /// Shows every object of a resource (`nodeclaims.karpenter.sh`) as it is now, in order of its
    /// key: the truth, for those who judge a run.
    pub fn visit(&self, resource: &str, mut show: impl FnMut(&serde_json::Value)) {
        let state = self.server.lock();
        state.store.list(resource, "", None).for_each(|(_, stored)| show(&stored.value));
    }

    /// The cluster's clock.
    pub fn clock(&self) -> Clock {
        self.server.clock().clone()
    }

    /// A client that calls the API server in-process, for simulated time and network.
    pub fn in_process_client(&self) -> kube::Client {
        use futures::FutureExt as _;
        let app = self.service();
        let service = tower_service(move |request: http::Request<kube::client::Body>| {
            let mut app = app.clone();
            async move { tower::Service::call(&mut app, request.map(Body::new)).await }.boxed()
        });
        kube::Client::new(service, "default")
    }

    /// Scripted refusals and delays.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Revision of the latest change, for tests that count writes.
    pub fn revision(&self) -> u64 {
        self.server.lock().store.revision()
    }

    /// Revision of the latest change of one resource, 0 when it never had an object.
    pub fn revision_of(&self, resource: &str) -> u64 {
        self.server.lock().store.revision_of(resource)
    }

    /// Forgets the history of all changes, so that older watches get `410 Gone`.
    pub fn compact(&self) {
        self.server.lock().store.compact();
    }

    /// Ends watches, lets requests in progress finish, and waits for all tasks.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a task of the simulated cluster failed");
            }
        }
    }
}

fn tower_service<F>(call: F) -> tower::util::ServiceFn<F> {
    tower::service_fn(call)
}

/// Creates the namespaces every cluster has.
fn furnish(server: &Server) -> Result<(), ClusterError> {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let target = server.target("namespaces", Key::new("", name))?;
        server.create(&target, serde_json::json!({}), &WriteOptions::default())?;
    }
    Ok(())
}
