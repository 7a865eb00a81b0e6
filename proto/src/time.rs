//! Times of the wire as milliseconds since 1970, and its durations as milliseconds.
//!
//! Invariant: a time made here is read back equal; finer ones round towards the past, and none
//! overflows.

use prost_types::{Duration, Timestamp};

/// Milliseconds since 1970 of a wire timestamp, rounded down.
#[must_use]
pub fn time_ms(time: &Timestamp) -> i64 {
    time.seconds.saturating_mul(1000).saturating_add(i64::from(time.nanos) / 1_000_000)
}

/// Wire timestamp of milliseconds since 1970.
#[must_use]
pub fn timestamp(ms: i64) -> Timestamp {
    let nanos = i32::try_from(ms.rem_euclid(1000) * 1_000_000).unwrap_or_default();
    Timestamp { seconds: ms.div_euclid(1000), nanos }
}

/// Milliseconds of a wire duration, rounded down.
#[must_use]
pub fn duration_ms(duration: &Duration) -> i64 {
    duration.seconds.saturating_mul(1000).saturating_add(i64::from(duration.nanos) / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_survive_and_round_towards_the_past() {
        assert_eq!(timestamp(1_500), Timestamp { seconds: 1, nanos: 500_000_000 });
        assert_eq!(timestamp(-1).seconds, -1);
        for ms in [-1_001, -1, 0, 1, 999, 1_000, 1_700_000_000_123] {
            assert_eq!(time_ms(&timestamp(ms)), ms);
        }
        assert_eq!(time_ms(&Timestamp { seconds: 0, nanos: 1_999_999 }), 1);
        assert_eq!(time_ms(&Timestamp { seconds: i64::MAX, nanos: 0 }), i64::MAX);
    }
}
