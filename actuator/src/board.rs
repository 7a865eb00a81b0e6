//! What the region shows to its watchers: the latest of everything, and changes as they happen.
//!
//! Invariant: a subscriber gets the state and then every later change, with nothing between them
//! lost or repeated; what has not changed is not shown again; a subscriber that falls behind is cut
//! and starts over.

mod shown;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::capacity::v1::{Forgotten, OfferingUpdates, RegionChange};
use tokio::sync::broadcast;

use shown::Shown;

/// Changes a subscriber may lag behind before it is cut: a plan of the largest size several times
/// over, each launch of which changes about four times.
const LAG_CHANGES_MAX: usize = 8192;

/// Changes with the revision after them.
#[derive(Clone, Debug)]
pub struct Posted {
    /// Revision after the change.
    pub revision: u64,
    /// The change.
    pub change: Arc<RegionChange>,
}

/// The board of one leader.
#[derive(Debug)]
pub struct Board {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    revision: u64,
    shown: Shown,
    sender: Option<broadcast::Sender<Posted>>,
}

/// A subscriber's view: the state now and what follows.
#[derive(Debug)]
pub struct Subscription {
    /// Revision of the state.
    pub revision: u64,
    /// The state.
    pub state: Vec<Arc<RegionChange>>,
    /// What follows; closed when leadership ends.
    pub changes: broadcast::Receiver<Posted>,
}

impl Board {
    /// An empty board.
    #[must_use]
    pub fn new() -> Self {
        let sender = broadcast::Sender::new(LAG_CHANGES_MAX);
        let inner = Inner { revision: 0, shown: Shown::default(), sender: Some(sender) };
        Self { inner: Mutex::new(inner) }
    }

    /// Shows a change, unless it is what is shown already.
    pub fn post(&self, change: Change) {
        let mut inner = self.lock();
        if let Some(news) = inner.shown.apply(RegionChange { change: Some(change) }) {
            inner.send(news);
        }
    }

    /// Shows new prices or availability of offerings in every catalogue.
    pub fn post_offerings(&self, updates: OfferingUpdates) {
        if !updates.updates.is_empty() {
            self.post(Change::Offerings(updates));
        }
    }

    /// Forgets finished launches and instances.
    pub fn forget(&self, launch_ids: Vec<String>, instance_ids: Vec<String>) {
        if !launch_ids.is_empty() || !instance_ids.is_empty() {
            self.post(Change::Forgotten(Forgotten { launch_ids, instance_ids }));
        }
    }

    /// The state, and what follows; none when leadership has ended.
    #[must_use]
    pub fn subscribe(&self) -> Option<Subscription> {
        let inner = self.lock();
        let changes = inner.sender.as_ref()?.subscribe();
        Some(Subscription { revision: inner.revision, state: inner.shown.state(), changes })
    }

    /// Keeps node classes of a forgotten cluster from later subscribers.
    pub fn forget_cluster(&self, cluster_id: &str) {
        self.lock().shown.forget_cluster(cluster_id);
    }

    /// Keeps catalogues that no class names any more from later subscribers.
    pub fn keep_catalogues(&self, ids: &BTreeSet<String>) {
        self.lock().shown.keep_catalogues(ids);
    }

    /// Ends all subscriptions: somebody else leads by now.
    pub fn close(&self) {
        self.lock().sender = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Board {
    fn default() -> Self {
        Self::new()
    }
}

impl Inner {
    fn send(&mut self, change: Arc<RegionChange>) {
        self.revision += 1;
        if let Some(sender) = &self.sender {
            // Fails when nobody watches.
            let _ = sender.send(Posted { revision: self.revision, change });
        }
    }
}

#[cfg(test)]
mod tests;
