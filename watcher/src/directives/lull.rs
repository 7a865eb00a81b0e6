//! Whether kube-scheduler has little to do.
//!
//! Invariant: nothing but pods that were let in to closed nodes counts, since only these are told
//! before others; a pod that it cannot bind keeps it busy for no longer than a lull.

use std::time::Duration;

use tokio::time::Instant;

/// How long kube-scheduler may have little to do, or do nothing, before pods are let in that need
/// not be told: nodes of a burst that come faster one after the other are as one.
const LULL: Duration = Duration::from_millis(500);
/// Pods that were let in and wait are little to do when they are fewer: it binds as many in less
/// time.
const BACKLOG_MIN: usize = 32;
/// Since when kube-scheduler has had little to do.
#[derive(Debug)]
pub(super) struct Lull {
    since: Instant,
    backlog: usize,
}

impl Lull {
    /// It has only been looked at from now on.
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), backlog: 0 }
    }

    /// Takes note of how many pods it has to bind, and says whether it has had little to do for
    /// long enough, or has bound none of many.
    pub(super) fn lasts(&mut self, backlog: usize) -> bool {
        if backlog >= BACKLOG_MIN && backlog != self.backlog {
            self.since = Instant::now();
        }
        self.backlog = backlog;
        self.since.elapsed() >= LULL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lull_lasts_while_there_is_little_to_bind_or_none_of_it_is_bound() {
        let mut lull = Lull::new();
        assert!(!lull.lasts(0), "it has only begun");
        tokio::time::advance(LULL).await;
        assert!(lull.lasts(BACKLOG_MIN - 1));
        assert!(!lull.lasts(BACKLOG_MIN + 1), "there is much to do");
        tokio::time::advance(LULL).await;
        assert!(!lull.lasts(BACKLOG_MIN), "and it is done");
        assert!(!lull.lasts(BACKLOG_MIN));
        tokio::time::advance(LULL).await;
        assert!(lull.lasts(BACKLOG_MIN), "none of many was bound");
    }
}
