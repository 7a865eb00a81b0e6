//! Machines that never join a cluster, and why.
//!
//! Invariant: what is recorded is never taken back; those who wait hear of each.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// Machines that never join, and why.
#[derive(Debug)]
pub struct Refusals {
    reasons: Mutex<BTreeMap<String, String>>,
    changed: watch::Sender<usize>,
}

impl Refusals {
    pub(super) fn new() -> Self {
        Self { reasons: Mutex::default(), changed: watch::Sender::new(0) }
    }

    pub(super) fn record(&self, instance_id: &str, reason: String) {
        tracing::info!(instance_id, reason, "the machine does not join");
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        reasons.insert(instance_id.to_owned(), reason);
        self.changed.send_replace(reasons.len());
    }

    /// Why each that was recorded does not join, by instance id.
    pub(super) fn all(&self) -> BTreeMap<String, String> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes with each that is recorded.
    pub(super) fn changes(&self) -> watch::Receiver<usize> {
        self.changed.subscribe()
    }
}
