//! How much of a cluster may end because something is not there, and nobody said why.
//!
//! Invariant: pure. Within [`WINDOW`] no more than the larger of [`NODES`] and [`PERCENT`] of the
//! cluster's nodes are let go on absence alone; a repetition for the same one counts once. It
//! resumes by itself, as its window moves on. What another scheduler let go counts too: the cluster
//! itself remembers it.

use std::collections::BTreeMap;
use std::time::Duration;

use longshore_proto::cluster::v1::Loss;
use longshore_proto::limits::{ABSENCE_WINDOW_SECONDS, LOSSES_MAX};
use longshore_runtime::planted;
use tokio::time::Instant;

/// What has been let go counts for this long.
pub const WINDOW: Duration = Duration::from_secs(ABSENCE_WINDOW_SECONDS);
/// Nodes that may go within a window however small the cluster is.
pub const NODES: usize = 2;
/// Share of a cluster that may go within a window, in percent.
pub const PERCENT: usize = 5;

/// What has been let go on absence alone, and until when each counts.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    gone: BTreeMap<String, Instant>,
}

impl Breaker {
    /// Whether one of `nodes` nodes may go now, by the name of its claim or instance.
    pub fn admits(&mut self, name: &str, nodes: usize, now: Instant) -> bool {
        self.gone.retain(|_, until| now < *until);
        let room = self.gone.len() < NODES.max(nodes.saturating_mul(PERCENT) / 100);
        if self.gone.contains_key(name) || room || planted::is("S6") {
            self.gone.entry(name.to_owned()).or_insert(now + WINDOW);
            return true;
        }
        false
    }

    /// Takes over what the cluster remembers of sessions before this one.
    pub fn recall(&mut self, losses: &[Loss], now: Instant) {
        if planted::is("S6a") {
            return;
        }
        for Loss { claim, age } in losses.iter().take(LOSSES_MAX) {
            let age = age.and_then(|age| Duration::try_from(age).ok()).unwrap_or_default();
            let rest = WINDOW.saturating_sub(age);
            if !rest.is_zero() {
                self.gone.entry(claim.clone()).or_insert(now + rest);
            }
        }
    }

    /// True when nothing that was let go counts any more.
    #[must_use]
    pub fn is_idle(&self, now: Instant) -> bool {
        self.gone.values().all(|until| now >= *until)
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

    #[tokio::test(start_paused = true)]
    async fn what_went_under_another_scheduler_counts_for_the_rest_of_its_time() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        let loss = |claim: &str, seconds: i64| Loss {
            claim: claim.to_owned(),
            age: Some(prost_types::Duration { seconds, nanos: 0 }),
        };
        // A clock that was set back makes nothing younger than it can be.
        breaker.recall(&[loss("a", 400), loss("b", -5), loss("old", 600)], now);
        assert!(!breaker.admits("c", 3, now));
        assert!(breaker.admits("a", 3, now), "it has been let go already");
        let rest = Duration::from_secs(200);
        assert!(!breaker.admits("c", 3, now + rest - Duration::from_millis(1)));
        assert!(breaker.admits("c", 3, now + rest));
        breaker.recall(&[loss("c", 599)], now + rest);
        assert!(
            !breaker.admits("d", 3, now + rest + Duration::from_secs(2)),
            "what is known stays"
        );
    }
}
