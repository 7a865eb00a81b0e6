//! gRPC servers with the settings every service shares: keepalive, health, reflection, who is let
//! in, graceful end.
//!
//! Invariant: the listener is bound by the caller, so that an address in use is an error before
//! anything else starts, and port 0 works. Where connections prove an identity, nobody is answered
//! who may not call what is called.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::extract::State;
use axum::middleware::{self, Next};
use axum::response::Response;
use http::Request;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::{Routes, RoutesBuilder};
use tonic::transport::Server;
use tonic_health::server::HealthReporter;
use tower::Service;
use tower::util::MapRequestLayer;

use crate::authorise::{Clients, Guard};
use crate::budget::Budget;
use crate::client::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT};
use crate::listener::Listener;
use crate::net::Peer;
use crate::receiving::{self, RECEIVING_BYTES_MAX, Refuse};
use crate::seldom::Seldom;

/// Most streams of a connection at once: several times what a watcher or a scheduler opens.
const STREAMS_MAX: u32 = 64;
/// Bytes that a client may send on a stream before they are read: a megabyte a second at 250 ms.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The same of all streams of a connection: what one connection can make the server keep unread.
const CONNECTION_WINDOW_BYTES: u32 = 512 * 1024;

/// Arguments of every service about whom it answers, and what.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Identity")]
pub struct AccessArgs {
    /// What clients other than our services may do, by the names in their certificates, as
    /// NAME=RIGHT+RIGHT, comma-separated. Rights are plan, explain and watch; without TLS everybody
    /// has all.
    #[arg(long, env = "LONGSHORE_CLIENTS", value_name = "NAME=RIGHTS")]
    pub clients: Option<Clients>,
    /// Answer the gRPC reflection API, by which tools learn the methods without their .proto files.
    #[arg(long, env = "LONGSHORE_REFLECTION", value_parser = clap::builder::FalseyValueParser::new())]
    pub reflection: bool,
}

/// Binds a listening address.
///
/// # Errors
/// When the address is in use or not this machine's; the message names it.
pub async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}; is another process using it?"))
}

/// How refusals are said: with the reasons that clients know.
#[derive(Clone, Copy)]
pub struct Refusals {
    /// There is no memory for a message.
    pub overloaded: Refuse,
    /// The caller may not.
    pub forbidden: Refuse,
}

/// A gRPC server under construction.
pub struct GrpcServer {
    routes: RoutesBuilder,
    health: HealthReporter,
    refusals: Refusals,
    clients: Clients,
}

impl GrpcServer {
    /// A server with health and, where it is asked for, reflection from `descriptor_set`.
    ///
    /// # Errors
    /// When the descriptors cannot be decoded.
    pub fn new(descriptor_set: &'static [u8], access: AccessArgs) -> anyhow::Result<Self> {
        let (health, health_service) = tonic_health::server::health_reporter();
        let mut routes = RoutesBuilder::default();
        routes.add_service(health_service);
        if access.reflection {
            let reflection = tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(descriptor_set)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
                .build_v1()?;
            routes.add_service(reflection);
        }
        let refusals = Refusals {
            overloaded: Status::resource_exhausted,
            forbidden: Status::permission_denied,
        };
        let clients = access.clients.unwrap_or_default();
        Ok(Self { routes, health, refusals, clients })
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

    /// Says what is said to those who are refused.
    #[must_use]
    pub fn refusing(self, refusals: Refusals) -> Self {
        Self { refusals, ..self }
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
        let mut routes = self.routes.routes();
        if listener.is_secured() {
            routes = guarded(routes, Guard::new(self.clients), self.refusals.forbidden);
        }
        let (budget, refuse) = (Budget::new(RECEIVING_BYTES_MAX), self.refusals.overloaded);
        let meter = move |request| receiving::meter(&budget, refuse, request);
        Server::builder()
            .max_concurrent_streams(STREAMS_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .layer(MapRequestLayer::new(meter))
            .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
            .add_routes(routes)
            .serve_with_incoming_shutdown(listener.into_incoming(), token.cancelled_owned())
            .await
            .context("gRPC server")
    }
}

/// What stands before the methods of a server.
#[derive(Clone)]
struct Gate {
    guard: Guard,
    forbid: Refuse,
    refused: Arc<Seldom>,
}

/// The same methods, for those who may call them.
fn guarded(routes: Routes, guard: Guard, forbid: Refuse) -> Routes {
    let gate = Gate { guard, forbid, refused: Arc::default() };
    routes.into_axum_router().layer(middleware::from_fn_with_state(gate, admit)).into()
}

async fn admit(State(gate): State<Gate>, request: axum::extract::Request, next: Next) -> Response {
    let peer = Peer::of(request.extensions());
    match gate.guard.admit(&peer, request.uri().path()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            gate.refused.say(|| tracing::warn!(peer = peer.tenant(), "refused: {refusal}"));
            (gate.forbid)(refusal.to_string()).into_http()
        }
    }
}
