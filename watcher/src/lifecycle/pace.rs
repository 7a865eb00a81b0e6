//! How often a step is tried.
//!
//! Invariant: a step that was done is not done again before the state has had time to show it; one
//! that failed waits longer each time; what is no longer due is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use longshore_runtime::entropy::Entropy;
use tokio::time::Instant;

use super::act::Refusal;

/// How long the state may take to show what was done.
const SETTLE: Duration = Duration::from_secs(1);
/// Pauses after failures, evictions that a budget refuses among them.
const RETRY: BackoffPolicy =
    BackoffPolicy { minimum: Duration::from_millis(200), maximum: Duration::from_secs(10) };

#[derive(Debug)]
struct Entry {
    under_way: bool,
    rests_until: Instant,
    backoff: Backoff,
}

/// What was tried, and when it may be tried again.
#[derive(Debug)]
pub(super) struct Pace {
    jitter: Entropy,
    entries: BTreeMap<String, Entry>,
}

impl Pace {
    /// Nothing tried yet.
    pub(super) const fn new(jitter: Entropy) -> Self {
        Self { jitter, entries: BTreeMap::new() }
    }

    /// Forgets what is neither due nor under way.
    pub(super) fn keep(&mut self, due: impl Iterator<Item = String>) {
        let due: BTreeSet<String> = due.collect();
        self.entries.retain(|key, entry| entry.under_way || due.contains(key));
    }

    /// Whether a step may start now; if so, it counts as under way.
    pub(super) fn may_start(&mut self, key: &str, now: Instant) -> bool {
        let entry = self.entries.entry(key.to_owned()).or_insert_with(|| Entry {
            under_way: false,
            rests_until: now,
            backoff: Backoff::new(RETRY, self.jitter.clone()),
        });
        let may = !entry.under_way && entry.rests_until <= now;
        entry.under_way |= may;
        may
    }

    /// Notes how a step went.
    pub(super) fn finished(&mut self, key: String, outcome: &Result<(), Refusal>, now: Instant) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        entry.under_way = false;
        entry.rests_until = now
            + match outcome {
                Ok(()) => SETTLE,
                Err(_) => entry.backoff.next_delay(),
            };
    }

    /// When the next rest ends.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.entries.values().filter(|e| !e.under_way).map(|e| e.rests_until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_step_rests_between_tries() {
        let (mut pace, now) = (Pace::new(Entropy::seeded(1)), Instant::now());
        assert!(pace.may_start("a", now));
        assert!(!pace.may_start("a", now));
        pace.finished("a".to_owned(), &Ok(()), now);
        assert!(!pace.may_start("a", now));
        assert!(pace.may_start("a", now + SETTLE));
        pace.finished("a".to_owned(), &Err(Refusal::Budget), now);
        assert!(pace.wake_at().unwrap() <= now + RETRY.minimum);
        pace.keep(std::iter::empty());
        assert_eq!(pace.wake_at(), None);
    }
}
