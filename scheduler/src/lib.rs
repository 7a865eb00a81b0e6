//! The stateless packing scheduler: sessions with watchers, a planning loop for each cluster, and
//! dispatch to the actuators of the regions.
//!
//! Invariant: holds no credentials and nothing that outlives its streams. Any replica can be killed
//! at any time; what is lost is time.

pub mod args;
pub mod compute;
pub mod counters;
pub mod memory;
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
use longshore_runtime::net::Listener;
use longshore_runtime::server::GrpcServer;
use longshore_runtime::tasks::Supervisor;

use crate::args::Config;
use crate::counters::Counters;
use crate::memory::Memory;
use crate::region::directory::Regions;
use crate::service::Sessions;

/// Starts the scheduler's tasks on a supervisor: links to actuators, and the gRPC server.
///
/// # Errors
/// When an actuator endpoint is not a URL.
pub fn start(
    config: Config,
    listener: impl Into<Listener>,
    supervisor: &Supervisor,
) -> anyhow::Result<()> {
    start_with(config, listener, supervisor, Counters::default())
}

/// The same, counting in `counters`.
///
/// # Errors
/// When an actuator endpoint is not a URL.
pub fn start_with(
    config: Config,
    listener: impl Into<Listener>,
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
    let server = GrpcServer::new(longshore_proto::DESCRIPTOR_SET)?
        .refusing(|message| Reason::Overloaded.status(message))
        .with_service(
            ClusterServiceServer::new(cluster).max_decoding_message_size(MESSAGE_BYTES_MAX),
        )
        .with_service(
            PlanningServiceServer::new(planning).max_decoding_message_size(MESSAGE_BYTES_MAX),
        );
    let token = supervisor.token().clone();
    let listener: Listener = listener.into();
    supervisor.spawn_once("grpc", server.serve(listener, token));
    Ok(())
}
