//! One task per connected cluster: it owns the view, plans, and directs.
//!
//! Invariant: one straight loop. Messages, region changes, outcomes and time only change state;
//! every effect is derived from the whole state by [`Session::pass`], on a signal and on a timer.

mod buffers;
mod candidates;
mod commit;
mod dispatch;
mod effects;
mod explain;
mod joined;
mod lifecycle;
mod live;
mod outage;
mod outbox;
mod overlays;
mod planning;
mod pools;
mod protocol;
mod record;
mod state;
mod status;
mod supply;

use std::time::Duration;

use futures::FutureExt as _;
use longshore_proto::cluster::v1 as cluster;
use longshore_proto::cluster::v1::sync_response::Message;
use longshore_proto::limits::{
    BOOKMARK_INTERVAL_SECONDS, DIRECTIVE_QUEUE, MESSAGE_BYTES_MAX, PROTOCOL_VERSION, SYNC_WINDOW,
};
use longshore_proto::planning::v1 as wire_planning;
use longshore_proto::reason::{self, Reason};
use longshore_runtime::tasks::Supervisor;
use longshore_runtime::workers::Urgency;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use self::dispatch::{Numbering, Outcome, Parcel};
use self::outage::Outage;
use self::outbox::Outbox;
use self::planning::Planning;
use self::protocol::{Receiver, Step};
use self::state::ClusterState;
use crate::region::directory::Regions;
use crate::service::planning::refusal;
use crate::settings::Settings;

pub use self::protocol::hello;

/// The timer behind every signal: what needs doing is looked at anew at least this often.
const TICK: Duration = Duration::from_secs(1);
/// A plan that the watcher refused in part is made anew after this long, not at once: what stood in its
/// way is likely still there.
const REFUSED_AGAIN: Duration = Duration::from_secs(2);
/// Sign of life after which a silent watcher is dropped: three bookmarks missed.
const SILENCE: Duration = Duration::from_secs(3 * BOOKMARK_INTERVAL_SECONDS);

/// A question to a session.
pub enum Query {
    /// What the newest plan does with a pod.
    ExplainPod {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<wire_planning::ExplainPodResponse, Status>>,
    },
}

/// What a session is made of.
pub struct Parts {
    /// First message of the stream.
    pub hello: cluster::Hello,
    /// The stream from the watcher.
    pub inbound: Streaming<cluster::SyncRequest>,
    /// The stream to the watcher.
    pub outbound: mpsc::Sender<Result<cluster::SyncResponse, Status>>,
    /// The regions within reach.
    pub regions: Regions,
    /// Questions from the planning service.
    pub queries: mpsc::Receiver<Query>,
    /// Cancelled when another session takes over or the process ends.
    pub token: CancellationToken,
    /// Owner of the session's tasks.
    pub supervisor: Supervisor,
    /// How plans are made.
    pub settings: Settings,
}

/// A session under way.
struct Session {
    state: ClusterState,
    receiver: Receiver,
    outbox: Outbox,
    planning: Planning,
    regions: Regions,
    parcels: mpsc::Sender<Parcel>,
    /// What the newest plan knew of the region's supply.
    supply: Option<(u64, u64)>,
    /// Why nothing can be bought at present, as people have been told.
    outage: Option<Outage>,
    /// Whether the watcher lets planned pods onto closed nodes one by one.
    pins_pods: bool,
    /// When people are told again what has changed, in milliseconds since 1970.
    status_due_ms: i64,
    /// Owner of tasks, and what the process has of the world outside.
    supervisor: Supervisor,
}

/// Size of the channel towards the watcher: directives and the answers to a full window.
#[must_use]
pub const fn outbound_queue() -> usize {
    DIRECTIVE_QUEUE + SYNC_WINDOW as usize
}

/// Runs a session until the watcher leaves, the token is cancelled or the protocol is broken.
///
/// # Errors
/// The status that the stream ended with.
pub async fn run(parts: Parts) -> Result<(), Status> {
    let Parts { hello, mut inbound, outbound, regions, mut queries, token, supervisor, settings } =
        parts;
    let clock = supervisor.platform().clock.clone();
    let numbering = Numbering::new(hello.cluster_id.clone(), hello.session_epoch, clock);
    let (parcels, parcel_queue) = mpsc::channel(dispatch::QUEUE);
    let (outcomes, mut outcome_queue) = mpsc::channel(dispatch::QUEUE);
    let dispatching = dispatch::run(numbering, parcel_queue, outcomes);
    let ended = token.clone();
    // Without its road to the actuator a session is of no use; the next one has a new one.
    supervisor.spawn_contained("dispatch", unless(token.clone(), dispatching), move |outcome| {
        if outcome.is_err() {
            ended.cancel();
        }
    });
    let mut changes = regions.changes();
    let planning = Planning::new(hello.session_epoch, settings, supervisor.platform());
    let state = ClusterState::new(hello.cluster_id.clone());
    let mut session = Session::new(state, planning, outbound, (regions, parcels), supervisor);
    session.pins_pods = hello.pins_pods;
    session.outbox.send(welcome());
    let mut heard = Instant::now();
    loop {
        // A moment that has passed is one at which the pass could not begin a plan: a signal or the
        // timer comes next, not this loop again at once.
        let now = Instant::now();
        let wake = session.planning.wake_at().filter(|at| *at > now).unwrap_or(now + TICK);
        tokio::select! {
            messages = arrived(&mut inbound) => {
                let messages = messages?;
                if messages.is_empty() {
                    return Ok(());
                }
                heard = Instant::now();
                messages.into_iter().try_for_each(|message| session.receive(message))?;
            }
            _ = changes.changed() => mark_seen(&mut changes),
            Some(outcome) = outcome_queue.recv() => session.outcome(&outcome),
            proposal = session.planning.finished() => {
                proposal.into_iter().for_each(|proposal| session.commit(proposal));
            }
            Some(query) = queries.recv() => session.answer(query),
            () = tokio::time::sleep_until(wake.min(Instant::now() + TICK)) => {}
            () = token.cancelled() => return Err(superseded(&hello.cluster_id)),
        }
        if heard.elapsed() > SILENCE {
            return Err(Status::deadline_exceeded("no message from the watcher for too long"));
        }
        session.pass();
    }
}

/// The messages that have come, at least one; none when the stream has ended. What is there already
/// needs no pass of its own.
async fn arrived(
    inbound: &mut Streaming<cluster::SyncRequest>,
) -> Result<Vec<cluster::SyncRequest>, Status> {
    let first = inbound.message().await.map_err(reason::of_receiving)?;
    let mut messages: Vec<_> = first.into_iter().collect();
    while !messages.is_empty() && messages.len() < SYNC_WINDOW as usize {
        let Some(next) = inbound.message().now_or_never() else { break };
        let Some(next) = next.map_err(reason::of_receiving)? else { break };
        messages.push(next);
    }
    Ok(messages)
}

/// Runs a task until the token is cancelled.
async fn unless(token: CancellationToken, task: impl Future<Output = ()>) -> anyhow::Result<()> {
    token.run_until_cancelled(task).await;
    Ok(())
}

fn mark_seen(changes: &mut watch::Receiver<u64>) {
    changes.borrow_and_update();
}

fn superseded(cluster_id: &str) -> Status {
    Reason::SessionSuperseded.status(format!("the session of cluster {cluster_id} ends; reconnect"))
}

/// Resumption is never promised: a scheduler keeps nothing that outlives its stream.
fn welcome() -> Message {
    Message::Welcome(cluster::Welcome {
        resumed: false,
        resume_revision: 0,
        window: SYNC_WINDOW,
        message_bytes_max: u32::try_from(MESSAGE_BYTES_MAX).unwrap_or(u32::MAX),
        bookmark_interval: Some(prost_types::Duration {
            seconds: i64::try_from(BOOKMARK_INTERVAL_SECONDS).unwrap_or(i64::MAX),
            nanos: 0,
        }),
        protocol_version: PROTOCOL_VERSION,
    })
}

impl Session {
    fn new(
        state: ClusterState,
        planning: Planning,
        outbound: mpsc::Sender<Result<cluster::SyncResponse, Status>>,
        (regions, parcels): (Regions, mpsc::Sender<Parcel>),
        supervisor: Supervisor,
    ) -> Self {
        Self {
            state,
            receiver: Receiver::default(),
            outbox: Outbox::new(outbound),
            planning,
            regions,
            parcels,
            supply: None,
            outage: None,
            pins_pods: false,
            status_due_ms: 0,
            supervisor,
        }
    }

    fn now_ms(&self) -> i64 {
        self.supervisor.platform().clock.now_ms()
    }

    fn receive(&mut self, message: cluster::SyncRequest) -> Result<(), Status> {
        match self.receiver.receive(message)? {
            Step::Reset { revision, changes } => {
                self.state.reset(changes, self.now_ms());
                tracing::info!(cluster = self.state.cluster_id(), revision, "view is whole");
                self.planning.want("");
                self.acknowledge(revision);
            }
            Step::Apply { revision, changes, traceparent } => {
                let now_ms = self.now_ms();
                if self.state.apply(changes, now_ms) {
                    self.planning.want(&traceparent);
                }
                self.acknowledge(revision);
            }
            Step::Acknowledge { revision } => self.acknowledge(revision),
            Step::Compare(bookmark) => self.compare(&bookmark),
            Step::Result(result) => self.directive_result(&result),
            Step::Resync { reason } => self.resync(reason),
        }
        Ok(())
    }

    fn acknowledge(&self, revision: u64) {
        self.outbox.send(Message::Ack(cluster::Ack { revision, ..Default::default() }));
    }

    fn compare(&mut self, bookmark: &cluster::Bookmark) {
        if self.receiver.revision() != Some(bookmark.revision) {
            return;
        }
        let (object_count, digest) = self.state.digest();
        if (object_count, digest) != (bookmark.object_count, bookmark.digest) {
            self.resync(format!(
                "views have drifted apart: {object_count} objects here, {} there",
                bookmark.object_count
            ));
        }
    }

    fn resync(&mut self, reason: String) {
        tracing::warn!(cluster = self.state.cluster_id(), reason, "asking for a snapshot");
        self.receiver.expect_snapshot();
        self.outbox.send(Message::Resync(cluster::Resync { reason }));
    }

    fn directive_result(&mut self, result: &cluster::DirectiveResult) {
        let now_ms = self.now_ms();
        let Some((asked, done)) = self.outbox.answered(result, now_ms) else { return };
        if done {
            if asked.creates {
                self.state.created(&asked.claim);
            }
            return;
        }
        tracing::warn!(
            need = asked.key,
            status = result.status().as_str_name(),
            reason = result.reason,
            message = result.message,
            "directive not carried out"
        );
        self.state.refused(&asked.claim);
        self.planning.want_after(REFUSED_AGAIN);
    }

    fn outcome(&mut self, outcome: &Outcome) {
        const RETRY_AFTER_MS: i64 = 500;
        if outcome.result.is_err() {
            let again_ms = self.now_ms() + RETRY_AFTER_MS;
            for key in &outcome.keys {
                self.outbox.rest(key, again_ms);
            }
        }
        for refusal in outcome.result.as_deref().unwrap_or_default() {
            tracing::warn!(
                id = refusal.id,
                reason = refusal.reason,
                message = refusal.message,
                "part of a plan refused"
            );
        }
    }

    fn answer(&mut self, query: Query) {
        let Query::ExplainPod { namespace, name, answer } = query;
        let outage = self.outage.as_ref();
        let pod = (namespace.as_str(), name.as_str());
        let told = explain::pod(&self.state, &self.planning, outage, pod);
        let region = self.state.region().and_then(|name| self.regions.get(name));
        let (uid, told) = match told {
            Ok(told) => told,
            // The asker may have gone; nobody else wants the answer.
            Err(status) => return drop(answer.send(Err(status))),
        };
        let now_ms = self.now_ms();
        let input = region.map(|region| self.planning.input(&self.state, &region, now_ms));
        // Plans are made for it, so it is not for this loop to wait.
        let choice = move || input.and_then(|input| explain::choice(&input, &uid));
        let tenant = self.state.cluster_id();
        let chosen = self.supervisor.platform().workers.run(tenant, Urgency::WhatIf, choice);
        let explained = async move {
            let told = match chosen.await {
                Ok(explanation) => Ok(wire_planning::ExplainPodResponse { explanation, ..told }),
                Err(error) => Err(refusal(&error)),
            };
            drop(answer.send(told));
            Ok(())
        };
        self.supervisor.spawn_contained("explain", explained, drop);
    }

    /// Derives every effect that the state calls for. Cheap when nothing does.
    fn pass(&mut self) {
        let now_ms = self.now_ms();
        self.outbox.expire(now_ms);
        if self.state.expire(now_ms) {
            self.planning.want("");
        }
        if self.receiver.revision().is_none() {
            return;
        }
        self.watch_region();
        self.publish_status(now_ms);
        let Some(region) = self.state.region().and_then(|name| self.regions.get(name)) else {
            return;
        };
        let supply = region.read(|state| (state.stream, state.supply));
        if self.supply != Some(supply) {
            self.supply = Some(supply);
            self.planning.want("");
        }
        self.live(&region, now_ms);
        self.planning.start_if_due(&mut self.state, &region, now_ms);
    }
}
