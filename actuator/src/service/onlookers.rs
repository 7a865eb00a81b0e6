//! The part of the service that changes nothing, for those who look on at a region.
//!
//! Invariant: nothing is bought or ended through it, whatever the caller may do elsewhere.

use longshore_proto::capacity::v1::capacity_service_server::CapacityService;
use longshore_proto::capacity::v1::{
    ApplyPlanRequest, ApplyPlanResponse, ForgetClusterRequest, ForgetClusterResponse,
    PutClusterRequest, PutClusterResponse, ReadAuditRequest, WatchRequest,
};
use longshore_proto::reason::Reason;
use tonic::{Request, Response, Status};

use super::Capacity;

/// Watch and ReadAudit of a service.
#[derive(Clone)]
pub struct Onlookers(pub(crate) Capacity);

#[tonic::async_trait]
impl CapacityService for Onlookers {
    type WatchStream = <Capacity as CapacityService>::WatchStream;
    type ReadAuditStream = <Capacity as CapacityService>::ReadAuditStream;

    async fn put_cluster(
        &self,
        _: Request<PutClusterRequest>,
    ) -> Result<Response<PutClusterResponse>, Status> {
        Err(looking_only())
    }

    async fn apply_plan(
        &self,
        _: Request<ApplyPlanRequest>,
    ) -> Result<Response<ApplyPlanResponse>, Status> {
        Err(looking_only())
    }

    async fn forget_cluster(
        &self,
        _: Request<ForgetClusterRequest>,
    ) -> Result<Response<ForgetClusterResponse>, Status> {
        Err(looking_only())
    }

    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.0.watch(request).await
    }

    async fn read_audit(
        &self,
        request: Request<ReadAuditRequest>,
    ) -> Result<Response<Self::ReadAuditStream>, Status> {
        self.0.read_audit(request).await
    }
}

fn looking_only() -> Status {
    let message = "this process plans for its region by itself; others may only look on";
    Reason::Forbidden.status(message)
}
