//! The road to the actuator: one task per session sends requests in order and reports back.
//!
//! Invariant: fences leave in growing order, because one task numbers and sends them. What became
//! of a request is always reported, also when nobody answered. The task is not the session's own,
//! so that neither waits for the other.

use std::time::Duration;

use longshore_proto::capacity::v1 as capacity;
use longshore_proto::limits::LAUNCHES_PER_APPLY_MAX;
use longshore_proto::reason;
use longshore_proto::types::v1::{ClusterFacts, Launch, NodeClass, Termination};
use longshore_runtime::client::with_deadline;
use longshore_runtime::clock::Clock;
use longshore_runtime::propagate;
use prost_types::Timestamp;
use tokio::sync::mpsc;
use tonic::Status;
use tracing::Instrument;

use crate::region::directory::CapacityClient;
use crate::wire::timestamp;

/// How long recording a plan may take. Recording is one or a few etcd transactions.
const APPLY_DEADLINE: Duration = Duration::from_secs(5);
/// How long a recorded plan may wait before it must not be started, in milliseconds.
pub const PLAN_TTL_MS: i64 = 60_000;
/// Most requests waiting for the actuator.
pub const QUEUE: usize = 64;

/// One request for the leading actuator.
#[derive(Debug)]
pub enum Order {
    /// What the actuator must know of the cluster.
    Cluster {
        /// Facts.
        facts: Box<ClusterFacts>,
        /// Node classes.
        node_classes: Vec<NodeClass>,
    },
    /// Effects.
    Plan {
        /// Plan it stems from.
        plan_id: String,
        /// Launches.
        launches: Vec<Launch>,
        /// Terminations.
        terminations: Vec<Termination>,
    },
}

/// An order with the needs it serves and the client to send it by.
pub struct Parcel {
    /// What to ask.
    pub order: Order,
    /// Needs it serves, reported back with the outcome.
    pub keys: Vec<String>,
    /// Leading actuator.
    pub client: CapacityClient,
}

/// What became of an order.
#[derive(Debug)]
pub struct Dispatched {
    /// Needs it served.
    pub keys: Vec<String>,
    /// Parts that were refused, or why nothing was recorded.
    pub result: Result<Vec<capacity::Refusal>, Status>,
}

/// Numbers the orders of one session, and tells until when they hold.
#[derive(Clone, Debug)]
pub struct Numbering {
    /// Cluster.
    pub cluster_id: String,
    /// Epoch of the session.
    pub session_epoch: u64,
    plan_seq: u64,
    clock: Clock,
}

impl Numbering {
    /// Starts counting for a session.
    #[must_use]
    pub const fn new(cluster_id: String, session_epoch: u64, clock: Clock) -> Self {
        Self { cluster_id, session_epoch, plan_seq: 0, clock }
    }

    fn next_fence(&mut self) -> capacity::Fence {
        self.plan_seq += 1;
        capacity::Fence {
            cluster_id: self.cluster_id.clone(),
            session_epoch: self.session_epoch,
            plan_seq: self.plan_seq,
        }
    }
}

impl Parcel {
    /// Takes up what waits behind it, as far as that goes with it; gives back the first that does
    /// not.
    fn gather(&mut self, parcels: &mut mpsc::Receiver<Self>) -> Option<Self> {
        // One at a time: what has left the queue is sent or given back.
        while let Ok(next) = parcels.try_recv() {
            let apart = self.join(next);
            if apart.is_some() {
                return apart;
            }
        }
        None
    }

    /// Takes up effects of the same plan; gives back what has to go by itself.
    fn join(&mut self, mut other: Self) -> Option<Self> {
        let (
            Order::Plan { plan_id, launches, terminations },
            Order::Plan { plan_id: of, launches: more_launches, terminations: more_terminations },
        ) = (&mut self.order, &mut other.order)
        else {
            return Some(other);
        };
        if plan_id != of || launches.len() + more_launches.len() > LAUNCHES_PER_APPLY_MAX {
            return Some(other);
        }
        launches.append(more_launches);
        terminations.append(more_terminations);
        self.keys.append(&mut other.keys);
        None
    }
}

/// Sends parcels until the session drops its end of the queue. What gathers while a request is
/// under way leaves as one.
pub async fn run(
    mut numbering: Numbering,
    mut parcels: mpsc::Receiver<Parcel>,
    outcomes: mpsc::Sender<Dispatched>,
) {
    let mut apart = None;
    loop {
        let next = match apart.take() {
            Some(parcel) => Some(parcel),
            None => parcels.recv().await,
        };
        let Some(mut parcel) = next else { return };
        apart = parcel.gather(&mut parcels);
        let fence = numbering.next_fence();
        let expire_time = timestamp(numbering.clock.now_ms() + PLAN_TTL_MS);
        let result = deliver(parcel.order, fence, expire_time, parcel.client).await;
        if let Err(status) = &result {
            let name = reason::of_status(status).map(|(name, _)| name).unwrap_or_default();
            tracing::warn!(reason = name, message = status.message(), "actuator refused a request");
        }
        if outcomes.send(Dispatched { keys: parcel.keys, result }).await.is_err() {
            return;
        }
    }
}

async fn deliver(
    order: Order,
    fence: capacity::Fence,
    expire_time: Timestamp,
    mut client: CapacityClient,
) -> Result<Vec<capacity::Refusal>, Status> {
    match order {
        Order::Cluster { facts, node_classes } => {
            let request = capacity::PutClusterRequest {
                fence: Some(fence),
                cluster: Some(*facts),
                node_classes,
            };
            client.put_cluster(with_deadline(request, APPLY_DEADLINE)).await?;
            Ok(Vec::new())
        }
        Order::Plan { plan_id, launches, terminations } => {
            let parent = parent(&launches, &terminations);
            let span = tracing::info_span!(
                "scheduler.apply_plan",
                plan_id,
                launches = launches.len(),
                terminations = terminations.len(),
            );
            propagate::set_parent(&span, &parent);
            let request = capacity::ApplyPlanRequest {
                plan_id,
                fence: Some(fence),
                expire_time: Some(expire_time),
                launches,
                terminations,
            };
            let call = client.apply_plan(with_deadline(request, APPLY_DEADLINE));
            Ok(call.instrument(span).await?.into_inner().refusals)
        }
    }
}

/// The trace that asked for the first effect.
fn parent(launches: &[Launch], terminations: &[Termination]) -> String {
    let launch = launches.first().map(|launch| launch.traceparent.clone());
    let termination = || terminations.first().map(|termination| termination.traceparent.clone());
    launch.or_else(termination).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
    use longshore_runtime::client::channel;
    use longshore_runtime::propagate::InjectContext;

    use super::*;

    fn parcel(order: Order, key: &str) -> Parcel {
        let channel =
            channel("http://127.0.0.1:1", &longshore_runtime::net::Network::System).unwrap();
        let client = CapacityServiceClient::with_interceptor(channel, InjectContext);
        Parcel { order, keys: vec![key.to_owned()], client }
    }

    fn plan(plan_id: &str, launches: usize) -> Order {
        let launches = vec![Launch::default(); launches];
        Order::Plan { plan_id: plan_id.to_owned(), launches, terminations: Vec::new() }
    }

    #[tokio::test]
    async fn what_belongs_to_one_plan_leaves_as_one() {
        let mut first = parcel(plan("p1", 1), "a");
        assert!(first.join(parcel(plan("p1", 2), "b")).is_none());
        assert_eq!(first.keys, ["a", "b"]);
        assert!(matches!(&first.order, Order::Plan { launches, .. } if launches.len() == 3));
        assert!(first.join(parcel(plan("p2", 1), "c")).is_some(), "of another plan");
        assert!(first.join(parcel(plan("p1", LAUNCHES_PER_APPLY_MAX), "d")).is_some(), "too many");
        let facts = Order::Cluster { facts: Box::default(), node_classes: Vec::new() };
        assert!(first.join(parcel(facts, "e")).is_some(), "no plan");
        assert_eq!(first.keys, ["a", "b"]);
    }

    #[tokio::test]
    async fn nothing_that_waits_behind_another_plan_is_lost() {
        let (parcels, queue) = mpsc::channel(QUEUE);
        for (plan_id, key) in [("p1", "a"), ("p2", "b"), ("p3", "c"), ("p3", "d"), ("p1", "e")] {
            assert!(parcels.try_send(parcel(plan(plan_id, 1), key)).is_ok());
        }
        drop(parcels);
        let (outcomes, mut told) = mpsc::channel(QUEUE);
        // Nobody listens there: each order is refused, which is an outcome, too.
        let clock = longshore_runtime::platform::Platform::system().clock;
        run(Numbering::new("c".to_owned(), 1, clock), queue, outcomes).await;
        let mut served = Vec::new();
        while let Some(outcome) = told.recv().await {
            served.push(outcome.keys.join(" "));
        }
        assert_eq!(served, ["a", "b", "c d", "e"]);
    }
}
