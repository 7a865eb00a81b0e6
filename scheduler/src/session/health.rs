//! Whether the nodes of a pool come up: the condition `NodeRegistrationHealthy`, and whether more
//! of them are worth buying.
//!
//! Offerings whose nodes fail are avoided for a while: see `duds`. The condition is counted as
//! Karpenter counts: of the last four nodes, two that did not register in time, or were never
//! ready, make the pool unhealthy. Plans do not look at it. They look at whether none has come into
//! service since the last four failed.
//!
//! Invariant: outcomes are of the pool and node class as they stand; when one of them changes, they
//! are forgotten, and nothing is said before there is another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use longshore_proto::cluster::v1::Condition;
use longshore_proto::types::v1::NodeClaim;

use super::duds::{Duds, Sold};

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
/// So many failures, and none in service since, and nodes are tried one at a time.
const FAILING_FROM: usize = 4;

/// A pool and its node class as they stand, by their generations.
pub type Edition = (i64, i64);

/// What has become of the last nodes of each pool.
#[derive(Debug, Default)]
pub struct Health {
    pools: BTreeMap<String, Record>,
}

#[derive(Debug, Default)]
struct Record {
    edition: Edition,
    /// Whether each of the last nodes came up.
    outcomes: VecDeque<bool>,
    /// Nodes that failed since one came into service.
    failures: usize,
    duds: Duds,
}

impl Health {
    /// A node has come up.
    pub fn came_up(&mut self, pool: &str, edition: Edition) {
        self.note(pool, edition, true);
    }

    /// The node of a claim has come into service.
    pub fn serves(&mut self, claim: &NodeClaim, now_ms: i64) {
        if let Some(record) = self.pools.get_mut(&claim.pool) {
            record.failures = 0;
            record.duds.serves(claim, now_ms);
        }
    }

    /// A claim ends for this reason.
    pub fn ends(&mut self, claim: &NodeClaim, edition: Edition, reason: &str, now_ms: i64) {
        if TIMEOUTS.contains(&reason) {
            let record = self.note(&claim.pool, edition, false);
            record.failures += 1;
            record.duds.fails(claim, now_ms);
        }
    }

    /// Tries again what has been avoided for long enough. When there is more of that next, in
    /// milliseconds since 1970.
    pub fn forget(&mut self, now_ms: i64) -> Option<i64> {
        self.pools.values_mut().filter_map(|record| record.duds.forget(now_ms)).min()
    }

    /// What a pool does not buy for a while.
    #[must_use]
    pub fn avoided(&self, pool: &str, edition: Edition) -> BTreeSet<Sold> {
        let record = self.pools.get(pool).filter(|record| record.edition == edition);
        record.map(|record| record.duds.avoided()).unwrap_or_default()
    }

    fn note(&mut self, pool: &str, edition: Edition, good: bool) -> &mut Record {
        let record = self.pools.entry(pool.to_owned()).or_default();
        if record.edition != edition {
            *record = Record { edition, ..Record::default() };
        }
        record.outcomes.push_back(good);
        if record.outcomes.len() > REMEMBERED {
            record.outcomes.pop_front();
        }
        record
    }

    /// How many nodes of a pool have failed since one came into service, when they are too many for
    /// more than one to be tried at a time.
    #[must_use]
    pub fn failing(&self, pool: &str, edition: Edition) -> Option<usize> {
        let record = self.pools.get(pool).filter(|record| record.edition == edition)?;
        (record.failures >= FAILING_FROM).then_some(record.failures)
    }

    /// What is to be said of a pool; nothing while nothing is known.
    #[must_use]
    pub fn condition(&self, pool: &str, edition: Edition) -> Option<Condition> {
        let Record { edition: of, outcomes, .. } = self.pools.get(pool)?;
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

    fn claim() -> NodeClaim {
        NodeClaim { pool: "p".to_owned(), ..NodeClaim::default() }
    }

    #[test]
    fn a_pool_fails_while_none_of_its_nodes_comes_into_service() {
        let mut health = Health::default();
        (0..3).for_each(|_| health.ends(&claim(), (1, 1), "InitializationTimeout", 0));
        assert_eq!(health.failing("p", (1, 1)), None);
        health.came_up("p", (1, 1));
        health.ends(&claim(), (1, 1), "RegistrationTimeout", 0);
        assert_eq!(health.failing("p", (1, 1)), Some(4), "to join is not to serve");
        assert_eq!(health.failing("p", (2, 1)), None, "the pool is another");
        health.serves(&claim(), 0);
        assert_eq!(health.failing("p", (1, 1)), None);
    }

    #[test]
    fn two_of_the_last_four_nodes_make_a_pool_unhealthy() {
        let mut health = Health::default();
        let said =
            |health: &Health, edition| health.condition("p", edition).and_then(|it| it.status);
        assert_eq!(said(&health, (1, 1)), None);
        health.ends(&claim(), (1, 1), "Empty", 0);
        assert_eq!(said(&health, (1, 1)), None, "it had come up");
        health.ends(&claim(), (1, 1), "RegistrationTimeout", 0);
        assert_eq!(said(&health, (1, 1)), Some(true));
        health.ends(&claim(), (1, 1), "InitializationTimeout", 0);
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
