//! Wall-clock time as the integers that the wire and the planner use.
//!
//! Invariant: the only place that turns the system clock into a number.

/// Milliseconds since 1970-01-01 UTC.
#[must_use]
pub fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
