//! How long a session rests between two looks at everything.
//!
//! The watcher of a busy cluster sends hundreds of messages a second, and a look at hundreds of
//! claims costs more than what one message changes: looks share what has come meanwhile.
//!
//! Invariant: nothing that has come waits for longer than [`LONGEST`], and after a quiet moment
//! nothing waits at all.

use std::time::Duration;

use tokio::time::Instant;

/// Shortest rest: what comes in one burst is looked at together.
const SHORTEST: Duration = Duration::from_millis(5);
/// Longest rest, however large the cluster is.
const LONGEST: Duration = Duration::from_millis(100);
/// As many times as long as a look took, the session rests.
const TIMES: u32 = 20;

/// Whether it is time for a look.
#[derive(Debug)]
pub(super) struct Rest {
    until: Instant,
    /// Something has come that nobody has looked at.
    owes: bool,
}

impl Default for Rest {
    fn default() -> Self {
        Self { until: Instant::now(), owes: false }
    }
}

impl Rest {
    /// Something has come: true when a look at it can wait.
    pub(super) fn takes(&mut self) -> bool {
        self.owes = Instant::now() < self.until;
        self.owes
    }

    /// A look is over.
    pub(super) fn after(&mut self, took: Duration) {
        let rest = took.saturating_mul(TIMES).clamp(SHORTEST, LONGEST);
        *self = Self { until: Instant::now() + rest, owes: false };
    }

    /// When the next look is due, where it would be due at `otherwise` if nothing had come.
    pub(super) fn wake_at(&self, otherwise: Instant) -> Instant {
        if self.owes { otherwise.min(self.until) } else { otherwise }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn looks_share_what_comes_while_the_session_rests() {
        let (mut rest, later) = (Rest::default(), Instant::now() + Duration::from_secs(1));
        assert!(!rest.takes(), "nothing was looked at before");
        rest.after(Duration::from_millis(1));
        assert_eq!(rest.wake_at(later), later, "nothing has come");
        assert!(rest.takes());
        let due = Instant::now() + Duration::from_millis(20);
        assert_eq!(rest.wake_at(later), due);
        tokio::time::advance(Duration::from_millis(20)).await;
        assert!(!rest.takes(), "it has rested");
    }

    #[tokio::test(start_paused = true)]
    async fn no_rest_is_longer_than_a_tenth_of_a_second() {
        let (mut rest, later) = (Rest::default(), Instant::now() + Duration::from_secs(1));
        for (took, rests) in [(0, SHORTEST), (3, Duration::from_millis(60)), (500, LONGEST)] {
            rest.after(Duration::from_millis(took));
            assert!(rest.takes());
            assert_eq!(rest.wake_at(later), Instant::now() + rests);
        }
    }
}
