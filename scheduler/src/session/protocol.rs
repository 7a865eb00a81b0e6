//! The receiving side of Sync as a pure state machine: messages in, steps out.
//!
//! Invariant: a view is only ever changed by a whole snapshot or by a delta on exactly its own
//! revision; anything else leads to Resync, never to a guess.

use longshore_proto::cluster::v1 as cluster;
use longshore_proto::cluster::v1::sync_request::Message;
use longshore_proto::cluster::v1::sync_response::Message as Answer;
use longshore_proto::limits::{
    BOOKMARK_INTERVAL_SECONDS, MESSAGE_BYTES_MAX, PROTOCOL_VERSION, SYNC_WINDOW, is_spoken,
};
use longshore_proto::reason::Reason;
use longshore_proto::types::v1::ObjectChange;
use longshore_runtime::planted;
use prost::Message as _;
use tonic::Status;

/// Most objects of a cluster: six times what Kubernetes is built for (150,000 pods and what belongs
/// to them).
pub const OBJECTS_MAX: u64 = 1_000_000;
/// Largest snapshot, in bytes: as many objects of a kilobyte each.
const SNAPSHOT_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Resumption is never promised: a scheduler keeps nothing that outlives its stream.
#[must_use]
pub fn welcome() -> Answer {
    Answer::Welcome(cluster::Welcome {
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

/// What the session does next.
#[derive(Debug)]
pub enum Step {
    /// Replace the view by these upserts.
    Reset {
        /// Revision of the new view.
        revision: u64,
        /// Its objects.
        changes: Vec<ObjectChange>,
    },
    /// Apply these changes to the view.
    Apply {
        /// Revision after them.
        revision: u64,
        /// The changes in order.
        changes: Vec<ObjectChange>,
        /// Trace of the observation; empty when untraced.
        traceparent: String,
    },
    /// Acknowledge without changing the view: credit for a part of a snapshot or a stale delta.
    Acknowledge {
        /// Revision to acknowledge.
        revision: u64,
    },
    /// Compare the digest.
    Compare(cluster::Bookmark),
    /// Note what became of a directive.
    Result(cluster::DirectiveResult),
    /// Ask for a snapshot.
    Resync {
        /// Why, for logs on both sides.
        reason: String,
    },
}

/// State of the receiving side.
#[derive(Debug, Default)]
pub struct Receiver {
    /// Revision of the view; absent until a snapshot is whole.
    revision: Option<u64>,
    /// Revision and objects of the snapshot being received.
    partial: Option<(u64, Vec<ObjectChange>)>,
    /// Bytes of them.
    partial_bytes: usize,
}

impl Receiver {
    /// Takes one message.
    ///
    /// # Errors
    /// When the message breaks the protocol; the stream ends with that status.
    pub fn receive(&mut self, request: cluster::SyncRequest) -> Result<Step, Status> {
        match request.message {
            None => Err(Reason::Malformed.status("Sync message without content")),
            Some(Message::Hello(_)) => {
                Err(Reason::ProtocolOrder.status("Hello is the first message and only that"))
            }
            Some(Message::SnapshotChunk(chunk)) => self.chunk(chunk),
            Some(Message::Delta(delta)) => Ok(self.delta(delta)),
            Some(Message::Bookmark(bookmark)) => Ok(Step::Compare(bookmark)),
            Some(Message::DirectiveResult(result)) => Ok(Step::Result(result)),
        }
    }

    /// Forgets the view: until the next snapshot is whole, deltas are ignored.
    pub fn expect_snapshot(&mut self) {
        self.revision = None;
        self.partial = None;
        self.partial_bytes = 0;
    }

    /// Revision of the view, when there is one.
    #[must_use]
    pub const fn revision(&self) -> Option<u64> {
        self.revision
    }

    /// Objects and bytes of the snapshot that is being received.
    #[must_use]
    pub fn coming(&self) -> (usize, usize) {
        (self.partial.as_ref().map_or(0, |(_, changes)| changes.len()), self.partial_bytes)
    }

    fn chunk(&mut self, chunk: cluster::SnapshotChunk) -> Result<Step, Status> {
        let (revision, changes) = self.partial.get_or_insert_with(|| (chunk.revision, Vec::new()));
        if *revision != chunk.revision {
            return Err(Reason::ProtocolOrder.status(format!(
                "snapshot chunk of revision {} inside the snapshot of revision {revision}",
                chunk.revision
            )));
        }
        self.partial_bytes += chunk.changes.iter().map(ObjectChange::encoded_len).sum::<usize>();
        let count = changes.len().saturating_add(chunk.changes.len());
        bounded(u64::try_from(count).unwrap_or(u64::MAX))?;
        if self.partial_bytes > SNAPSHOT_BYTES_MAX {
            return Err(Reason::Overloaded.status(format!(
                "the snapshot is larger than {SNAPSHOT_BYTES_MAX} bytes; a cluster so large needs to be \
                 split"
            )));
        }
        changes.extend(chunk.changes);
        if !chunk.last {
            return Ok(Step::Acknowledge { revision: chunk.revision });
        }
        let changes = std::mem::take(changes);
        self.partial = None;
        self.partial_bytes = 0;
        self.revision = Some(chunk.revision);
        Ok(Step::Reset { revision: chunk.revision, changes })
    }

    fn delta(&mut self, delta: cluster::Delta) -> Step {
        match self.revision {
            // A snapshot has been asked for or is under way; it will contain this change.
            None => Step::Acknowledge { revision: delta.revision },
            Some(revision) if revision == delta.base_revision && delta.revision > revision => {
                self.revision = Some(delta.revision);
                Step::Apply {
                    revision: delta.revision,
                    changes: delta.changes,
                    traceparent: delta.traceparent,
                }
            }
            Some(revision) => {
                self.expect_snapshot();
                Step::Resync {
                    reason: format!(
                        "delta {}..{} does not fit revision {revision}",
                        delta.base_revision, delta.revision
                    ),
                }
            }
        }
    }
}

/// Whether a view of so many objects is served.
///
/// # Errors
/// OVERLOADED when it is too large.
pub fn bounded(objects: u64) -> Result<(), Status> {
    if objects <= OBJECTS_MAX || planted::is("S27") {
        return Ok(());
    }
    Err(Reason::Overloaded.status(format!(
        "the cluster has {objects} objects that count, and a scheduler serves {OBJECTS_MAX} of a cluster \
         at most; split the cluster"
    )))
}

/// Checks the first message of a stream.
///
/// # Errors
/// When it is not a Hello, names no cluster, has no epoch, or speaks another version.
pub fn hello(request: Option<cluster::SyncRequest>) -> Result<cluster::Hello, Status> {
    let Some(Message::Hello(hello)) = request.and_then(|request| request.message) else {
        return Err(Reason::ProtocolOrder.status("the first message of Sync must be Hello"));
    };
    if !is_spoken(hello.protocol_version) {
        return Err(Reason::ProtocolVersion.status(format!(
            "watcher of cluster {:?} speaks Sync version {}, this scheduler speaks {}; upgrade the \
             older of the two",
            hello.cluster_id, hello.protocol_version, PROTOCOL_VERSION
        )));
    }
    if hello.cluster_id.is_empty() {
        return Err(Reason::Malformed.status("Hello.cluster_id is empty; set the cluster's name"));
    }
    if hello.session_epoch == 0 {
        return Err(Reason::Malformed.status("Hello.session_epoch must be at least 1"));
    }
    Ok(hello)
}

#[cfg(test)]
mod tests;
