//! Pods that have been moved within the last hour to save money, of pools that bound them.
//!
//! Invariant: counted when it is decided that they move, and not given back when they stay after
//! all; a scheduler that has just started knows of none.

use std::collections::{BTreeMap, VecDeque};

/// For how long a move counts, in milliseconds.
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Moves of each pool, the oldest first, with the time of day at which they were decided.
#[derive(Debug, Default)]
pub struct Evictions {
    pools: BTreeMap<String, VecDeque<(i64, i64)>>,
}

impl Evictions {
    /// So many pods of a pool's nodes move.
    pub fn add(&mut self, pool: &str, pods: usize, now_ms: i64) {
        let pods = i64::try_from(pods).unwrap_or(i64::MAX);
        self.pools.entry(pool.to_owned()).or_default().push_back((now_ms, pods));
    }

    /// Forgets what is older than an hour. When there is less to count next, in milliseconds since
    /// 1970.
    pub fn forget(&mut self, now_ms: i64) -> Option<i64> {
        self.pools.retain(|_, moves| {
            while moves.front().is_some_and(|(at_ms, _)| at_ms + HOUR_MS <= now_ms) {
                moves.pop_front();
            }
            !moves.is_empty()
        });
        let oldest = self.pools.values().filter_map(|moves| moves.front());
        oldest.map(|(at_ms, _)| at_ms + HOUR_MS).min()
    }

    /// Pods of a pool's nodes that were moved within the hour.
    #[must_use]
    pub fn of(&self, pool: &str) -> i64 {
        self.pools.get(pool).into_iter().flatten().map(|(_, pods)| pods).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_counts_for_an_hour() {
        let mut evictions = Evictions::default();
        evictions.add("a", 3, 0);
        evictions.add("a", 2, 10);
        evictions.add("b", 1, 20);
        assert_eq!((evictions.of("a"), evictions.of("b"), evictions.of("c")), (5, 1, 0));
        assert_eq!(evictions.forget(HOUR_MS - 1), Some(HOUR_MS));
        assert_eq!(evictions.of("a"), 5);
        assert_eq!(evictions.forget(HOUR_MS), Some(HOUR_MS + 10));
        assert_eq!(evictions.of("a"), 2);
        assert_eq!(evictions.forget(HOUR_MS + 20), None);
        assert_eq!((evictions.of("a"), evictions.of("b")), (0, 0));
    }
}
