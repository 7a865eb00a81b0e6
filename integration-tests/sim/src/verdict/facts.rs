//! What is known of a cluster after it has changed.
//!
//! Invariant: judged by what the actuator looks up, long after any watcher must have read the new
//! facts.

use std::time::Duration;

use tokio::time::Instant;

use super::Judge;

/// How long facts may be old: two rounds of reading, of which one was in vain, and the way to the
/// actuator.
const OLD_MAX: Duration = Duration::from_secs(22 * 60);

impl Judge {
    /// The clusters of a site have another version: parameters that are looked up contain this from
    /// now on.
    pub fn upgraded(&self, site: usize, part: &str) {
        let now = Instant::now();
        self.lock().upgrades.entry(site).or_insert_with(|| (now, part.to_owned()));
    }

    /// A parameter of this name is looked up.
    pub(super) fn read(&self, site: usize, parameter: &str) {
        let upgrade = self.lock().upgrades.get(&site).cloned();
        let Some((since, part)) = upgrade else { return };
        if since.elapsed() > OLD_MAX && !parameter.contains(&part) {
            let age = since.elapsed().as_secs();
            let text = format!("{parameter} is asked for, {age} s after the upgrade to {part}");
            self.violate("a cluster's facts are out of date", text);
        }
    }
}
