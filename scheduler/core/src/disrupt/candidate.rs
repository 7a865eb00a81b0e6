//! Nodes that could go: ours, initialised, not leaving; and what would have to move.
//!
//! Invariant: all timers are derived from the claim's timestamps; a node that only waits for one says
//! when it ends.

use std::sync::Arc;

use crate::plan::hosts::Host;
use crate::plan::model::Model;
use crate::vocabulary::pool::{ConsolidationPolicy, DisruptionReason, NodePool};
use crate::world::claim::NodeClaim;
use crate::world::node::Node;
use crate::world::pod::{DoNotDisrupt, Pod};

/// How much longer a node with pods is left alone, in milliseconds. Nodes that fell quiet within
/// this time are judged together; one by one, the pods of the first would go to the others, start
/// their clocks anew and be moved again. No less than what the clocks are exact to.
const TOGETHER_MS: i64 = 5_000;

/// A node that could go.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    /// Index of its host.
    pub(crate) host: usize,
    /// Its node.
    pub(crate) node: &'a Node,
    /// Its claim.
    pub(crate) claim: Arc<NodeClaim>,
    /// Its pool.
    pub(crate) pool: &'a NodePool,
    /// Pods that would have to move, with their shapes.
    pub(crate) pods: Vec<(usize, &'a Arc<Pod>)>,
    /// True when a pod or the node itself refuses disruption.
    pub(crate) refused: bool,
    /// Why it must go whatever it saves, when so.
    pub(crate) must_go: Option<DisruptionReason>,
    /// True once consolidateAfter has passed.
    pub(crate) is_quiet: bool,
    /// True when it may be removed although pods run on it.
    pub(crate) may_consolidate: bool,
    /// What moving its pods costs, in pods of average standing.
    pub(crate) move_cost: f64,
    /// True when nothing runs on it that counts and its pool removes such nodes, soon or now.
    pub(crate) ends: bool,
    /// When waiting alone changes what may happen to it, in milliseconds since 1970.
    pub(crate) wake_ms: Option<i64>,
}

impl Candidate<'_> {
    /// True when do-not-disrupt holds the node. Expiry and drift override pods' wishes when the claim
    /// bounds its drain, since then the pods' time is limited anyway.
    pub(crate) fn is_blocked(&self, reason: DisruptionReason) -> bool {
        let forced = matches!(reason, DisruptionReason::Expired | DisruptionReason::Drifted);
        self.refused && !(forced && self.claim.termination_grace_ms.is_some())
    }
}

/// All candidates, in order of claim name.
pub(crate) fn all<'a>(model: &Model<'a>) -> Vec<Candidate<'a>> {
    let hosts = model.hosts.iter().enumerate();
    let mut all: Vec<Candidate<'a>> =
        hosts.filter_map(|(index, host)| candidate(model, index, host)).collect();
    all.sort_by(|a, b| a.claim.name.cmp(&b.claim.name));
    all
}

fn candidate<'a>(model: &Model<'a>, index: usize, host: &Host<'a>) -> Option<Candidate<'a>> {
    let (node, claim) = (host.node?, Arc::clone(host.claim.as_ref()?));
    let pool: &'a NodePool = model.input.world.pools.get(&claim.pool)?;
    if host.leaving || node.is_fargate() || claim.initialized_ms.is_none() {
        return None;
    }
    let now_ms = model.input.now_ms;
    let mut candidate = Candidate {
        host: index,
        node,
        pool,
        pods: Vec::new(),
        refused: node.do_not_disrupt || claim.do_not_disrupt,
        must_go: must_go(&claim, now_ms),
        is_quiet: false,
        may_consolidate: false,
        move_cost: 1.0,
        ends: false,
        wake_ms: claim.expires_ms().filter(|expires_ms| *expires_ms > now_ms),
        claim,
    };
    for pod in model.input.world.pods_on(&node.name) {
        candidate.consider(model, pod);
    }
    candidate.watch_clock(now_ms);
    Some(candidate)
}

fn must_go(claim: &NodeClaim, now_ms: i64) -> Option<DisruptionReason> {
    let expired = claim.expires_ms().is_some_and(|expires_ms| expires_ms <= now_ms);
    if expired {
        return Some(DisruptionReason::Expired);
    }
    claim.drifted.then_some(DisruptionReason::Drifted)
}

impl<'a> Candidate<'a> {
    fn consider(&mut self, model: &Model<'a>, pod: &'a Arc<Pod>) {
        // A pod of unknown shape cannot be moved knowingly, so it holds the node.
        let Some(shape) = model.shape_of(pod) else {
            self.refused = true;
            return;
        };
        if pod.deleting {
            return;
        }
        let now_ms = model.input.now_ms;
        self.refused |= pod.do_not_disrupt.in_force(now_ms);
        if let DoNotDisrupt::UntilMs(until_ms) = pod.do_not_disrupt {
            self.wake_at(until_ms, now_ms);
        }
        if !model.stays_with_node(shape) {
            self.move_cost += eviction_cost(pod, model.shapes[shape].priority).max(0.0);
            self.pods.push((shape, pod));
        }
    }

    /// Whether consolidateAfter has passed, or when it will.
    fn watch_clock(&mut self, now_ms: i64) {
        let rules = &self.pool.disruption;
        let any_load = rules.policy == ConsolidationPolicy::WhenEmptyOrUnderutilized;
        if !any_load && !self.pods.is_empty() {
            return;
        }
        let quiet_ms = rules.consolidate_after_ms.and_then(|ms| self.claim.quiet_since_ms(ms));
        let Some(quiet_ms) = quiet_ms else { return };
        self.ends = self.pods.is_empty() && !self.refused;
        self.is_quiet = quiet_ms <= now_ms;
        self.wake_at(quiet_ms, now_ms);
        if any_load && !self.pods.is_empty() {
            self.may_consolidate = quiet_ms + TOGETHER_MS <= now_ms;
            self.wake_at(quiet_ms + TOGETHER_MS, now_ms);
        }
    }

    fn wake_at(&mut self, at_ms: i64, now_ms: i64) {
        if at_ms > now_ms {
            self.wake_ms = Some(self.wake_ms.map_or(at_ms, |known_ms| known_ms.min(at_ms)));
        }
    }
}

/// Karpenter's measure: 1 for a pod without deletion cost and priority, -10 to 10 in all.
fn eviction_cost(pod: &Pod, priority: i32) -> f64 {
    const DELETION_COST_UNIT: f64 = 134_217_728.0;
    const PRIORITY_UNIT: f64 = 33_554_432.0;
    let cost = 1.0
        + f64::from(pod.deletion_cost) / DELETION_COST_UNIT
        + f64::from(priority) / PRIORITY_UNIT;
    cost.clamp(-10.0, 10.0)
}
