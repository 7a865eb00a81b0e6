//! The stateless packing scheduler: sessions with watchers, a planning loop for each cluster, and
//! dispatch to the actuators of the regions.
//!
//! Invariant: holds no credentials and nothing that outlives its streams. Any replica can be killed
//! at any time; what is lost is time.

pub mod args;
pub mod compute;
pub mod counters;
pub mod memory;
pub mod proof;
#[cfg(test)]
mod random;
pub mod region;
pub mod service;
pub mod session;
pub mod settings;
#[cfg(test)]
mod simulated;
pub mod wire;

use longshore_proto::cluster::v1::cluster_service_server::ClusterServiceServer;
use longshore_proto::limits::MESSAGE_BYTES_MAX;
use longshore_proto::planning::v1::planning_service_server::PlanningServiceServer;
use longshore_proto::reason::Reason;
use longshore_runtime::listener::Listener;
use longshore_runtime::server::{AccessArgs, GrpcServer, Refusals};
use longshore_runtime::tasks::Supervisor;
use tokio::net::TcpListener;

use crate::args::Config;
use crate::counters::Counters;
use crate::memory::Memory;
use crate::region::directory::Regions;
use crate::service::Sessions;

/// Where it is reached.
pub struct Doors {
    /// By watchers, and by planning clients.
    pub all: Listener,
    /// By planning clients alone, where watchers come in another way.
    pub planning: Option<Apart>,
}

/// A way in for planning clients.
pub struct Apart {
    /// Where.
    pub listener: Listener,
    /// Adds what else they find there.
    pub furnish: Box<dyn FnOnce(GrpcServer) -> GrpcServer + Send>,
}

impl From<Listener> for Doors {
    fn from(all: Listener) -> Self {
        Self { all, planning: None }
    }
}

impl From<TcpListener> for Doors {
    fn from(listener: TcpListener) -> Self {
        Listener::from(listener).into()
    }
}

/// Starts the scheduler's tasks on a supervisor: links to actuators, and the gRPC server.
///
/// # Errors
/// When an actuator endpoint is not a URL.
pub fn start(
    config: Config,
    doors: impl Into<Doors>,
    supervisor: &Supervisor,
) -> anyhow::Result<()> {
    start_with(config, doors, supervisor, Counters::default())
}

/// The same, counting in `counters`.
///
/// # Errors
/// When an actuator endpoint is not a URL.
pub fn start_with(
    config: Config,
    doors: impl Into<Doors>,
    supervisor: &Supervisor,
    counters: Counters,
) -> anyhow::Result<()> {
    let (sessions, regions) = (Sessions::default(), Regions::default());
    for endpoint in config.actuator_endpoints {
        regions.follow(supervisor, endpoint)?;
    }
    let memory = Memory::of_mib(config.memory_mib);
    let cluster = service::cluster::Service {
        supervisor: supervisor.clone(),
        sessions: sessions.clone(),
        regions: regions.clone(),
        settings: config.settings.clone(),
        counters,
        memory: memory.clone(),
    };
    let planning = service::planning::Service {
        sessions,
        regions,
        settings: config.settings,
        workers: supervisor.platform().workers.clone(),
        memory,
    };
    let planning =
        PlanningServiceServer::new(planning).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let cluster = ClusterServiceServer::new(cluster).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let Doors { all, planning: apart } = doors.into();
    if let Some(apart) = apart {
        let server = server(config.access.clone())?.with_service(planning.clone());
        let server = (apart.furnish)(server);
        supervisor.spawn_once("planning", server.serve(apart.listener, supervisor.token().clone()));
    }
    let server = server(config.access)?.with_service(cluster).with_service(planning);
    supervisor.spawn_once("grpc", server.serve(all, supervisor.token().clone()));
    Ok(())
}

fn server(access: AccessArgs) -> anyhow::Result<GrpcServer> {
    let server = GrpcServer::new(longshore_proto::DESCRIPTOR_SET, access)?;
    Ok(server.refusing(Refusals {
        overloaded: |message| Reason::Overloaded.status(message),
        forbidden: |message| Reason::Forbidden.status(message),
    }))
}
