//! Wall-clock time as the integers that the wire and the planner use.
//!
//! Invariant: the only place that reads the system's clock. Services are given a [`Clock`] and ask
//! no other; spans of time are measured on tokio's monotonic clock, which a simulation holds too.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// Tells the time of day. Clones tell the same.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::reading(|| Timestamp::now().as_millisecond())
    }

    /// A clock that shows what `read` returns, in milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn reading(read: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        (self.0)()
    }

    /// The same as a timestamp.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now_ms()).unwrap_or(Timestamp::MAX)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Clock").field(&self.now_ms()).finish()
    }
}
