//! Watch: the state in messages that fit, then changes.
//!
//! Invariant: changes arrive in the order they were posted; a subscriber that falls behind or
//! outlives the leader is told so and subscribes again.

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use futures::stream::{self, Stream};
use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::capacity::v1::{RegionChange, WatchResponse};
use longshore_proto::limits::CHUNK_BYTES_TARGET;
use longshore_proto::reason::Reason;
use longshore_runtime::budget::Grant;
use prost::Message;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tonic::Status;

use super::not_leader;
use crate::board::{Posted, Subscription};

/// Most changes in a message.
const MESSAGE_CHANGES_MAX: usize = 1000;

/// What a subscriber gets.
pub type Changes = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

/// The stream of a subscriber to some clusters; none named means all.
pub fn stream(subscription: Subscription, clusters: BTreeSet<String>, place: Grant) -> Changes {
    let Subscription { revision, state, changes } = subscription;
    let wanted: Vec<_> = state.into_iter().filter(|change| concerns(change, &clusters)).collect();
    let snapshot = stream::iter(Chunks { left: wanted.into(), revision, ended: false }.map(Ok));
    let following = Following { changes, clusters };
    let live = stream::unfold(Some(following), move |state| {
        // The subscriber has its place for as long as the stream lives.
        let _ = &place;
        async move {
            let mut following = state?;
            match following.next().await {
                Ok(message) => Some((Ok(message), Some(following))),
                Err(status) => Some((Err(*status), None)),
            }
        }
    });
    Box::pin(futures::StreamExt::chain(snapshot, live))
}

/// The state in messages, the last of which says so. Each is made when it is asked for: a
/// subscriber that does not read keeps one, not all. A catalogue may be larger than the target and
/// then travels alone.
struct Chunks {
    left: VecDeque<Arc<RegionChange>>,
    revision: u64,
    ended: bool,
}

impl Iterator for Chunks {
    type Item = WatchResponse;

    fn next(&mut self) -> Option<WatchResponse> {
        if self.ended {
            return None;
        }
        let mut changes: Vec<RegionChange> = Vec::new();
        let mut bytes = 0;
        while let Some(change) = self.left.front() {
            let size = change.encoded_len();
            let full = bytes + size > CHUNK_BYTES_TARGET || changes.len() >= MESSAGE_CHANGES_MAX;
            if full && !changes.is_empty() {
                return Some(message(self.revision, changes));
            }
            bytes += size;
            changes.push((**change).clone());
            self.left.pop_front();
        }
        self.ended = true;
        Some(WatchResponse { snapshot_end: true, ..message(self.revision, changes) })
    }
}

fn message(revision: u64, changes: Vec<RegionChange>) -> WatchResponse {
    WatchResponse { revision, snapshot_end: false, changes }
}

struct Following {
    changes: Receiver<Posted>,
    clusters: BTreeSet<String>,
}

impl Following {
    /// The next message: a change, and those that are there already.
    async fn next(&mut self) -> Result<WatchResponse, Box<Status>> {
        let mut out = Vec::new();
        let mut revision = 0;
        let mut bytes = 0;
        while out.is_empty() {
            let posted = match self.changes.recv().await {
                Ok(posted) => posted,
                Err(RecvError::Closed) => return Err(Box::new(not_leader(""))),
                Err(RecvError::Lagged(missed)) => return Err(lagged(missed)),
            };
            revision = posted.revision;
            self.take(posted, &mut out, &mut bytes);
        }
        while bytes < CHUNK_BYTES_TARGET && out.len() < MESSAGE_CHANGES_MAX {
            match self.changes.try_recv() {
                Ok(posted) => {
                    revision = posted.revision;
                    self.take(posted, &mut out, &mut bytes);
                }
                Err(TryRecvError::Lagged(missed)) => return Err(lagged(missed)),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        Ok(message(revision, out))
    }

    fn take(&self, posted: Posted, out: &mut Vec<RegionChange>, bytes: &mut usize) {
        if concerns(&posted.change, &self.clusters) {
            *bytes += posted.change.encoded_len();
            out.push((*posted.change).clone());
        }
    }
}

fn lagged(missed: u64) -> Box<Status> {
    let message = format!("the subscriber missed {missed} changes; subscribe again for the state");
    Box::new(Reason::Overloaded.status(message))
}

/// Whether a change is about one of the clusters, or about the region as a whole.
fn concerns(change: &RegionChange, clusters: &BTreeSet<String>) -> bool {
    let cluster = match &change.change {
        Some(Change::NodeClass(found)) => &found.cluster_id,
        Some(Change::Launch(found)) => &found.cluster_id,
        Some(Change::Instance(found)) => &found.cluster_id,
        Some(Change::Interruption(found)) => &found.cluster_id,
        Some(
            Change::Region(_) | Change::Catalogue(_) | Change::Offerings(_) | Change::Forgotten(_),
        )
        | None => return true,
    };
    clusters.is_empty() || clusters.contains(cluster)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Board;
    use futures::StreamExt;
    use longshore_proto::capacity::v1::LaunchState;
    use longshore_proto::types::v1::Catalogue;

    fn launch(id: usize, cluster: &str) -> Change {
        Change::Launch(LaunchState {
            launch_id: format!("l-{id}"),
            cluster_id: cluster.to_owned(),
            ..LaunchState::default()
        })
    }

    #[tokio::test]
    async fn the_state_comes_first_in_messages_that_fit() {
        let board = Board::new();
        let price_date = "x".repeat(CHUNK_BYTES_TARGET);
        board.post(Change::Catalogue(Catalogue { price_date, ..Catalogue::default() }));
        for id in 0..1500 {
            board.post(launch(id, "a"));
        }
        let left = board.subscribe().unwrap().state.into();
        let messages: Vec<_> = Chunks { left, revision: 7, ended: false }.collect();
        let sizes: Vec<_> = messages.iter().map(|m| m.changes.len()).collect();
        assert_eq!(sizes, [1, 1000, 500]);
        let ends: Vec<_> = messages.iter().map(|m| m.snapshot_end).collect();
        assert_eq!(ends, [false, false, true]);
    }

    #[tokio::test]
    async fn changes_of_other_clusters_stay_away_and_the_end_is_told() {
        let board = Board::new();
        let place = longshore_runtime::budget::Budget::new(2).open("x");
        let mut seen = stream(board.subscribe().unwrap(), ["a".to_owned()].into(), place);
        assert!(seen.next().await.unwrap().unwrap().snapshot_end);
        board.post(launch(1, "b"));
        board.post(launch(2, "a"));
        let message = seen.next().await.unwrap().unwrap();
        assert_eq!((message.changes.len(), message.revision), (1, 2));
        board.close();
        let status = seen.next().await.unwrap().unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable);
        assert!(seen.next().await.is_none());
    }
}
