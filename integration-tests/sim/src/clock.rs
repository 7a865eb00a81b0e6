//! Time of day in the simulation: one true time, and clocks that differ from it.
//!
//! Invariant: true time is a fixed moment plus what tokio's paused clock has advanced, so that it
//! only moves when everybody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// True time at the start: 2026-06-01T00:00:00Z, in milliseconds since 1970.
pub const EPOCH_MS: i64 = 1_780_272_000_000;

/// A clock. Clones show the same.
#[derive(Clone, Debug)]
pub struct WallClock {
    started: Instant,
    skew_ms: Arc<AtomicI64>,
}

impl WallClock {
    /// True time, beginning now.
    #[must_use]
    pub fn begin() -> Self {
        Self { started: Instant::now(), skew_ms: Arc::default() }
    }

    /// Another clock of the same world, exact until it is set.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { started: self.started, skew_ms: Arc::default() }
    }

    /// Sets the clock ahead of true time by this many milliseconds; behind when negative.
    pub fn set_skew_ms(&self, skew_ms: i64) {
        self.skew_ms.store(skew_ms, Ordering::Relaxed);
    }

    /// Milliseconds since 1970 that it shows.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        EPOCH_MS + self.elapsed_ms() + self.skew_ms.load(Ordering::Relaxed)
    }

    /// The same as a timestamp.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now_ms()).unwrap_or_default()
    }

    /// Milliseconds since the beginning of the world.
    #[must_use]
    pub fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// The moment on tokio's clock at which this clock will show `at_ms`; the past is now.
    #[must_use]
    pub fn instant(&self, at_ms: i64) -> Instant {
        let ahead = u64::try_from(at_ms - self.now_ms()).unwrap_or_default();
        Instant::now() + Duration::from_millis(ahead)
    }
}
