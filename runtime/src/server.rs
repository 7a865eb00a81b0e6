//! gRPC servers with the settings every service shares: keepalive, health, reflection, graceful end.
//!
//! Invariant: the listener is bound by the caller, so that an address in use is an error before
//! anything else starts, and port 0 works.

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::Context;
use http::Request;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::RoutesBuilder;
use tonic::transport::Server;
use tonic_health::server::HealthReporter;
use tower::Service;

use crate::client::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT};
use crate::net::Listener;

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
        Ok(Self { routes, health })
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
        Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
            .add_routes(self.routes.routes())
            .serve_with_incoming_shutdown(listener.into_incoming(), token.cancelled_owned())
            .await
            .context("gRPC server")
    }
}
