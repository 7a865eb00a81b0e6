//! Opening nodes to pods, all that wait for it together.
//!
//! Invariant: pods are let in while the node is closed to others (`pin.rs`), and it opens to these
//! when no node waits for its own pods any more, nor is one coming whose pods would find room on
//! it. For pods that cannot be let in so, the time between their nomination and the opening of
//! their node is as short as it can be, and no other node opens in it. kube-scheduler retries
//! waiting pods, one after the other, whenever a node joins or opens, and clears the nomination of
//! each whose own node is still closed; that pod then goes wherever there is room, and all others
//! are retried because of it. For the same reason a lost nomination is written again only once the
//! node is open.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot, watch};
use tokio::time::Instant;

use super::nominate::{Nomination, open};
use super::pin::BOUND_WITHIN;
use super::{DirectiveError, Directives};
use crate::api::NodeClaim;
use crate::index::Index;
use crate::lifecycle::initialize;
use crate::names;
use crate::patch::{Precondition, edit_node};

/// When no waiting pod has changed for this long, kube-scheduler is through with its retries.
const CALM: Duration = Duration::from_millis(60);
/// How long nodes are kept closed at most to await that.
const CALM_WITHIN: Duration = Duration::from_millis(600);
/// How long nodes whose own pods are bound are kept closed at most for the sake of others: as long
/// as these may wait for their pods.
const PINNED_WITHIN: Duration = BOUND_WITHIN;
/// How long a node with room is kept closed at most for the sake of pods whose own node has yet to
/// come. Nodes that are launched together come seconds apart, and pods that arrive meanwhile are
/// let in.
const HELD_WITHIN: Duration = PINNED_WITHIN;
/// How often it is looked whether nodes still are to be kept closed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// After this a write has come back with the watch.
const LAG_MAX: Duration = Duration::from_secs(1);
/// How long an open node's pods are watched until they are bound, so that a nomination cleared
/// meanwhile is written again.
const SETTLED_WITHIN: Duration = Duration::from_millis(500);

/// Pods pinned or nominated at once: enough to keep an API server busy, few enough for its
/// fairness.
const WRITES_MAX: usize = 64;

/// Where the nodes to be opened meet. Clones share one meeting.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    waiting: Arc<Mutex<Vec<Opening>>>,
    /// Held by whoever opens everything that waits.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// How many closed nodes are waiting for pods that are pinned to them.
    pinning: watch::Sender<usize>,
    /// Writes about pods under way, of all nodes together.
    writes: Writes,
}

#[derive(Clone, Debug)]
struct Writes(Arc<Semaphore>);

impl Default for Writes {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(WRITES_MAX)))
    }
}

/// A node that waits for its pinned pods, until this is dropped.
pub(super) struct Pinning<'a>(&'a watch::Sender<usize>);

impl Drop for Pinning<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// The node as it is once it is open.
type Opened = Result<Node, DirectiveError>;

/// A node to be opened.
#[derive(Debug)]
struct Opening {
    claim: NodeClaim,
    node: Node,
    nominations: Vec<Nomination>,
    /// True when pods that wait would come once it is open, others than those that it was told of.
    draws: bool,
    since: Instant,
    answer: oneshot::Sender<Opened>,
}

impl Opening {
    /// True while it would draw in one of `elsewhere`, the shapes of pods that have a node of their
    /// own to come.
    fn is_held(&self, index: &Index, elsewhere: &BTreeSet<&str>) -> bool {
        self.draws
            && self.since.elapsed() < HELD_WITHIN
            && index.has_room(&self.node.name_any(), elsewhere)
    }
}

impl Admission {
    fn waiting(&self) -> MutexGuard<'_, Vec<Opening>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a node as waiting for its pinned pods.
    pub(super) fn pins(&self) -> Pinning<'_> {
        self.pinning.send_modify(|count| *count += 1);
        Pinning(&self.pinning)
    }

    /// A place for one write about a pod: many nodes may be opening at once.
    pub(super) async fn write(&self) -> Option<SemaphorePermit<'_>> {
        // Never closed.
        self.writes.0.acquire().await.ok()
    }

    /// Waits until no node waits for its pinned pods: what opens before draws them in.
    async fn await_pinned(&self) {
        let mut pinning = self.pinning.subscribe();
        let none = pinning.wait_for(|count| *count == 0);
        // The sender lives in self, so only time can run out.
        let _ = tokio::time::timeout(PINNED_WITHIN, none).await;
    }

    /// True while a closed node waits for pods that are pinned to it.
    pub(super) fn is_pinning(&self) -> bool {
        *self.pinning.borrow() > 0
    }

    fn join(&self, opening: Opening) {
        self.waiting().push(opening);
    }

    /// True when a pod of some node is out yet, and its nomination could be cleared.
    fn nominates(&self, index: &Index) -> bool {
        self.waiting().iter().flat_map(|it| &it.nominations).any(|it| index.is_out(&it.pod))
    }

    /// All that may open now. Nobody awaits the answer any more of what an earlier session asked
    /// for.
    fn take_ready(&self, index: &Index) -> Vec<Opening> {
        let mut waiting = self.waiting();
        let mut all = std::mem::take(&mut *waiting);
        all.retain(|opening| !opening.answer.is_closed());
        let own = all.iter().flat_map(|opening| &opening.nominations);
        let own: BTreeSet<&str> = own.map(|it| it.pod.as_str()).collect();
        let elsewhere = index.awaited_elsewhere(&own);
        let (held, ready) = all.into_iter().partition(|opening| opening.is_held(index, &elsewhere));
        *waiting = held;
        ready
    }
}

impl Directives {
    /// Opens a node: first to its own pods, one by one, then to all, together with all others that
    /// wait for it. `draws` is true when others than these pods would come once it is open.
    pub(super) async fn open_node(
        &self,
        claim: &NodeClaim,
        node: Node,
        pods: &[String],
        draws: bool,
    ) -> Opened {
        let name = node.name_any();
        Box::pin(self.pin(&node, pods)).await;
        let nominations = Nomination::all(&name, pods);
        let (answer, outcome) = oneshot::channel();
        let since = Instant::now();
        let (claim, told) = (claim.clone(), nominations.clone());
        self.admission.join(Opening { claim, node, nominations: told, draws, since, answer });
        let opened = self.opened(outcome).await.unwrap_or_else(|| {
            let text = format!("Node {name} was not opened: the session ended meanwhile");
            Err(DirectiveError::refused("INTERRUPTED", text))
        })?;
        self.settle(&nominations).await;
        Ok(opened)
    }

    /// Waits until the node is open; whoever has the turn opens all that may, until its own is.
    /// Nothing when whoever was opening it was cut off.
    async fn opened(&self, mut outcome: oneshot::Receiver<Opened>) -> Option<Opened> {
        let _turn = tokio::select! {
            biased;
            answered = &mut outcome => return answered.ok(),
            turn = self.admission.turn.lock() => turn,
        };
        loop {
            self.admission.await_pinned().await;
            if self.store.read(|index| self.admission.nominates(index)) {
                self.await_calm().await;
            }
            let ready = self.store.read(|index| self.admission.take_ready(index));
            self.open_all(ready).await;
            match outcome.try_recv() {
                Err(TryRecvError::Empty) => tokio::time::sleep(LOOK_EVERY).await,
                answered => return answered.ok(),
            }
        }
    }

    async fn open_all(&self, openings: Vec<Opening>) {
        let nominations: Vec<Nomination> =
            openings.iter().flat_map(|opening| opening.nominations.clone()).collect();
        self.nominate(&nominations).await;
        let nodes = self.nodes();
        let open_one = async |Opening { claim, node, since, answer, .. }: Opening| {
            let name = node.name_any();
            let door = |node: &mut Node| self.admit(&claim, node);
            // Its own write may not have come back yet, and what it knew long ago is outdated.
            let known = if since.elapsed() < LAG_MAX { Some(node) } else { self.known_node(&name) };
            let edited = edit_node(&nodes, &name, known, Precondition::Service, door).await;
            let opened = edited
                .map_err(DirectiveError::from)
                .and_then(|node| node.ok_or_else(|| gone(&name)));
            // Who does not wait any more has been cut off.
            let _ = answer.send(opened);
        };
        futures::future::join_all(openings.into_iter().map(open_one)).await;
    }

    /// Opens a node to pods, and marks it when it takes them at once.
    pub(super) fn admit(&self, claim: &NodeClaim, node: &mut Node) {
        if self.store.read(|index| initialize::is_complete(index, claim, node)) {
            initialize::mark(node);
        }
        node.labels_mut().insert(names::REGISTERED.to_owned(), "true".to_owned());
        if let Some(taints) = node.spec.as_mut().and_then(|spec| spec.taints.as_mut()) {
            taints.retain(|taint| taint.key != names::UNREGISTERED_TAINT);
        }
    }

    /// Waits until kube-scheduler does not retry waiting pods, which shows in their conditions.
    async fn await_calm(&self) {
        let end = Instant::now() + CALM_WITHIN;
        while Instant::now() < end {
            let before = self.store.read(Index::stirs);
            if !self.store.until(CALM, |index| index.stirs() != before).await {
                return;
            }
        }
    }

    /// Waits until the pods of an open node are bound, and nominates again those whose nomination
    /// was cleared while it was closed.
    async fn settle(&self, nominations: &[Nomination]) {
        let end = Instant::now() + SETTLED_WITHIN;
        let bound = |index: &Index| !nominations.iter().any(|n| index.is_out(&n.pod));
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let moved = |index: &Index| bound(index) || !open(index, nominations).is_empty();
            if !self.store.until(left, moved).await {
                tracing::debug!("not all planned pods were bound at once");
                return;
            }
            if self.store.read(bound) || self.nominate(nominations).await == 0 {
                return;
            }
        }
    }
}

/// The node was deleted meanwhile.
pub(super) fn gone(node: &str) -> DirectiveError {
    DirectiveError::refused("NOT_FOUND", format!("Node {node} does not exist any more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_the_turn_takes_all_that_wait() {
        let admission = Admission::default();
        let class = serde_json::json!({ "group": "g", "kind": "k", "name": "default" });
        let spec = serde_json::json!({ "requirements": [], "nodeClassRef": class });
        let claim = NodeClaim::new("c", serde_json::from_value(spec).unwrap());
        let mut waiting = Vec::new();
        for name in ["a", "b", "of a session that has ended"] {
            let mut node = Node::default();
            node.metadata.name = Some(name.to_owned());
            let (answer, outcome) = oneshot::channel();
            let (claim, since, nominations) = (claim.clone(), Instant::now(), Vec::new());
            admission.join(Opening { claim, node, nominations, draws: true, since, answer });
            waiting.push(outcome);
        }
        waiting.pop();
        let index = Index::default();
        let taken: Vec<String> =
            admission.take_ready(&index).iter().map(|o| o.node.name_any()).collect();
        assert_eq!(taken, ["a", "b"]);
        assert!(admission.take_ready(&index).is_empty(), "nobody is opened twice");
    }
}
