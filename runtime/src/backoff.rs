//! Retry delays: exponential, bounded, with full jitter so that many clients never act in step.
//!
//! Invariant: every delay lies in `[minimum / 2, maximum]`.

use std::time::Duration;

use crate::entropy::Entropy;

/// What ran longer than this before it failed counts as healthy: its back-off starts over.
const HEALTHY_AFTER: Duration = Duration::from_secs(30);

/// Bounds of the delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffPolicy {
    /// Delay around which the first retry falls.
    pub minimum: Duration,
    /// Longest delay.
    pub maximum: Duration,
}

impl BackoffPolicy {
    /// For connections inside one network: 100 ms to 5 s.
    pub const NETWORK: Self =
        Self { minimum: Duration::from_millis(100), maximum: Duration::from_secs(5) };
}

/// Delays of one series of attempts.
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: BackoffPolicy,
    jitter: Entropy,
    attempts: u32,
}

impl Backoff {
    /// A fresh series.
    #[must_use]
    pub const fn new(policy: BackoffPolicy, jitter: Entropy) -> Self {
        Self { policy, jitter, attempts: 0 }
    }

    /// Starts over, after a success.
    pub const fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Starts over when the attempt that failed ran for more than half a minute; true when it did.
    pub fn reset_if_healthy(&mut self, ran: Duration) -> bool {
        let healthy = ran > HEALTHY_AFTER;
        if healthy {
            self.reset();
        }
        healthy
    }

    /// Delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        let factor = 1_u32.checked_shl(self.attempts.min(20)).unwrap_or(u32::MAX);
        self.attempts = self.attempts.saturating_add(1);
        let ceiling = self.policy.minimum.saturating_mul(factor).min(self.policy.maximum);
        let floor = ceiling.min(self.policy.minimum) / 2;
        self.jitter.range(floor..=ceiling)
    }

    /// Sleeps for the next delay.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next_delay()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_stay_in_bounds_and_grow() {
        let policy = BackoffPolicy::NETWORK;
        let mut backoff = Backoff::new(policy, Entropy::seeded(1));
        for _ in 0..100 {
            let delay = backoff.next_delay();
            assert!(delay >= policy.minimum / 2 && delay <= policy.maximum);
        }
        backoff.reset();
        assert!(backoff.next_delay() <= policy.minimum);
    }

    #[test]
    fn what_ran_long_before_it_failed_is_tried_again_soon() {
        let policy = BackoffPolicy::NETWORK;
        let mut backoff = Backoff { attempts: 10, ..Backoff::new(policy, Entropy::seeded(1)) };
        assert!(!backoff.reset_if_healthy(HEALTHY_AFTER));
        assert_eq!(backoff.attempts, 10);
        assert!(backoff.reset_if_healthy(HEALTHY_AFTER + policy.minimum));
        assert!(backoff.next_delay() <= policy.minimum);
    }
}
