//! CapacityService: checks requests, records them, answers.
//!
//! Invariant: only the leader answers; everybody else says who leads. Nothing is answered before it
//! is recorded.

mod apply;
pub mod cluster;
mod watch;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use longshore_proto::capacity::v1::capacity_service_server::CapacityService;
use longshore_proto::capacity::v1::{
    ApplyPlanRequest, ApplyPlanResponse, Fence, ForgetClusterRequest, ForgetClusterResponse,
    PutClusterRequest, PutClusterResponse, WatchRequest,
};
use longshore_proto::reason::Reason;
use longshore_runtime::budget::{Budget, Spent};
use longshore_runtime::net::Peer;
use longshore_runtime::propagate;
use tokio::sync::watch::Receiver;
use tonic::{Request, Response, Status};
use tracing::Instrument;

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
        cluster::put(&leader, request.into_inner()).await.map(Response::new)
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
        apply::apply(&leader, request.into_inner()).instrument(span).await.map(Response::new)
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
        let mut place = self.subscribers.open(&Peer::of(request.extensions()).tenant());
        place.grow(1).map_err(|spent| crowded(spent, &leader.context.region))?;
        let clusters: BTreeSet<String> = request.into_inner().cluster_ids.into_iter().collect();
        if clusters.len() > WATCHED_CLUSTERS_MAX {
            let message = format!(
                "{} clusters are named, and {WATCHED_CLUSTERS_MAX} may be; name none to watch all",
                clusters.len()
            );
            return Err(malformed(message));
        }
        let subscription = leader.board.subscribe().ok_or_else(|| not_leader(""))?;
        Ok(Response::new(watch::stream(subscription, clusters, place)))
    }
}

fn claimant(fence: Option<Fence>) -> Result<Claimant, Box<Status>> {
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
