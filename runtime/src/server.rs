//! gRPC servers with the settings every service shares: keepalive, health, reflection, graceful
//! end.
//!
//! Invariant: the listener is bound by the caller, so that an address in use is an error before
//! anything else starts, and port 0 works.

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::Context;
use http::Request;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::RoutesBuilder;
use tonic::transport::Server;
use tonic_health::server::HealthReporter;
use tower::Service;
use tower::util::MapRequestLayer;

use crate::budget::Budget;
use crate::client::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT};
use crate::net::Listener;
use crate::receiving::{self, RECEIVING_BYTES_MAX, Refuse};

/// Most streams of a connection at once: several times what a watcher or a scheduler opens.
const STREAMS_MAX: u32 = 64;
/// Bytes that a client may send on a stream before they are read: a megabyte a second at 250 ms.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The same of all streams of a connection: what one connection can make the server keep unread.
const CONNECTION_WINDOW_BYTES: u32 = 512 * 1024;

/// Binds a listening address.
///
/// # Errors
/// When the address is in use or not this machine's; the message names it.
pub async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}; is another process using it?"))
}

/// A gRPC server under construction.
pub struct GrpcServer {
    routes: RoutesBuilder,
    health: HealthReporter,
    refuse: Refuse,
}

impl GrpcServer {
    /// A server with health and, from `descriptor_set`, reflection.
    ///
    /// # Errors
    /// When the descriptors cannot be decoded.
    pub fn new(descriptor_set: &'static [u8]) -> anyhow::Result<Self> {
        let (health, health_service) = tonic_health::server::health_reporter();
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(descriptor_set)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()?;
        let mut routes = RoutesBuilder::default();
        routes.add_service(health_service).add_service(reflection);
        Ok(Self { routes, health, refuse: Status::resource_exhausted })
    }

    /// Adds a service.
    #[must_use]
    pub fn with_service<S>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Response: axum::response::IntoResponse,
        S::Future: Send + 'static,
    {
        self.routes.add_service(service);
        self
    }

    /// Says what is said to those whose messages find no memory.
    #[must_use]
    pub fn refusing(self, refuse: Refuse) -> Self {
        Self { refuse, ..self }
    }

    /// Reports which services are serving.
    #[must_use]
    pub fn health(&self) -> HealthReporter {
        self.health.clone()
    }

    /// Serves until the token is cancelled; calls under way may end first.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: impl Into<Listener>,
        token: CancellationToken,
    ) -> anyhow::Result<()> {
        let listener: Listener = listener.into();
        if let Some(address) = listener.address() {
            tracing::info!(%address, "listening");
        }
        let (budget, refuse) = (Budget::new(RECEIVING_BYTES_MAX), self.refuse);
        let meter = move |request| receiving::meter(&budget, refuse, request);
        Server::builder()
            .max_concurrent_streams(STREAMS_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .layer(MapRequestLayer::new(meter))
            .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
            .add_routes(self.routes.routes())
            .serve_with_incoming_shutdown(listener.into_incoming(), token.cancelled_owned())
            .await
            .context("gRPC server")
    }
}
