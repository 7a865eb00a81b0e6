//! Who is who between the services, over real connections.
//!
//! Invariant: each refusal is of the kind that is due: a connection that proves nothing carries no
//! call, and a call that its caller may not make does nothing.

mod iam;
mod matrix;
mod rotation;
mod strangers;
mod taps;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use http::uri::PathAndQuery;
use longshore_it::stage::keys::Keys;
use longshore_it::stage::services::{Service, Surroundings};
use longshore_lab::region::{Region, RegionConfig, RegionHandle};
use longshore_proto::reason;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

const REGION: &str = "us-east-1";
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const SYNC: &str = "/longshore.cluster.v1.ClusterService/Sync";
const COMPUTE: &str = "/longshore.planning.v1.PlanningService/ComputePlan";
const STREAM: &str = "/longshore.planning.v1.PlanningService/StreamPlan";
const EXPLAIN: &str = "/longshore.planning.v1.PlanningService/ExplainPod";
const EXPLAIN_NODE: &str = "/longshore.planning.v1.PlanningService/ExplainNode";
const PUT: &str = "/longshore.capacity.v1.CapacityService/PutCluster";
const APPLY: &str = "/longshore.capacity.v1.CapacityService/ApplyPlan";
const FORGET: &str = "/longshore.capacity.v1.CapacityService/ForgetCluster";
const AUDIT: &str = "/longshore.capacity.v1.CapacityService/ReadAudit";
const WATCH: &str = "/longshore.capacity.v1.CapacityService/Watch";

/// A scheduler and an actuator that ask who calls.
struct Stand {
    keys: Keys,
    scheduler: Service,
    actuator: Service,
    surroundings: Surroundings,
    _region: RegionHandle,
    _dir: tempfile::TempDir,
}

impl Stand {
    async fn start() -> Result<Self> {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let region = Region::start(RegionConfig::simple(REGION)?).await?;
        let keys = Keys::new(dir.path())?;
        let surroundings = Surroundings {
            keys: Some(keys.clone()),
            ..Surroundings::without_cluster(dir.path(), REGION, &region.endpoint_url())
        };
        let actuator = surroundings.start_actuator("actuator", ANY_PORT).await?;
        let scheduler = surroundings.start_scheduler(ANY_PORT, &[actuator.url()]).await?;
        Ok(Self { keys, scheduler, actuator, surroundings, _region: region, _dir: dir })
    }
}

/// Calls a method, of whatever kind, with one empty message.
async fn call(channel: Channel, method: &'static str) -> Result<(), Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.map_err(|error| Status::unavailable(told(&error)))?;
    let path = PathAndQuery::from_static(method);
    let request = Request::new(tokio_stream::once(()));
    let answer = grpc.streaming(request, path, ProstCodec::<(), ()>::default()).await?;
    let mut answer: Streaming<()> = answer.into_inner();
    // What is refused says so before anything else.
    match answer.message().await {
        Err(status) if is_forbidden(&status) => Err(status),
        _ => Ok(()),
    }
}

/// An error with all that led to it.
fn told(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |told, cause| format!("{told}: {cause}"))
}

fn is_forbidden(status: &Status) -> bool {
    reason::of_status(status).is_some_and(|(name, _)| name == "FORBIDDEN")
}
