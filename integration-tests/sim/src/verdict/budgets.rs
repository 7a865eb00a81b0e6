//! How much may be going at once: by choice within a pool's budgets, on absence within the breaker.
//!
//! Invariant: a budget's share is of the most nodes that the pool has had of late, since a plan is
//! carried out minutes after it was made; what users and EC2 end themselves is nobody's choice. A
//! claim whose node is drained or gone has left nothing that goes, though its instance may take
//! minutes more to end.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::claims::{GONE, pool_of};
use super::going::{UNHEALTHY, reason_of};
use super::{CLAIMS, Judge, NODES, POOLS, Seen};

/// Reasons that are Longshore's own choice.
const BY_CHOICE: [&str; 4] = ["Underutilized", "Empty", "Drifted", "Expired"];
/// For so long the largest size of a pool counts.
const OF_LATE: Duration = Duration::from_secs(5 * 60);
/// Window of the breaker, ten minutes, less what an order may take: it counts from the decision,
/// and what waits for its end goes the moment that it is over.
const WINDOW: Duration = Duration::from_secs(9 * 60);
/// Claims that may go on absence alone, or because their nodes ail, within it, however small the
/// cluster is.
const ABSENT_MAX: usize = 2;
/// Share of the cluster's claims that may, in percent.
const ABSENT_PERCENT: usize = 5;

impl Judge {
    /// A claim begins to go by choice: how many of its pool go with it.
    pub(super) fn within_budget(&self, cluster: &Seen, claim: &Value, reason: &str) {
        if !BY_CHOICE.contains(&reason) {
            return;
        }
        let pool = pool_of(claim);
        let (mut leaving, mut all) = (BTreeSet::new(), 0_u64);
        cluster.handle.visit(CLAIMS, |other| {
            if pool_of(other) == pool {
                all += 1;
                let leaves = !other["metadata"]["deletionTimestamp"].is_null();
                if leaves && !is_drained(other) && BY_CHOICE.contains(&reason_of(other).as_str()) {
                    leaving.insert(other["status"]["nodeName"].to_string());
                }
            }
        });
        let mut going = 0_u64;
        cluster.handle.visit(NODES, |node| {
            going += u64::from(leaving.contains(&node["metadata"]["name"].to_string()));
        });
        let Some(percent) = percent_of(cluster, &pool) else { return };
        let mut state = self.lock();
        let sizes = state.sizes.entry((cluster.label.clone(), pool.clone())).or_default();
        sizes.set(all, OF_LATE);
        let most = sizes.values().copied().max().unwrap_or(all);
        drop(state);
        let allowed = (most * percent).div_ceil(100);
        if going > allowed {
            let text = format!(
                "pool {pool} of {}: {going} of {most} nodes go by choice, {percent} % may",
                cluster.label
            );
            self.violate("a disruption budget was exceeded", text);
        }
    }

    /// Remembers how large the pools of a cluster are.
    pub(super) fn note_sizes(&self, cluster: &Seen) {
        let mut sizes = std::collections::BTreeMap::<String, u64>::new();
        cluster.handle.visit(CLAIMS, |claim| *sizes.entry(pool_of(claim)).or_default() += 1);
        let mut state = self.lock();
        for (pool, size) in sizes {
            state.sizes.entry((cluster.label.clone(), pool)).or_default().set(size, OF_LATE);
        }
    }

    /// A claim begins to go because its instance is not there, and nobody has said that it ended,
    /// or because its node ails.
    pub(super) fn within_breaker(&self, cluster: &Seen, name: &str, reason: &str, told: bool) {
        let absent = reason == GONE && !told;
        if !absent && reason != UNHEALTHY {
            return;
        }
        let now = Instant::now();
        let mut state = self.lock();
        // It was decided when there may have been more.
        let pools = state.sizes.iter().filter(|((label, _), _)| *label == cluster.label);
        let claims: u64 = pools.filter_map(|(_, sizes)| sizes.values().max()).sum();
        let claims = usize::try_from(claims).unwrap_or(usize::MAX);
        let allowed = ABSENT_MAX.max(claims.saturating_mul(ABSENT_PERCENT) / 100);
        let gone = state.absent.entry(cluster.label.clone()).or_default();
        gone.retain(|at| now.duration_since(*at) < WINDOW);
        gone.push(now);
        let count = gone.len();
        drop(state);
        if count > allowed {
            let text = format!(
                "claim {name} of {} is number {count} to go on absence alone or as {UNHEALTHY} in nine \
                 minutes; {allowed} of {claims} may",
                cluster.label
            );
            self.violate("the breaker did not hold", text);
        }
    }
}

/// True when no pod is left on a claim's node, and it is decided what becomes of its volumes.
fn is_drained(claim: &Value) -> bool {
    let conditions = claim["status"]["conditions"].as_array().into_iter().flatten();
    let said = |kind: &str, is: fn(&str) -> bool| {
        let found = conditions.clone().find(|one| one["type"] == kind);
        found.and_then(|one| one["status"].as_str()).is_some_and(is)
    };
    said("Drained", |status| status == "True") && said("VolumesDetached", |s| s != "Unknown")
}

/// The share of a pool that may go at once: its only budget's.
fn percent_of(cluster: &Seen, pool: &str) -> Option<u64> {
    let mut percent = None;
    cluster.handle.visit(POOLS, |found| {
        if found["metadata"]["name"] == pool {
            let nodes = found["spec"]["disruption"]["budgets"][0]["nodes"].as_str();
            percent = nodes.and_then(|nodes| nodes.strip_suffix('%')?.parse().ok());
        }
    });
    percent
}
