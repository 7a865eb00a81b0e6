//! Since when something has been seen, without a break.
//!
//! Invariant: measured by the session's own monotonic clock, between observations of its own; no
//! clock of another host has a say. What is not seen once begins anew.

use std::collections::{BTreeMap, BTreeSet};

/// What is being watched, with the time of its first sighting in milliseconds of the session.
#[derive(Clone, Debug, Default)]
pub struct Sightings(BTreeMap<String, i64>);

impl Sightings {
    /// Takes note of everything that is to be seen now.
    pub fn observe(&mut self, seen: BTreeSet<String>, now_ms: i64) {
        self.0.retain(|known, _| seen.contains(known));
        for key in seen {
            self.0.entry(key).or_insert(now_ms);
        }
    }

    /// How long it has been seen, in milliseconds; 0 when it is not.
    #[must_use]
    pub fn lasted_ms(&self, key: &str, now_ms: i64) -> i64 {
        self.0.get(key).map_or(0, |since_ms| now_ms - since_ms)
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_without_a_break_lasts() {
        let seen = |key: &str| BTreeSet::from([key.to_owned()]);
        let mut sightings = Sightings::default();
        assert_eq!(sightings.lasted_ms("a", 9), 0);
        sightings.observe(seen("a"), 10);
        sightings.observe(seen("a"), 20);
        assert_eq!(sightings.lasted_ms("a", 25), 15);
        sightings.observe(seen("b"), 30);
        sightings.observe(seen("a"), 40);
        assert_eq!(sightings.lasted_ms("a", 45), 5, "it was away");
    }
}
