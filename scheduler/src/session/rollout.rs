//! Rollouts: drifted nodes are replaced as long as the new ones turn out well.
//!
//! The first new nodes of a pool, its canaries, are looked at before the others follow: each must
//! be ready, and all pods on it must run, for a while. One that does not get there in time stops
//! the rollout: drifted nodes stay, those that were about to go are kept, and the pool says why.
//!
//! Invariant: all of it follows from what the cluster shows. A new node is one that has not
//! drifted, whoever it was bought for; a rollout that was stopped is known by the pool's condition,
//! and stays so until nodes are known to become something else, or somebody asks for another try.

use std::collections::BTreeMap;

use longshore_core::vocabulary::pool::{BudgetNodes, Canary, DisruptionReason};
use longshore_core::world::claim::NodeClaim;
use longshore_core::world::pod::PodPhase;
use longshore_core::world::view::World;
use longshore_proto::cluster::v1::Condition;
use longshore_proto::content;
use longshore_proto::time::duration_ms;
use longshore_proto::types::v1::{NodePool, Rollout as Wire};
use longshore_runtime::planted;

use super::drift::{Drift, Wanted};
use crate::wire::pool::budget_nodes;

/// The condition of a pool that says how its rollout is getting on.
const HEALTHY: &str = "RolloutHealthy";
/// Reason of the condition while nodes are being replaced.
const ROLLING_OUT: &str = "RollingOut";
/// Reason of the condition once the rollout has been stopped, before a colon and its name.
const CANARY_FAILED: &str = "CanaryFailed";
/// How many new nodes are looked at unless the pool says.
const CANARIES: BudgetNodes = BudgetNodes::Count(1);
/// How long they must have been well unless the pool says, in milliseconds.
const WAIT_MS: i64 = 30_000;
/// How long they may take unless the pool says, in milliseconds.
const PATIENCE_MS: i64 = 10 * 60 * 1000;
/// Between two looks at nodes that are not well yet, in milliseconds.
const LOOK_MS: i64 = 5_000;

/// How a pool's drifted nodes are being replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Names what nodes are to become; while that is not known, what they were to become last.
    pub target: String,
    /// Nodes that have drifted.
    pub drifted: usize,
    /// All nodes of the pool.
    pub nodes: usize,
    /// New nodes that others wait for; none once these have turned out well.
    pub canary: Option<Canary>,
    /// Why no more nodes are replaced; none while they are.
    pub stopped: Option<String>,
    /// When to look again, in milliseconds since 1970.
    pub due_ms: Option<i64>,
}

/// Names what nodes of a pool are to become: its template, its node class, and what the region has
/// found for that as it stands; none while that is nothing, as after a start.
#[must_use]
pub fn target(wanted: Wanted<'_>) -> Option<String> {
    let Wanted { pool, class, .. } = wanted;
    let found = wanted.in_date()?;
    if found.images.is_empty() || found.subnets.is_empty() {
        return None;
    }
    let class = class.map_or("", |class| class.drift_hash.as_str());
    let mut ids: Vec<&str> = found.images.iter().map(|image| image.id.as_str()).collect();
    ids.extend(found.security_groups.iter().map(|group| group.id.as_str()));
    ids.extend(found.subnets.iter().map(|subnet| subnet.id.as_str()));
    ids.sort_unstable();
    let named = format!("{}/{class}/{}", pool.drift_hash, ids.join(","));
    Some(content::hash_of_bytes::<4>(named.as_bytes()))
}

/// How a new node is getting on.
enum Sign {
    /// It and its pods have been well for long enough.
    Well,
    /// It is too soon to say before this time, in milliseconds since 1970.
    Early(i64),
    /// It has not got there in time, and why.
    Failing(String),
}

/// A pool at one moment.
pub struct Look<'a> {
    /// The cluster.
    pub world: &'a World,
    /// Claims that have drifted.
    pub drifted: &'a BTreeMap<String, Drift>,
    /// The pool.
    pub pool: &'a NodePool,
    /// Time of day, in milliseconds since 1970.
    pub now_ms: i64,
}

impl Look<'_> {
    /// How the rollout of the pool is getting on, which has these claims.
    #[must_use]
    pub fn rollout(&self, claims: &[&NodeClaim], target: Option<String>) -> Rollout {
        let is_drifted = |claim: &&&NodeClaim| self.drifted.contains_key(claim.name.as_str());
        let going = |claim: &&&NodeClaim| claim.disrupted == Some(DisruptionReason::Drifted);
        let drifted = claims.iter().filter(is_drifted).count();
        let marked = claims.iter().filter(is_drifted).filter(going).count();
        let rules = self.pool.rollout.clone().unwrap_or_default();
        let target = target.unwrap_or_else(|| {
            if planted::is("S37a") { "unknown".to_owned() } else { rules.stopped.clone() }
        });
        let rollout = Rollout { target, drifted, nodes: claims.len(), ..Rollout::default() };
        let canaries = budget_nodes(&rules.canary).unwrap_or(CANARIES);
        let canaries = canaries.of(i64::try_from(claims.len()).unwrap_or(i64::MAX));
        let fresh = claims.iter().filter(|claim| !is_drifted(claim) && !claim.is_leaving());
        let signs: Vec<Sign> = fresh.map(|claim| self.sign(claim, &rules)).collect();
        let well = signs.iter().filter(|sign| matches!(sign, Sign::Well)).count();
        if count(well) >= canaries {
            return rollout;
        }
        let failing = signs.iter().find_map(|sign| match sign {
            Sign::Failing(why) => Some(why.clone()),
            Sign::Well | Sign::Early(_) => None,
        });
        let before = (rules.stopped == rollout.target).then_some(rules.stopped_because);
        let why = before.or_else(|| failing.map(|why| stopped(self.pool, &rollout, &why)));
        // What has no name could not be remembered as stopped; it waits for its canaries.
        if let Some(why) = why.filter(|_| !rollout.target.is_empty()) {
            return Rollout { stopped: Some(why), ..rollout };
        }
        let due = signs.iter().filter_map(|sign| match sign {
            Sign::Early(at_ms) => Some(*at_ms),
            Sign::Well | Sign::Failing(_) => None,
        });
        let due_ms = due.min().map(|at_ms| at_ms.clamp(self.now_ms, self.now_ms + LOOK_MS));
        let under_way = count(marked.max(signs.len() - well));
        let canary = Some(Canary { nodes: canaries, under_way });
        Rollout { canary, due_ms, ..rollout }
    }

    fn sign(&self, claim: &NodeClaim, rules: &Wire) -> Sign {
        let wait_ms = rules.wait.as_ref().map_or(WAIT_MS, duration_ms);
        let patience_ms = rules.patience.as_ref().map_or(PATIENCE_MS, duration_ms);
        let late = |since_ms: i64, why: String| {
            let at_ms = since_ms.saturating_add(patience_ms);
            if at_ms <= self.now_ms { Sign::Failing(why) } else { Sign::Early(at_ms) }
        };
        let name = &claim.name;
        let Some(initialized_ms) = claim.initialized_ms else {
            return late(claim.created_ms, format!("the node of {name} is not ready"));
        };
        let node = claim.node.as_ref().and_then(|node| self.world.nodes.get(node));
        let Some(node) = node.filter(|node| node.ready) else {
            return late(initialized_ms, format!("the node of {name} is not ready any more"));
        };
        let pods = self.world.pods_on(&node.name).filter(|pod| !pod.deleting);
        let waits = pods.filter(|pod| pod.phase == PodPhase::Pending);
        match waits.min_by_key(|pod| pod.created_ms) {
            Some(pod) => {
                let (node, pod, since_ms) = (&node.name, &pod.key, pod.created_ms);
                late(since_ms.max(initialized_ms), format!("pod {pod} does not run on {node}"))
            }
            None if initialized_ms.saturating_add(wait_ms) <= self.now_ms => Sign::Well,
            None => Sign::Early(initialized_ms.saturating_add(wait_ms)),
        }
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Why a rollout is stopped, and the ways out.
fn stopped(pool: &NodePool, rollout: &Rollout, why: &str) -> String {
    let (name, target, class) = (&pool.name, &rollout.target, &pool.node_class);
    format!(
        "{why}, so nodes that have drifted stay as they are; put NodePool {name} or {class} back, \
         change them again, or try this once more by kubectl annotate --overwrite nodepool {name} \
         longshore.dev/retry-rollout={target}"
    )
}

/// What the pool's condition says.
#[must_use]
pub fn condition(rollout: Option<&Rollout>) -> Condition {
    let (status, reason, message) = match rollout {
        None => (true, HEALTHY.to_owned(), String::new()),
        Some(Rollout { stopped: Some(why), target, .. }) => {
            (false, format!("{CANARY_FAILED}:{target}"), why.clone())
        }
        Some(Rollout { drifted, nodes, canary, .. }) => {
            let first = canary.map_or(String::new(), |it| {
                format!("; {} of them first, to see how they turn out", it.nodes)
            });
            let message = format!("{drifted} of {nodes} nodes are to be replaced{first}");
            (true, ROLLING_OUT.to_owned(), message)
        }
    };
    Condition { r#type: HEALTHY.to_owned(), status: Some(status), reason, message }
}
