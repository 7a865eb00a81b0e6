//! What may be launched: for a claim that exists, within the limits of its pool, and not without
//! end.
//!
//! Invariant: judged before the instance can be seen. Limits are those that the pool has had at any
//! moment of the last minutes, since a launch may be under way when its owner lowers them.

use longshore_actuator::cloud::TAG_POOL;
use serde_json::Value;
use tokio::time::{Duration, Instant};

use super::{Judge, POOLS, Seen};
use crate::region::Record;

/// How long a launch may be under way.
const UNDER_WAY: Duration = Duration::from_secs(5 * 60);
/// Calls for one launch within that time, at most: one that is tried at ever larger pauses makes
/// fewer.
const CALLS_MAX: usize = 30;

/// How long one leader calls for a launch: five minutes, and what an answer takes.
const DEADLINE_MAX: Duration = Duration::from_secs(8 * 60);

/// Calls with one token that a leader makes once it has heard what EC2 answers to it, at most: a
/// task that panics forgets what it has heard.
const REPEATED_MAX: usize = 2;

/// Limits of a pool: thousandths of a CPU, and nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    cpu_millis: i64,
    nodes: i64,
}

impl Judge {
    /// EC2 is asked to launch something.
    pub(super) fn asked(&self, site: usize, token: &str) {
        let mut launches = self.launches_of(site, token);
        if launches.is_empty() {
            launches.push(token.rsplit_once('-').map_or(token, |(launch, _)| launch).to_owned());
        }
        launches.iter().for_each(|launch| self.called_for(site, launch));
        self.not_answered(site, token);
    }

    /// Somebody hears what EC2 answers to a call; `definite` when the same call would get the same
    /// again.
    pub(super) fn answered(&self, site: usize, token: &str, (said, definite): (&str, bool)) {
        self.journal.note(&format!("EC2: call {token}: {said}"));
        let mut state = self.lock();
        let Some((_, term)) = state.terms.get(&site).copied().filter(|_| definite) else { return };
        let known = state.repeated.entry(token.to_owned()).or_insert((term, 0));
        if known.0 != term {
            *known = (term, 0);
        }
    }

    /// A leader that has heard an answer does not ask for it again.
    fn not_answered(&self, site: usize, token: &str) {
        let mut state = self.lock();
        let term = state.terms.get(&site).map(|(_, term)| *term);
        let Some(known) = state.repeated.get_mut(token).filter(|known| Some(known.0) == term)
        else {
            return;
        };
        known.1 += 1;
        let repeated = known.1;
        drop(state);
        if repeated == REPEATED_MAX + 1 {
            let text = format!("token {token}: {repeated} times after its answer was heard");
            self.violate("a call was repeated without end", text);
        }
    }

    /// EC2 is asked for this launch, or for it and others.
    fn called_for(&self, site: usize, launch: &str) {
        self.within_deadline(site, launch);
        let now = Instant::now();
        let mut state = self.lock();
        let calls = state.calls.entry(launch.to_owned()).or_default();
        calls.retain(|at| now.duration_since(*at) < UNDER_WAY);
        calls.push(now);
        let count = calls.len();
        drop(state);
        if count.is_multiple_of(10) {
            self.journal.note(&format!("EC2: launch {launch} was asked for {count} times of late"));
        }
        if count == CALLS_MAX + 1 {
            let text = format!("launch {launch}: {count} calls in {UNDER_WAY:?}");
            self.violate("called without end", text);
        }
    }

    /// A leader gives a launch up after a while.
    fn within_deadline(&self, site: usize, launch: &str) {
        let now = Instant::now();
        let mut state = self.lock();
        let Some((_, term)) = state.terms.get(&site).copied() else { return };
        let begun = state.begun.entry(launch.to_owned()).or_insert((now, term));
        if begun.1 != term {
            *begun = (now, term);
        }
        let lasted = now.duration_since(begun.0);
        drop(state);
        if lasted > DEADLINE_MAX {
            let text =
                format!("launch {launch} is asked for {} s after its first call", lasted.as_secs());
            self.violate("a launch had no deadline", text);
        }
    }

    /// The claim of a launch must exist, or have existed.
    pub(super) fn has_a_claim(&self, cluster: &Seen, record: &Record, claim: &str) {
        let key = (cluster.label.clone(), claim.to_owned());
        if !self.lock().ever.contains(&key) && cluster.claim(claim).is_none() {
            let text = format!(
                "{} of {} is launched for claim {claim}, which was never made",
                record.seen.instance_id, cluster.label
            );
            self.violate("launched without a claim", text);
        }
    }

    /// Remembers what the pools of a cluster allow.
    pub(super) fn note_limits(&self, cluster: &Seen) {
        let mut found = Vec::new();
        cluster.handle.visit(POOLS, |pool| {
            let name = pool["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            found.push((name, limit_of(pool)));
        });
        let mut state = self.lock();
        for (pool, limit) in found {
            state.limits.entry((cluster.label.clone(), pool)).or_default().set(limit, UNDER_WAY);
        }
    }

    /// The instances of the pool and this one are within its limits.
    pub(super) fn within_limits(&self, cluster: &Seen, record: &Record, cpu_millis: i64) {
        let pool = record.seen.tag(TAG_POOL).to_owned();
        let mut state = self.lock();
        let bought = (cluster.label.clone(), pool.clone(), cpu_millis);
        state.bought.insert(record.seen.instance_id.clone(), bought);
        let mut alive: Vec<&String> = Vec::new();
        for ((label, _), ids) in &state.alive {
            if *label == cluster.label {
                alive.extend(ids);
            }
        }
        // What EC2 denies and no node speaks for may be replaced.
        let alive = alive.into_iter().filter(|id| !state.denied.contains(*id));
        let of_pool = alive.filter_map(|id| state.bought.get(id));
        let of_pool = of_pool.filter(|(label, name, _)| *label == cluster.label && *name == pool);
        let used: Vec<i64> = of_pool.map(|(_, _, cpu_millis)| *cpu_millis).collect();
        let (cpu, nodes) =
            (used.iter().sum::<i64>(), i64::try_from(used.len()).unwrap_or(i64::MAX));
        let Some(limits) = state.limits.get(&(cluster.label.clone(), pool.clone())) else { return };
        let most_cpu = limits.values().map(|limit| limit.cpu_millis).max().unwrap_or(i64::MAX);
        let most_nodes = limits.values().map(|limit| limit.nodes).max().unwrap_or(i64::MAX);
        drop(state);
        if cpu > most_cpu || nodes > most_nodes {
            let text = format!(
                "pool {pool} of {}: {cpu}m CPU on {nodes} nodes, allowed {most_cpu}m on {most_nodes}",
                cluster.label
            );
            self.violate("a pool's limit was exceeded", text);
        }
    }
}

fn limit_of(pool: &Value) -> Limit {
    let number = |key: &str| {
        let value = &pool["spec"]["limits"][key];
        value.as_str().and_then(|text| text.parse::<i64>().ok()).or_else(|| value.as_i64())
    };
    Limit {
        cpu_millis: number("cpu").map_or(i64::MAX, |cpus| cpus.saturating_mul(1000)),
        nodes: number("nodes").unwrap_or(i64::MAX),
    }
}
