//! Whether the nodes of a pool come up: the condition `NodeRegistrationHealthy`.
//!
//! Counted as Karpenter counts: of the last four nodes, two that did not register in time, or were
//! never ready, make the pool unhealthy. Plans do not look at it.
//!
//! Invariant: outcomes are of the pool and node class as they stand; when one of them changes, they
//! are forgotten, and nothing is said before there is another.

use std::collections::{BTreeMap, VecDeque};

use longshore_proto::cluster::v1::Condition;

/// The condition.
const HEALTHY: &str = "NodeRegistrationHealthy";
/// Its reason while it is false.
const FAILED: &str = "RegistrationFailed";
/// Reasons for which claims end whose nodes have not come up.
const TIMEOUTS: [&str; 2] = ["RegistrationTimeout", "InitializationTimeout"];
/// Outcomes that are remembered of a pool.
const REMEMBERED: usize = 4;
/// So many failures among them make it unhealthy.
const UNHEALTHY_FROM: usize = 2;

/// A pool and its node class as they stand, by their generations.
pub type Edition = (i64, i64);

/// What has become of the last nodes of each pool.
#[derive(Debug, Default)]
pub struct Health {
    pools: BTreeMap<String, (Edition, VecDeque<bool>)>,
}

impl Health {
    /// A node has come up.
    pub fn came_up(&mut self, pool: &str, edition: Edition) {
        self.note(pool, edition, true);
    }

    /// A claim ends for this reason.
    pub fn ends(&mut self, pool: &str, edition: Edition, reason: &str) {
        if TIMEOUTS.contains(&reason) {
            self.note(pool, edition, false);
        }
    }

    fn note(&mut self, pool: &str, edition: Edition, good: bool) {
        let known = self.pools.entry(pool.to_owned()).or_default();
        if known.0 != edition {
            *known = (edition, VecDeque::new());
        }
        known.1.push_back(good);
        if known.1.len() > REMEMBERED {
            known.1.pop_front();
        }
    }

    /// What is to be said of a pool; nothing while nothing is known.
    #[must_use]
    pub fn condition(&self, pool: &str, edition: Edition) -> Option<Condition> {
        let (of, outcomes) = self.pools.get(pool)?;
        let failed = outcomes.iter().filter(|good| !**good).count();
        let healthy = failed < UNHEALTHY_FROM;
        let message = format!(
            "of the last {} nodes, {failed} did not come up; see the Events of their NodeClaims",
            outcomes.len()
        );
        (*of == edition).then(|| Condition {
            r#type: HEALTHY.to_owned(),
            status: Some(healthy),
            reason: if healthy { HEALTHY } else { FAILED }.to_owned(),
            message: if healthy { String::new() } else { message },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_the_last_four_nodes_make_a_pool_unhealthy() {
        let mut health = Health::default();
        let said =
            |health: &Health, edition| health.condition("p", edition).and_then(|it| it.status);
        assert_eq!(said(&health, (1, 1)), None);
        health.ends("p", (1, 1), "Empty");
        assert_eq!(said(&health, (1, 1)), None, "it had come up");
        health.ends("p", (1, 1), "RegistrationTimeout");
        assert_eq!(said(&health, (1, 1)), Some(true));
        health.ends("p", (1, 1), "InitializationTimeout");
        assert_eq!(said(&health, (1, 1)), Some(false));
        (0..2).for_each(|_| health.came_up("p", (1, 1)));
        assert_eq!(said(&health, (1, 1)), Some(false), "two of four");
        health.came_up("p", (1, 1));
        assert_eq!(said(&health, (1, 1)), Some(true), "one of four");
        assert_eq!(said(&health, (2, 1)), None, "the pool is another");
        health.came_up("p", (1, 2));
        assert_eq!(said(&health, (1, 1)), None);
        assert_eq!(said(&health, (1, 2)), Some(true));
    }
}
