//! The watch stream: changes of one collection from a resource version on.
//!
//! Invariant: a client that sees the stream from revision R on misses nothing after R, or is told
//! `410 Gone`; a bookmark's revision is never ahead of what was sent.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::Stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::route::Parameters;
use crate::cluster::error::ApiError;
use crate::cluster::server::{ListOptions, Selection, Server, Target};
use crate::cluster::store::{Change, Compacted, Stored};

/// Most changes put into one chunk of the response.
const CHANGES_PER_CHUNK: usize = 500;
/// How long a watch lives when the client names no limit; the real server draws 30 to 60 minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);

/// One client's watch.
pub struct Watcher {
    server: Arc<Server>,
    target: Target,
    id: String,
    selection: Selection,
    position: u64,
    /// What is left of the state at the beginning.
    initial: std::vec::IntoIter<Arc<Stored>>,
    /// A bookmark is to say where that ends.
    ends_initial: bool,
    bookmarks: Option<Duration>,
    next_bookmark: Instant,
    deadline: Instant,
    changed: watch::Receiver<u64>,
    stop: CancellationToken,
    is_over: bool,
}

impl Watcher {
    /// Starts a watch as the query asks for.
    ///
    /// # Errors
    /// BadRequest for parameters that do not parse.
    pub fn start(
        server: Arc<Server>,
        target: Target,
        parameters: &Parameters,
        bookmark_interval: Duration,
        stop: CancellationToken,
    ) -> Result<Self, ApiError> {
        let selection = parameters.selection()?;
        let id = target.resource.id();
        let changed = server.lock().store.changes_of(&id);
        let timeout =
            parameters.number("timeoutSeconds").map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let now = Instant::now();
        let mut watcher = Self {
            server,
            target,
            id,
            selection,
            position: 0,
            initial: Vec::new().into_iter(),
            ends_initial: false,
            bookmarks: parameters.flag("allowWatchBookmarks").then_some(bookmark_interval),
            next_bookmark: now + bookmark_interval,
            deadline: now + timeout,
            changed,
            stop,
            is_over: false,
        };
        watcher.seek(parameters)?;
        Ok(watcher)
    }

    /// The stream of newline-separated watch events.
    pub fn events(self) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send {
        futures::stream::unfold(self, |mut watcher| async move {
            watcher.next_chunk().await.map(|chunk| (Ok(chunk), watcher))
        })
    }

    fn seek(&mut self, parameters: &Parameters) -> Result<(), ApiError> {
        let text = parameters.text("resourceVersion");
        let asked: u64 = match text {
            "" => 0,
            text => text
                .parse()
                .map_err(|_| ApiError::BadRequest(format!("invalid resource version: {text:?}")))?,
        };
        let wants_state = parameters.flag("sendInitialEvents")
            || (asked == 0 && parameters.text("sendInitialEvents") != "false");
        if !wants_state {
            self.position = if asked == 0 { self.server.lock().store.revision() } else { asked };
            return Ok(());
        }
        let everything =
            ListOptions { selection: self.selection.clone(), ..ListOptions::default() };
        let page = self.server.list(&self.target, &everything)?;
        self.position = page.revision;
        self.initial = page.items.into_iter();
        self.ends_initial = parameters.flag("sendInitialEvents");
        Ok(())
    }

    /// More of the state at the beginning; none once all of it was sent.
    fn next_initial(&mut self) -> Option<Bytes> {
        let mut chunk = BytesMut::new();
        let part: Vec<_> = self.initial.by_ref().take(CHANGES_PER_CHUNK).collect();
        for stored in &part {
            self.put_event(&mut chunk, "ADDED", stored);
        }
        if self.initial.as_slice().is_empty() && std::mem::take(&mut self.ends_initial) {
            chunk.put(self.bookmark(true));
        }
        Some(chunk.freeze()).filter(|chunk| !chunk.is_empty())
    }

    async fn next_chunk(&mut self) -> Option<Bytes> {
        if let Some(chunk) = self.next_initial() {
            return Some(chunk);
        }
        while !self.is_over && !self.stop.is_cancelled() {
            self.changed.mark_unchanged();
            match self.read() {
                Ok(Some(chunk)) => return Some(chunk),
                Ok(None) => {}
                Err(error) => {
                    self.is_over = true;
                    return Some(line(&json!({ "type": "ERROR", "object": error.status() })));
                }
            }
            if let Some(bookmark) = self.wait().await {
                return Some(bookmark);
            }
        }
        None
    }

    /// Changes since the position; none when there is nothing to send.
    fn read(&mut self) -> Result<Option<Bytes>, ApiError> {
        let (changes, revision) = {
            let state = self.server.lock();
            let revision = state.store.revision();
            if self.position > revision {
                return Err(ApiError::Expired { asked: self.position, oldest: revision });
            }
            let changes = state.store.since(&self.id, self.position, CHANGES_PER_CHUNK);
            let expired = |Compacted(oldest)| ApiError::Expired { asked: self.position, oldest };
            (changes.map_err(expired)?, revision)
        };
        self.position = match changes.last() {
            Some(last) if changes.len() == CHANGES_PER_CHUNK => {
                // More may be waiting: come back at once.
                self.changed.mark_changed();
                last.revision
            }
            _ => revision,
        };
        let mut chunk = BytesMut::new();
        for change in &changes {
            if let Some(kind) = self.kind_of(change) {
                self.put_event(&mut chunk, kind, &change.after);
            }
        }
        Ok(Some(chunk.freeze()).filter(|chunk| !chunk.is_empty()))
    }

    fn kind_of(&self, change: &Change) -> Option<&'static str> {
        let namespace = &self.target.key.namespace;
        let is_in = |stored: &Arc<Stored>| {
            (namespace.is_empty() || crate::cluster::object::namespace(&stored.value) == namespace)
                && self.selection.matches(&stored.value)
        };
        let before = change.before.as_ref().is_some_and(is_in);
        let after = !change.deleted && is_in(&change.after);
        match (before, after) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }

    /// Waits for something to do; yields a bookmark when one is due.
    async fn wait(&mut self) -> Option<Bytes> {
        let bookmarks = self.bookmarks;
        tokio::select! {
            outcome = self.changed.changed() => {
                self.is_over = outcome.is_err();
                None
            }
            () = tokio::time::sleep_until(self.next_bookmark), if bookmarks.is_some() => {
                self.next_bookmark = Instant::now() + bookmarks.unwrap_or_default();
                Some(self.bookmark(false))
            }
            () = tokio::time::sleep_until(self.deadline) => {
                self.is_over = true;
                bookmarks.map(|_| self.bookmark(false))
            }
            () = self.stop.cancelled() => None,
        }
    }

    fn bookmark(&self, ends_initial_events: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": self.position.to_string() });
        if ends_initial_events {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        line(&json!({
            "type": "BOOKMARK",
            "object": {
                "kind": self.target.resource.kind,
                "apiVersion": self.target.resource.api_version(&self.target.version),
                "metadata": metadata,
            },
        }))
    }

    fn put_event(&self, chunk: &mut BytesMut, kind: &str, stored: &Stored) {
        chunk.put_slice(b"{\"type\":\"");
        chunk.put_slice(kind.as_bytes());
        chunk.put_slice(b"\",\"object\":");
        chunk.put(encoded(stored, &self.target));
        chunk.put_slice(b"}\n");
    }
}

/// The object as JSON in the version the client speaks.
pub fn encoded(stored: &Stored, target: &Target) -> Bytes {
    let api_version = target.resource.api_version(&target.version);
    if stored.value["apiVersion"] == api_version.as_str() {
        return stored.json();
    }
    let mut object = stored.value.clone();
    object["apiVersion"] = Value::from(api_version);
    Bytes::from(object.to_string())
}

fn line(event: &Value) -> Bytes {
    Bytes::from(format!("{event}\n"))
}
