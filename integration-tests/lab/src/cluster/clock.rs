//! The cluster's clock: wall time at the start, advanced by tokio's clock.
//!
//! Invariant: under paused or simulated tokio time the cluster ages with it, so that a run replays.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the time of a cluster.
#[derive(Clone, Debug)]
pub struct Clock {
    origin: Timestamp,
    started: Instant,
}

impl Clock {
    /// A clock that reads `origin` now.
    pub fn starting_at(origin: Timestamp) -> Self {
        Self { origin, started: Instant::now() }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).unwrap_or_default();
        self.origin.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// The present in the form of `metav1.Time`: whole seconds, UTC.
    pub fn stamp(&self) -> String {
        stamp(self.now())
    }

    /// The moment on tokio's clock that corresponds to `at`; now when it has passed.
    pub fn instant_of(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.now());
        Instant::now() + Duration::try_from(ahead).unwrap_or_default()
    }
}

/// `metav1.Time` of a moment: whole seconds, UTC.
pub fn stamp(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

/// `metav1.MicroTime` of a moment, always with six decimals.
pub fn micro_stamp(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// Parses what [`stamp`] or any Kubernetes client writes.
pub fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
