//! Durations and times of Kubernetes objects as the wire has them.
//!
//! Invariant: what the CRDs' patterns accept is accepted, and nothing that means another unit
//! there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prost_types::{Duration, Timestamp};

use super::fault::Problem;

/// Word for an absent limit.
pub const NEVER: &str = "Never";

/// A duration like `1h30m`.
///
/// # Errors
/// [`Problem::Duration`] when it is none.
pub fn duration(text: &str) -> Result<Duration, Problem> {
    let bad = || Problem::Duration(text.to_owned());
    let plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, 'h' | 'm' | 's'));
    let parsed = plain.then(|| humantime::parse_duration(text).ok()).flatten().ok_or_else(bad)?;
    Duration::try_from(parsed).map_err(|_| bad())
}

/// A duration, or nothing for `Never`.
///
/// # Errors
/// [`Problem::Duration`] when it is neither.
pub fn duration_or_never(text: &str) -> Result<Option<Duration>, Problem> {
    if text == NEVER { Ok(None) } else { duration(text).map(Some) }
}

/// Seconds as a duration.
#[must_use]
pub const fn seconds(seconds: i64) -> Duration {
    Duration { seconds, nanos: 0 }
}

/// A duration in the form that the CRDs accept, whole seconds.
#[must_use]
pub fn text(duration: &Duration) -> String {
    let seconds = duration.seconds;
    match (seconds / 3600, seconds % 3600 / 60, seconds % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, 0) => format!("{m}m"),
        (h, 0, 0) => format!("{h}h"),
        (h, m, s) => [(h, 'h'), (m, 'm'), (s, 's')]
            .iter()
            .filter(|(n, _)| *n != 0)
            .map(|(n, unit)| format!("{n}{unit}"))
            .collect(),
    }
}

/// A time as the wire has it.
#[must_use]
pub fn timestamp(time: &Time) -> Timestamp {
    Timestamp { seconds: time.0.as_second(), nanos: time.0.subsec_nanosecond() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_write() {
        let table = [("30s", 30), ("10m", 600), ("1h30m", 5400), ("720h", 2_592_000), ("0s", 0)];
        for (written, expected) in table {
            let parsed = duration(written).unwrap();
            assert_eq!(parsed.seconds, expected);
            assert_eq!(text(&parsed), written);
        }
        assert_eq!(duration_or_never("Never"), Ok(None));
        for bad in ["", "1d", "1M", "ten", "-5s", "5"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
