//! CapacityService: checks requests, records them, answers.
//!
//! Invariant: only the leader answers; everybody else says who leads. Nothing is answered before it
//! is recorded.

mod apply;
mod audit;
pub mod cluster;
mod onlookers;
mod watch;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use longshore_proto::capacity::v1::capacity_service_server::CapacityService;
use longshore_proto::capacity::v1::{
    ApplyPlanRequest, ApplyPlanResponse, Fence, ForgetClusterRequest, ForgetClusterResponse,
    PutClusterRequest, PutClusterResponse, ReadAuditRequest, WatchRequest,
};
use longshore_proto::epoch;
use longshore_proto::reason::Reason;
use longshore_proto::time::time_ms;
use longshore_runtime::budget::{Budget, Grant, Spent};
use longshore_runtime::net::Peer;
use longshore_runtime::propagate;
use tokio::sync::watch::Receiver;
use tonic::{Request, Response, Status};
use tracing::Instrument;

pub use self::onlookers::Onlookers;
use crate::leader::Leader;
use crate::leadership::Leadership;
use crate::ledger::{Claimant, FenceRecord, LedgerError, StoreError};

/// Most subscribers: many times the schedulers that an actuator has. Each may keep a message
/// unread.
const SUBSCRIBERS_MAX: usize = 64;
/// Most clusters that a subscriber may name; the fleet that a scheduler serves is watched by naming
/// none.
const WATCHED_CLUSTERS_MAX: usize = 1_000;
/// Longest name of a cluster, in bytes: names of EKS clusters have a hundred, those of namespaces
/// 253.
const CLUSTER_ID_BYTES_MAX: usize = 256;

/// The service.
#[derive(Clone)]
pub struct Capacity {
    leadership: Receiver<Leadership>,
    subscribers: Budget,
}

impl Capacity {
    /// A service that answers as its leadership says.
    #[must_use]
    pub fn new(leadership: Receiver<Leadership>) -> Self {
        Self { leadership, subscribers: Budget::new(SUBSCRIBERS_MAX) }
    }

    /// The place that a stream takes while it lives.
    fn place<T>(&self, leader: &Leader, request: &Request<T>) -> Result<Grant, Status> {
        let mut place = self.subscribers.open(&Peer::of(request.extensions()).tenant());
        place.grow(1).map_err(|spent| crowded(spent, &leader.context.region))?;
        Ok(place)
    }

    fn leader(&self) -> Result<Arc<Leader>, Box<Status>> {
        match &*self.leadership.borrow() {
            Leadership::Held(leader) => Ok(Arc::clone(leader)),
            Leadership::Elsewhere { leader } => Err(Box::new(not_leader(leader))),
            Leadership::Closed { reason, why } => Err(Box::new(reason.status(why.clone()))),
        }
    }
}

#[tonic::async_trait]
impl CapacityService for Capacity {
    async fn put_cluster(
        &self,
        request: Request<PutClusterRequest>,
    ) -> Result<Response<PutClusterResponse>, Status> {
        let leader = self.leader().map_err(|status| *status)?;
        let caller = Peer::of(request.extensions()).to_string();
        cluster::put(&leader, request.into_inner(), caller).await.map(Response::new)
    }

    async fn apply_plan(
        &self,
        request: Request<ApplyPlanRequest>,
    ) -> Result<Response<ApplyPlanResponse>, Status> {
        let leader = self.leader().map_err(|status| *status)?;
        let span = tracing::info_span!(
            "actuator.apply_plan",
            plan_id = request.get_ref().plan_id,
            launches = request.get_ref().launches.len(),
            terminations = request.get_ref().terminations.len(),
        );
        propagate::set_parent_from(&span, request.metadata());
        let caller = Peer::of(request.extensions()).to_string();
        let applied = apply::apply(&leader, request.into_inner(), caller);
        applied.instrument(span).await.map(Response::new)
    }

    async fn forget_cluster(
        &self,
        request: Request<ForgetClusterRequest>,
    ) -> Result<Response<ForgetClusterResponse>, Status> {
        let leader = self.leader().map_err(|status| *status)?;
        let cluster_id = request.into_inner().cluster_id;
        cluster::forget(&leader, cluster_id).await.map(Response::new)
    }

    type WatchStream = watch::Changes;

    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let leader = self.leader().map_err(|status| *status)?;
        let place = self.place(&leader, &request)?;
        let clusters = named(request.into_inner().cluster_ids)?;
        let subscription = leader.board.subscribe().ok_or_else(|| not_leader(""))?;
        Ok(Response::new(watch::stream(subscription, clusters, place)))
    }

    type ReadAuditStream = audit::Entries;

    async fn read_audit(
        &self,
        request: Request<ReadAuditRequest>,
    ) -> Result<Response<Self::ReadAuditStream>, Status> {
        let leader = self.leader().map_err(|status| *status)?;
        let place = self.place(&leader, &request)?;
        let ReadAuditRequest { cluster_ids, from_time } = request.into_inner();
        let from_ms = from_time.as_ref().map_or(0, time_ms);
        Ok(Response::new(audit::stream(&leader, named(cluster_ids)?, from_ms, place)))
    }
}

/// Clusters that somebody is interested in.
fn named(cluster_ids: Vec<String>) -> Result<BTreeSet<String>, Status> {
    let clusters: BTreeSet<String> = cluster_ids.into_iter().collect();
    if clusters.len() > WATCHED_CLUSTERS_MAX {
        let message = format!(
            "{} clusters are named, and {WATCHED_CLUSTERS_MAX} may be; name none for all",
            clusters.len()
        );
        return Err(malformed(message));
    }
    Ok(clusters)
}

/// Who a request is for, and at which point of its plans.
fn claimant(fence: Option<Fence>, now_ms: i64) -> Result<Claimant, Box<Status>> {
    let fence = fence.ok_or_else(|| Box::new(malformed("fence is missing")))?;
    if fence.cluster_id.is_empty() || fence.cluster_id.contains('/') {
        return Err(Box::new(malformed("fence.cluster_id is empty or contains a slash")));
    }
    let length = fence.cluster_id.len();
    if length > CLUSTER_ID_BYTES_MAX {
        let message =
            format!("fence.cluster_id has {length} bytes, more than {CLUSTER_ID_BYTES_MAX}");
        return Err(Box::new(malformed(message)));
    }
    epoch::check(&fence.cluster_id, fence.session_epoch, now_ms)?;
    let Fence { cluster_id, session_epoch, plan_seq } = fence;
    Ok(Claimant { cluster_id, fence: FenceRecord { session_epoch, plan_seq } })
}

fn malformed(message: impl Into<String>) -> Status {
    Reason::Malformed.status(message)
}

fn crowded(spent: Spent, region: &str) -> Status {
    Reason::Overloaded.status(format!(
        "{} from this address watch {region} already, and of {SUBSCRIBERS_MAX} places {} are free; end some \
         of them",
        spent.held, spent.free
    ))
}

/// Sends the caller to the leader, when it is known.
pub fn not_leader(leader: &str) -> Status {
    let mut metadata = HashMap::new();
    if leader.is_empty() {
        let message = "another actuator leads the region, or one is being elected; ask again";
        return Reason::NotLeader.status(message);
    }
    metadata.insert("leader".to_owned(), leader.to_owned());
    Reason::NotLeader.status_with(format!("{leader} leads the region; ask there"), metadata)
}

fn refusal(error: LedgerError) -> Status {
    let message = error.to_string();
    match error {
        LedgerError::StaleFence { .. } => Reason::StaleFence.status(message),
        LedgerError::Crowded { .. } => Reason::Overloaded.status(message),
        LedgerError::Closed => not_leader(""),
        LedgerError::Store(cause) => match &*cause {
            StoreError::Deposed { .. } => not_leader(""),
            StoreError::FenceMoved { .. } => Status::aborted(message),
            StoreError::Unavailable(_) | StoreError::Refused(_) | StoreError::Corrupt { .. } => {
                Reason::StoreUnavailable.status(message)
            }
        },
    }
}
