//! Request token buckets, as EC2 throttles per account, region and API.
//!
//! Invariant: an API without a limit is never refused.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::config::RateLimit;

/// Tokens are counted in thousandths so that refill by the millisecond is exact.
const TOKEN: u64 = 1000;

/// Buckets by API name (`ec2:CreateFleet`).
#[derive(Debug, Default)]
pub struct Buckets {
    buckets: BTreeMap<String, Bucket>,
}

#[derive(Debug)]
struct Bucket {
    thousandths: u64,
    filled_at: Timestamp,
}

impl Buckets {
    /// Takes a token; false when there is none.
    pub fn take(&mut self, api: &str, limit: RateLimit, now: Timestamp) -> bool {
        let full = u64::from(limit.burst) * TOKEN;
        let bucket = self
            .buckets
            .entry(api.to_owned())
            .or_insert(Bucket { thousandths: full, filled_at: now });
        let elapsed_ms = u64::try_from(now.duration_since(bucket.filled_at).as_millis());
        let refill = elapsed_ms.unwrap_or(0).saturating_mul(u64::from(limit.refill_per_second));
        bucket.thousandths = full.min(bucket.thousandths.saturating_add(refill));
        bucket.filled_at = now;
        match bucket.thousandths.checked_sub(TOKEN) {
            Some(rest) => {
                bucket.thousandths = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::clock::after;
    use super::*;

    #[test]
    fn a_burst_then_the_refill_rate() {
        let limit = RateLimit { refill_per_second: 5, burst: 2 };
        let mut buckets = Buckets::default();
        let start = Timestamp::UNIX_EPOCH;
        let mut take = |millis| buckets.take("ec2:CreateFleet", limit, after(start, millis));
        assert_eq!([take(0), take(0), take(0)], [true, true, false]);
        assert_eq!([take(199), take(200), take(200)], [false, true, false]);
    }
}
