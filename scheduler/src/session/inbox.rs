//! What comes in: messages of the watcher, and what became of requests.
//!
//! Invariant: it changes state and nothing else; every effect is derived from the whole state
//! afterwards.

use std::time::Duration;

use futures::FutureExt as _;
use longshore_proto::cluster::v1 as cluster;
use longshore_proto::cluster::v1::sync_response::Message;
use longshore_proto::limits::SYNC_WINDOW;
use longshore_proto::reason;
use longshore_proto::types::v1::ObjectChange;
use longshore_runtime::planted;
use tokio::time::Instant;
use tonic::{Status, Streaming};

use super::Session;
use super::dispatch::Dispatched;
use super::protocol::{Step, bounded};
use super::supply;
use crate::proof;
use crate::region::RegionState;
use crate::region::directory::Region;

/// A plan that the watcher refused in part is made anew after this long, not at once: what stood in
/// its way is likely still there.
const REFUSED_AGAIN: Duration = Duration::from_secs(2);
/// After the end of a session the first plan of the next waits for this long: claims that it has
/// asked for are on their way into the view, and their pods need no others.
const RECONNECTED: Duration = Duration::from_secs(3);

/// When nothing that an earlier session has asked for is on its way any more, for one that begins.
pub(super) fn settled_at(hello: &cluster::Hello) -> Instant {
    let idle = hello.idle.and_then(|idle| Duration::try_from(idle).ok()).unwrap_or_default();
    Instant::now() + RECONNECTED.saturating_sub(idle)
}

/// The messages that have come, at least one; none when the stream has ended. What is there already
/// needs no pass of its own.
pub(super) async fn arrived(
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

impl Session {
    pub(super) fn receive(&mut self, message: cluster::SyncRequest) -> Result<(), Status> {
        let step = self.receiver.receive(message)?;
        self.weigh(&step);
        match step {
            Step::Reset { revision, changes } => {
                self.view_is_whole(changes);
                self.is_proven()?;
                tracing::info!(cluster = self.state.cluster_id(), revision, "view is whole");
                self.planning.want("");
                self.acknowledge(revision);
            }
            Step::Apply { revision, changes, traceparent } => {
                let now_ms = self.session_ms();
                let stir = self.state.apply(changes, now_ms);
                self.planning.cadence.stir(stir, &traceparent);
                bounded(self.state.digest().0)?;
                self.is_proven()?;
                self.acknowledge(revision);
            }
            Step::Acknowledge { revision } => self.acknowledge(revision),
            Step::Compare(bookmark) => self.compare(&bookmark),
            Step::Result(result) => self.directive_result(&result),
            Step::Resync { reason } => self.resync(reason),
        }
        let counting = self.state.foresight().is_counting(self.state.view().world());
        self.planning.cadence.count(counting);
        self.fits()
    }

    /// Whether the cluster is the one that its watcher has proved to be.
    fn is_proven(&self) -> Result<(), Status> {
        let facts = self.state.facts();
        let confirmed =
            facts.map_or(Ok(()), |facts| proof::confirm(facts, self.identity.as_deref()));
        confirmed.map_err(|status| *status)
    }

    /// Takes note of what a step brings into memory.
    fn weigh(&mut self, step: &Step) {
        let Some(memory) = &mut self.memory else { return };
        match step {
            Step::Reset { changes, .. } => {
                memory.begin();
                memory.note(changes);
            }
            Step::Apply { changes, .. } => memory.note(changes),
            Step::Acknowledge { .. } | Step::Compare(_) | Step::Result(_) | Step::Resync { .. } => {
            }
        }
    }

    /// Whether the view, and what of a snapshot has come, is within what the session may take.
    fn fits(&mut self) -> Result<(), Status> {
        let objects = usize::try_from(self.state.digest().0).unwrap_or(usize::MAX);
        let coming = self.receiver.coming();
        self.memory.as_mut().map_or(Ok(()), |memory| memory.hold(objects, coming))
    }

    fn view_is_whole(&mut self, changes: Vec<ObjectChange>) {
        let now_ms = self.session_ms();
        self.state.reset(changes, now_ms);
        self.safety.whole(now_ms);
        self.planning.shown.synced(true);
        self.follows_until = self.follows_until.filter(|_| !planted::is("S1b"));
        if self.follows_until.is_some() {
            self.planning.cadence.hold(RECONNECTED);
        }
    }

    /// The first plan waits no longer than it has to: for what an earlier session has asked for,
    /// and for what can be bought here, of which pods would be told else that it is not known.
    pub(super) fn settle(&mut self, region: &Region) {
        let Some(until) = self.follows_until else { return };
        let (cluster, classes) = (self.state.cluster_id(), self.state.node_classes());
        let told = |region: &RegionState| {
            classes.keys().all(|class| supply::is_told(cluster, class, region))
        };
        if region.read(told) {
            self.follows_until = None;
            self.planning.cadence.hold(until.saturating_duration_since(Instant::now()));
        }
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
        self.planning.shown.synced(false);
        self.outbox.send(Message::Resync(cluster::Resync { reason }));
    }

    fn directive_result(&mut self, result: &cluster::DirectiveResult) {
        let now_ms = self.session_ms();
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
        self.planning.cadence.wake_after(REFUSED_AGAIN);
    }

    pub(super) fn outcome(&mut self, outcome: &Dispatched) {
        let now_ms = self.session_ms();
        for key in &outcome.keys {
            if outcome.result.is_err() {
                self.outbox.fail(key, now_ms, &self.supervisor.platform().entropy);
            } else {
                self.outbox.succeed(key);
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
}
