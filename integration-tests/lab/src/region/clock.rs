//! The region's clock: wall time that moves with tokio's, so that a paused test holds it still.
//!
//! Invariant: the only source of time in the region.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Wall clock anchored at the start of the region.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    anchor: Timestamp,
    started: Instant,
}

impl Clock {
    /// A clock that shows the present and goes on with tokio's.
    pub fn start() -> Clock {
        Clock { anchor: Timestamp::now(), started: Instant::now() }
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).unwrap_or_default();
        self.anchor.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// The moment on tokio's clock that corresponds to `at`; the past is now.
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.now());
        Instant::now() + std::time::Duration::try_from(ahead).unwrap_or_default()
    }
}

/// `at` plus milliseconds, saturating at the end of time.
pub fn after(at: Timestamp, millis: u32) -> Timestamp {
    at.checked_add(SignedDuration::from_millis(i64::from(millis))).unwrap_or(Timestamp::MAX)
}

/// EC2's form of a time: `2026-01-02T03:04:05.000Z`.
pub fn ec2_time(at: Timestamp) -> String {
    format!("{at:.3}")
}
