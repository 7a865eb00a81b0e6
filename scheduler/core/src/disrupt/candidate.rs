//! Nodes that could go: ours, initialised, not leaving; and what would have to move.
//!
//! Invariant: all timers are derived from the claim's timestamps; a node that only waits for one
//! says when it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::Model;
use crate::model::existing::ExistingNode;
use crate::planted;
use crate::vocabulary::ids::ClaimName;
use crate::vocabulary::pool::{ConsolidationPolicy, DisruptionReason, NodePool};
use crate::world::claim::NodeClaim;
use crate::world::node::Node;
use crate::world::pod::{DoNotDisrupt, Pod};

/// Nodes with pods that fall quiet within this time of each other are judged together, at its end;
/// one by one, the pods of the first would go to the others and be moved again. In milliseconds.
const TOGETHER_MS: i64 = 5_000;
/// A node that has just opened is not judged before the pods that are planned for it had this time
/// to arrive, in milliseconds: two of the longest batches of the peer, which waits as long.
const ARRIVAL_MS: i64 = 20_000;
/// Pods are left where they are for this long, in milliseconds, before others' room may save their
/// node.
const REST_MS: i64 = 30_000;
/// A node that is bought in place of theirs costs beside it for this long, in milliseconds: it
/// boots, and the old one drains. Pods are left until what is saved has earned that since they
/// came: a saving of two thirds after a minute and a half.
const OVERLAP_MS: i64 = 60_000;
/// Pods on a node that was bought as they came wait no longer for that, in milliseconds: a burst
/// bought in parts is bettered once, soon, before caches and connections are worth keeping.
const FIRST_PAYBACK_MAX_MS: i64 = OVERLAP_MS * 3 / 2;
/// Pods that have been moved once are moved again for so many times as long a wait: a saving of a
/// half after ten minutes, one of a tenth after fifty.
const AGAIN: i64 = 5;
/// However little is saved, pods wait no longer than that, in milliseconds.
const PAYBACK_MAX_MS: i64 = 60 * OVERLAP_MS;

/// As many trials reach nearly the longest of these times.
const TURNS: usize = 5;

/// The end of the period of [`TOGETHER_MS`] that a time lies in.
const fn together(at_ms: i64) -> i64 {
    at_ms.saturating_add(TOGETHER_MS - 1) / TOGETHER_MS * TOGETHER_MS
}

/// True when the pods of a node were moved there. Those that came to one which had long been there
/// were as a rule, or found room on what is worth keeping.
fn were_moved(claim: &NodeClaim, placed_ms: i64) -> bool {
    let opened_ms = claim.initialized_ms.unwrap_or(i64::MAX);
    claim.replacement || placed_ms > opened_ms.saturating_add(ARRIVAL_MS)
}

/// How long its pods are left when all of its cost is saved, and how long at the most, in
/// milliseconds.
fn payback_ms(claim: &NodeClaim, placed_ms: i64) -> (i64, i64) {
    match were_moved(claim, placed_ms) {
        false => (OVERLAP_MS, FIRST_PAYBACK_MAX_MS),
        true => (AGAIN * OVERLAP_MS, PAYBACK_MAX_MS),
    }
}

/// A node that could go.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    /// Index of its existing node.
    pub(crate) existing: usize,
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
    /// When consolidateAfter will have passed, in milliseconds since 1970; None when it never will.
    pub(crate) quiet_ms: Option<i64>,
    /// When it may be removed although pods run on it: it and its like have been quiet for long.
    pub(crate) ripe_ms: Option<i64>,
    /// When half of its pods had come, in milliseconds since 1970; long ago when nothing is to be
    /// earned.
    placed_ms: i64,
    /// What moving its pods costs, in pods of average standing.
    pub(crate) move_cost: f64,
    /// When waiting alone changes what may happen to it, in milliseconds since 1970.
    pub(crate) wake_ms: Option<i64>,
    now_ms: i64,
}

impl Candidate<'_> {
    /// True when do-not-disrupt holds the node. Expiry and drift override pods' preferences when
    /// the claim bounds its drain, since then the pods' time is limited anyway.
    pub(crate) fn is_blocked(&self, reason: DisruptionReason) -> bool {
        self.refused && !self.overrides(reason)
    }

    /// True when the pods' time is limited anyway: their owner has bounded the drain, and the node
    /// must go.
    pub(crate) fn overrides(&self, reason: DisruptionReason) -> bool {
        let forced = matches!(reason, DisruptionReason::Expired | DisruptionReason::Drifted);
        forced && self.claim.termination_grace_ms.is_some()
    }

    /// How many pods would have to move.
    pub(crate) fn pod_count(&self) -> i64 {
        i64::try_from(self.pods.len()).unwrap_or(i64::MAX)
    }

    /// True when nothing runs on it that counts and its pool removes such nodes, soon or now.
    pub(crate) fn ends(&self) -> bool {
        self.pods.is_empty() && self.quiet_ms.is_some() && !self.refused
    }

    /// True when nothing runs on it that counts and consolidateAfter has passed.
    pub(crate) fn may_end(&self) -> bool {
        self.ends() && self.quiet_ms.is_some_and(|quiet_ms| quiet_ms <= self.now_ms)
    }

    /// True when pods run on it and it may be removed all the same.
    pub(crate) fn may_consolidate(&self) -> bool {
        self.ripe_ms.is_some_and(|ripe_ms| ripe_ms <= self.now_ms)
    }

    /// True when it may be removed and what it costs may buy another node, if that is cheap enough.
    pub(crate) fn may_be_replaced(&self) -> bool {
        self.may_consolidate() && self.has_paid(1, 1)
    }

    /// True when its pods have been where they are for long enough that what is saved has earned
    /// the move: `saving` of every `cost` that now goes.
    pub(crate) fn has_paid(&self, saving: i64, cost: i64) -> bool {
        let (overlap_ms, most_ms) = payback_ms(&self.claim, self.placed_ms);
        let payback_ms = i128::from(overlap_ms) * i128::from(cost) / i128::from(saving.max(1));
        self.has_rested(i64::try_from(payback_ms).map_or(most_ms, |ms| ms.min(most_ms)))
    }

    /// True when its pods were moved there, as far as times tell.
    pub(crate) fn has_been_moved(&self) -> bool {
        were_moved(&self.claim, self.placed_ms)
    }

    /// True when its pods have been where they are for as long as any wait.
    pub(crate) fn has_paid_anything(&self) -> bool {
        self.has_rested(PAYBACK_MAX_MS)
    }

    /// How long from now until it may be consolidated, in milliseconds; none when it never may.
    pub(crate) fn quiet_in_ms(&self) -> Option<i64> {
        Some(self.ripe_ms.or(self.quiet_ms)? - self.now_ms)
    }

    /// How long from now until its pods have been where they are for as long as any wait, in
    /// milliseconds; none when they need not be.
    pub(crate) fn pays_in_ms(&self) -> Option<i64> {
        let known = self.placed_ms > i64::MIN;
        known.then(|| self.placed_ms.saturating_add(PAYBACK_MAX_MS) - self.now_ms)
    }

    const fn has_rested(&self, wait_ms: i64) -> bool {
        self.placed_ms.saturating_add(wait_ms) <= self.now_ms
    }

    /// Pods that would have to move, by shape.
    pub(crate) fn load(&self) -> BTreeMap<usize, i64> {
        let mut load = BTreeMap::new();
        self.pods.iter().for_each(|(shape, _)| *load.entry(*shape).or_default() += 1);
        load
    }

    /// True when its time has not come. A pod moved there would start its clock anew, and might be
    /// moved again soon.
    pub(crate) fn ripens(&self) -> bool {
        self.ripe_ms.is_some_and(|ripe_ms| ripe_ms > self.now_ms)
    }
}

/// All candidates, in order of claim name.
pub(crate) fn all<'a>(model: &Model<'a>) -> Vec<Candidate<'a>> {
    let existing_nodes = model.existing_nodes.iter().enumerate();
    let mut all: Vec<Candidate<'a>> =
        existing_nodes.filter_map(|(index, existing)| candidate(model, index, existing)).collect();
    let awaited = awaited(model);
    all.retain(|candidate| !awaited.contains(&candidate.claim.name) || planted::is("S31"));
    ripen_together(&mut all);
    all.sort_by(|a, b| a.claim.name.cmp(&b.claim.name));
    all
}

/// Claims that stand for others, which have not gone yet: their pods are still to come.
fn awaited<'m>(model: &'m Model<'_>) -> BTreeSet<&'m ClaimName> {
    model.input.world.claims.values().flat_map(|claim| &claim.replaced_by).collect()
}

/// Says when nodes with pods may be removed. In order of time, the first waits for those that come
/// soon after, which then do not wait longer than it.
fn ripen_together(all: &mut [Candidate<'_>]) {
    all.sort_by_key(|candidate| candidate.quiet_ms);
    let mut ripe_ms = i64::MIN;
    for candidate in all.iter_mut().filter(|c| !c.pods.is_empty() && !c.refused) {
        let Some(quiet_ms) = candidate.quiet_ms else { continue };
        if quiet_ms > ripe_ms {
            ripe_ms = quiet_ms.saturating_add(TOGETHER_MS);
        }
        candidate.ripe_ms = Some(ripe_ms);
        candidate.wake_at(ripe_ms);
    }
}

fn candidate<'a>(
    model: &Model<'a>,
    index: usize,
    existing: &ExistingNode<'a>,
) -> Option<Candidate<'a>> {
    let (node, claim) = (existing.node?, Arc::clone(existing.claim.as_ref()?));
    let pool: &'a NodePool = model.input.world.pools.get(&claim.pool)?;
    if existing.leaving || node.is_fargate() || claim.initialized_ms.is_none() {
        return None;
    }
    // Others take its turn.
    if model.input.spared(&claim.name).is_some() && !planted::is("S38") {
        return None;
    }
    let now_ms = model.input.now_ms;
    let mut candidate = Candidate {
        existing: index,
        node,
        pool,
        pods: Vec::new(),
        refused: node.do_not_disrupt || claim.do_not_disrupt,
        must_go: must_go(&claim, now_ms),
        quiet_ms: None,
        ripe_ms: None,
        placed_ms: i64::MIN,
        move_cost: 1.0,
        wake_ms: claim.expires_ms().filter(|expires_ms| *expires_ms > now_ms),
        now_ms,
        claim,
    };
    for pod in model.input.world.pods_on(&node.name) {
        candidate.consider(model, pod);
    }
    candidate.watch_clock();
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
        // One that runs and could not be placed again (it claims a device ...) holds it, too.
        let stuck = model.shapes[shape].unschedulable.is_some() && !model.stays_with_node(shape);
        self.refused |= stuck || pod.do_not_disrupt.in_force(self.now_ms);
        if let DoNotDisrupt::UntilMs(until_ms) = pod.do_not_disrupt {
            self.wake_at(until_ms);
        }
        if !model.stays_with_node(shape) {
            self.move_cost += eviction_cost(pod, model.shapes[shape].priority).max(0.0);
            self.pods.push((shape, pod));
        }
    }

    /// When consolidateAfter will have passed, if its pool removes it at all.
    fn watch_clock(&mut self) {
        let rules = &self.pool.disruption;
        // How many nodes such a pool has is not for savings to say.
        if self.pool.replicas.is_some() {
            return;
        }
        if !self.pods.is_empty() && rules.policy == ConsolidationPolicy::WhenEmpty {
            return;
        }
        let Some(opened_ms) = self.claim.initialized_ms else { return };
        let chosen_ms = rules.consolidate_after_ms.and_then(|ms| self.claim.quiet_since_ms(ms));
        let Some(mut quiet_ms) = chosen_ms else { return };
        if !planted::is("S31") {
            quiet_ms = quiet_ms.max(opened_ms.saturating_add(ARRIVAL_MS));
        }
        if let Some(placed_ms) = self.placed_ms().filter(|_| !planted::is("S32")) {
            quiet_ms = quiet_ms.max(placed_ms.saturating_add(REST_MS));
            self.placed_ms = placed_ms;
            // What pays back when is known only to a trial: it is made anew after twice the time
            // each, and for all nodes that are due within some seconds at once.
            let (overlap_ms, most_ms) = payback_ms(&self.claim, placed_ms);
            let longer = |after_ms: &i64| Some((after_ms * 2).min(most_ms));
            let turns = std::iter::successors(Some(overlap_ms), longer).take(TURNS);
            let turns = turns.chain([PAYBACK_MAX_MS]);
            let due = turns.map(|after_ms| placed_ms.saturating_add(after_ms));
            due.for_each(|at_ms| self.wake_at(together(at_ms)));
        }
        self.quiet_ms = Some(quiet_ms);
        self.wake_at(quiet_ms);
    }

    /// When half of the pods that would have to move had come, in milliseconds since 1970. A node
    /// on which few of many pods are new is judged all the same: there are new pods on it at any
    /// time.
    fn placed_ms(&self) -> Option<i64> {
        let mut created: Vec<i64> = self.pods.iter().map(|(_, pod)| pod.created_ms).collect();
        created.sort_unstable();
        created.get(created.len() / 2).copied()
    }

    fn wake_at(&mut self, at_ms: i64) {
        if at_ms > self.now_ms {
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
