//! The sending side of Sync as a pure state machine: what may be sent next, given the window.
//!
//! Invariant: never more than `window` chunks and deltas unacknowledged; a delta's base is what was
//! last sent; after a lost connection, either the scheduler resumes at a point that is known here,
//! or everything is sent again.

use std::collections::VecDeque;

use longshore_proto::cluster::v1::sync_request::Message;
use longshore_proto::cluster::v1::{Ack, Bookmark, Delta, SnapshotChunk, Welcome};
use longshore_proto::limits::{CHUNK_BYTES_TARGET, SYNC_WINDOW};
use prost::Message as _;
use prost::bytes::Bytes;

use crate::index::{Kept, Key, View};

/// A message that has not been acknowledged, and what it was about.
#[derive(Debug)]
struct InFlight {
    revision: u64,
    keys: Vec<Key>,
}

/// State of the sending side. Lives as long as the watcher leads, across sessions.
#[derive(Debug, Default)]
pub struct Sender {
    window: usize,
    token: Bytes,
    acknowledged: u64,
    /// Acknowledgements so far.
    acks: u64,
    in_flight: VecDeque<InFlight>,
    /// What has not been sent of a snapshot; nothing once its last chunk has been.
    snapshot: Option<Snapshot>,
}

/// A view as it was, of which a part is still to be sent.
#[derive(Debug)]
struct Snapshot {
    revision: u64,
    objects: std::vec::IntoIter<Kept>,
}

impl Snapshot {
    /// The next chunk, of about the target size; a view without objects has one, too.
    fn chunk(&mut self) -> SnapshotChunk {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        while bytes < CHUNK_BYTES_TARGET
            && let Some(object) = self.objects.next()
        {
            let change = object.upsert();
            bytes += change.encoded_len();
            changes.push(change);
        }
        SnapshotChunk { revision: self.revision, changes, last: self.objects.len() == 0 }
    }
}

impl Sender {
    /// Token for the next Hello; empty when the scheduler could not resume.
    #[must_use]
    pub fn resume_token(&self) -> Bytes {
        self.token.clone()
    }

    /// Starts a session: from where the scheduler resumes, or with a snapshot.
    pub fn welcome(&mut self, welcome: &Welcome, view: &mut View) {
        let window = if welcome.window == 0 { SYNC_WINDOW } else { welcome.window };
        self.window = usize::try_from(window).unwrap_or(usize::MAX);
        // One from before tombstones would take them for a mistake.
        let anew = view.show_tombstones(welcome.protocol_version != 0);
        let resumes = !anew && welcome.resumed && self.rewind(welcome.resume_revision, view);
        if !resumes {
            self.snapshot(view);
        }
    }

    /// Begins a snapshot; what was under way is forgotten.
    pub fn snapshot(&mut self, view: &mut View) {
        self.token = Bytes::new();
        self.in_flight.clear();
        let objects = view.snapshot().into_iter();
        self.snapshot = Some(Snapshot { revision: view.revision(), objects });
    }

    /// Takes the scheduler's credit.
    pub fn acknowledge(&mut self, ack: Ack) {
        while self.in_flight.front().is_some_and(|first| first.revision < ack.revision) {
            self.in_flight.pop_front();
        }
        // All chunks of a snapshot have one revision, and each has its own Ack.
        if self.in_flight.front().is_some_and(|first| first.revision == ack.revision) {
            self.in_flight.pop_front();
        }
        self.acknowledged = ack.revision;
        self.acks = self.acks.wrapping_add(1);
        if self.is_whole() {
            self.token = ack.resume_token;
        }
    }

    /// The next message, while the window is open and there is something to say.
    pub fn next(&mut self, view: &mut View, traceparent: &str) -> Option<Message> {
        if self.in_flight.len() >= self.window {
            return None;
        }
        if let Some(snapshot) = &mut self.snapshot {
            let chunk = snapshot.chunk();
            if chunk.last {
                self.snapshot = None;
            }
            self.in_flight.push_back(InFlight { revision: chunk.revision, keys: Vec::new() });
            return Some(Message::SnapshotChunk(chunk));
        }
        let step = view.step(CHUNK_BYTES_TARGET)?;
        self.in_flight.push_back(InFlight { revision: step.revision, keys: step.keys });
        Some(Message::Delta(Delta {
            base_revision: step.base_revision,
            revision: step.revision,
            changes: step.changes,
            traceparent: traceparent.to_owned(),
        }))
    }

    /// A sign of life, when the scheduler has been told everything.
    #[must_use]
    pub fn bookmark(&self, view: &View) -> Option<Message> {
        let (object_count, digest) = view.digest();
        let revision = view.revision();
        (self.is_whole() && view.is_clean()).then_some(Message::Bookmark(Bookmark {
            revision,
            object_count,
            digest,
        }))
    }

    /// Acknowledgements so far, while another is awaited.
    #[must_use]
    pub fn awaited(&self) -> Option<u64> {
        (!self.in_flight.is_empty()).then_some(self.acks)
    }

    /// True when the scheduler holds a whole view.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.snapshot.is_none()
    }

    /// Goes back to `revision`, if that is where some message ended; whether it was.
    fn rewind(&mut self, revision: u64, view: &mut View) -> bool {
        let known = revision == self.acknowledged
            || self.in_flight.iter().any(|message| message.revision == revision);
        if !known || !self.is_whole() {
            return false;
        }
        let lost = self.in_flight.drain(..).filter(|message| message.revision > revision);
        view.rewind(revision, lost.flat_map(|message| message.keys).collect::<Vec<_>>());
        true
    }
}

#[cfg(test)]
mod tests;
