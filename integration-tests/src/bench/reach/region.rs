//! A region that stands in memory only: an actuator that says what there is, and takes plans down.
//!
//! Invariant: it buys nothing and ends nothing; what is measured above it is the scheduler alone.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use futures::stream::{self, BoxStream, StreamExt as _};
use longshore_manifests::neutral::{self, ZONES};
use longshore_proto::capacity::v1::capacity_service_server::{
    CapacityService, CapacityServiceServer,
};
use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::capacity::v1::{
    ApplyPlanRequest, ApplyPlanResponse, ForgetClusterRequest, ForgetClusterResponse,
    NodeClassResolution, PutClusterRequest, PutClusterResponse, ReadAuditRequest,
    ReadAuditResponse, RegionChange, RegionInfo, WatchRequest, WatchResponse,
};
use longshore_proto::cluster::v1::{ResolvedSubnet, SetNodeClassStatus};
use longshore_runtime::listener::Listener;
use longshore_runtime::server::{self, AccessArgs, GrpcServer};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::cluster::{CLASS, Cluster, REGION};
use crate::bench::catalogues::Pool;

/// Most changes in a message, as an actuator sends them.
const CHANGES_EACH: usize = 1_000;

/// The region under way; it ends with this.
pub struct Region {
    /// URL of its actuator.
    pub url: String,
    _serving: JoinSet<Result<()>>,
}

impl Region {
    /// Starts an actuator for these clusters.
    ///
    /// # Errors
    /// When no address can be bound, or the embedded facts cannot be read.
    pub async fn start(clusters: &[Cluster]) -> Result<Self> {
        let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let changes = state(clusters)?;
        let chunks: Vec<Vec<_>> = changes.chunks(CHANGES_EACH).map(<[_]>::to_vec).collect();
        let service = CapacityServiceServer::new(Paper(Arc::new(chunks)));
        let server = GrpcServer::new(longshore_proto::DESCRIPTOR_SET, AccessArgs::default())?;
        let server = server.with_service(service);
        let mut serving = JoinSet::new();
        serving.spawn(server.serve(Listener::from(listener), CancellationToken::new()));
        Ok(Self { url, _serving: serving })
    }
}

/// Everything that the region shows.
fn state(clusters: &[Cluster]) -> Result<Vec<RegionChange>> {
    let catalogue = neutral::from_rows(&Pool::Cmr.rows()?).map_err(|error| anyhow!(error))?;
    let id = catalogue.catalogue_id.clone();
    let info = RegionInfo { region: REGION.to_owned(), term: 1, ..RegionInfo::default() };
    let mut changes = vec![Change::Region(info), Change::Catalogue(catalogue)];
    changes.extend(clusters.iter().map(|cluster| Change::NodeClass(resolution(cluster, &id))));
    changes.extend(clusters.iter().flat_map(Cluster::instances).map(Change::Instance));
    Ok(changes.into_iter().map(|change| RegionChange { change: Some(change) }).collect())
}

fn resolution(cluster: &Cluster, catalogue_id: &str) -> NodeClassResolution {
    let subnet = |zone: &str| ResolvedSubnet {
        id: format!("subnet-{zone}"),
        zone: zone.to_owned(),
        zone_id: zone.to_owned(),
        free_addresses: 4_000,
    };
    let status = SetNodeClassStatus {
        node_class: CLASS.to_owned(),
        subnets: ZONES.map(subnet).to_vec(),
        ..SetNodeClassStatus::default()
    };
    NodeClassResolution {
        cluster_id: cluster.name.clone(),
        status: Some(status),
        ready: true,
        catalogue_id: catalogue_id.to_owned(),
        ..NodeClassResolution::default()
    }
}

/// An actuator of paper.
struct Paper(Arc<Vec<Vec<RegionChange>>>);

#[tonic::async_trait]
impl CapacityService for Paper {
    type WatchStream = BoxStream<'static, Result<WatchResponse, Status>>;
    type ReadAuditStream = BoxStream<'static, Result<ReadAuditResponse, Status>>;

    async fn put_cluster(
        &self,
        _: Request<PutClusterRequest>,
    ) -> Result<Response<PutClusterResponse>, Status> {
        Ok(Response::new(PutClusterResponse { revision: 1 }))
    }

    async fn apply_plan(
        &self,
        _: Request<ApplyPlanRequest>,
    ) -> Result<Response<ApplyPlanResponse>, Status> {
        Ok(Response::new(ApplyPlanResponse { revision: 1, refusals: Vec::new() }))
    }

    async fn forget_cluster(
        &self,
        _: Request<ForgetClusterRequest>,
    ) -> Result<Response<ForgetClusterResponse>, Status> {
        Ok(Response::new(ForgetClusterResponse { revision: 1 }))
    }

    async fn read_audit(
        &self,
        _: Request<ReadAuditRequest>,
    ) -> Result<Response<Self::ReadAuditStream>, Status> {
        Ok(Response::new(stream::empty().boxed()))
    }

    async fn watch(&self, _: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let parts = Arc::clone(&self.0);
        let last = parts.len().saturating_sub(1);
        let part = move |index: usize| {
            let changes = parts.get(index).cloned().unwrap_or_default();
            Ok(WatchResponse { revision: 1, snapshot_end: index == last, changes })
        };
        Ok(Response::new(stream::iter(0..=last).map(part).chain(stream::pending()).boxed()))
    }
}
