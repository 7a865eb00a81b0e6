//! Carries out a plan: claims for its launches, nominations, disruptions, and word for the pods
//! that cannot be placed.
//!
//! Invariant: no opinion of its own. What the view has overtaken meanwhile is skipped and comes up
//! again, if still needed, with the next plan.

mod counted;
pub mod early;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use longshore_core::answer::{Disruption, NewNode, Plan, Target, Unplaced};
use longshore_core::question::Spared;
use longshore_core::vocabulary::ids::{ClaimName, NodeName, PodUid};
use longshore_core::vocabulary::pool::DisruptionReason;
use longshore_proto::cluster::v1 as cluster;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::launch_id;
use longshore_proto::types::v1;
use longshore_runtime::entropy::Entropy;
use longshore_runtime::planted;
use longshore_runtime::propagate;

use super::Session;
use super::outbox::Origin;
use super::planning::Proposal;
use super::verdict;
use crate::wire::{self, timestamp};

/// Most pods of one shape that are told why they cannot be placed; the reason is the same for all.
const TOLD_PER_SHAPE: usize = 10;
/// A disruption that does not stand at present is looked at again after this long, also when
/// nothing changes.
const SKIPPED_AGAIN: Duration = Duration::from_secs(30);
/// Most reasons of pods without a place that are logged of one plan: each pod may have its own.
const REASONS_MAX: usize = 20;
/// Characters of a claim's suffix: those that Kubernetes uses in generated names.
const SUFFIX_CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of a claim's suffix.
const SUFFIX_LENGTH: usize = 5;

impl Session {
    /// Carries out a plan and takes it as the newest, unless it must be computed anew.
    pub(super) fn commit(&mut self, mut proposal: Proposal) {
        let now_ms = self.supervisor.platform().clock.now_ms();
        let traceparent = propagate::traceparent_of(&proposal.span);
        if self.planning.has_overtaken(&proposal) {
            tracing::debug!(plan_id = proposal.plan_id, "overtaken while it was computed");
            self.planning.want(&traceparent);
            return;
        }
        if let Some(holds) = proposal.holds.take() {
            self.holds.take(holds, self.session_ms());
        }
        let plan = Arc::clone(&proposal.plan);
        let plan_id = proposal.plan_id.clone();
        let origin =
            Origin { plan_id: &plan_id, traceparent: &traceparent, now_ms: self.session_ms() };
        // What EC2 takes away ends with its lifecycle, at once and without a plan.
        let decided = |d: &Disruption| d.reason != DisruptionReason::Interrupted;
        let goes = plan.disruptions.iter().map(|d| decided(d) && self.may_disrupt(d, now_ms));
        let goes: Vec<bool> = goes.collect();
        let all = plan.disruptions.iter().zip(&goes);
        let skipped = all.clone().any(|(d, goes)| decided(d) && !goes);
        let going: Vec<&Disruption> = all.filter(|(_, goes)| **goes).map(|(d, _)| d).collect();
        let (wanted, held) = self.wanted(&proposal, |at| goes[at]);
        let launches = wanted.into_iter().enumerate();
        let launched: Vec<Option<String>> = launches
            .map(|(at, wanted)| wanted.then(|| self.create_claim(at, &proposal, origin)).flatten())
            .collect();
        self.disrupt(&going, &launched, origin);
        self.nominate(&proposal, origin);
        report(&proposal, &launched, held);
        self.count_plan(&proposal, &launched);
        self.planning.adopt(proposal, &launched, &self.state, now_ms);
        self.pin_early(origin);
        if skipped {
            self.planning.cadence.wake_after(SKIPPED_AGAIN);
        }
    }

    /// For each launch of a plan whether it is wanted now, and how many wait for more pods. A burst
    /// is served once nothing of it waits.
    fn wanted(&mut self, proposal: &Proposal, goes: impl Fn(usize) -> bool) -> (Vec<bool>, usize) {
        let plan = &proposal.plan;
        let needed = plan.standing(goes).into_iter().zip(self.waiting(plan));
        let foreseen = |at: usize| proposal.kept.contains_key(&Target::New(at));
        let needed: Vec<bool> = needed
            .enumerate()
            .map(|(at, (standing, waiting))| standing || waiting || foreseen(at))
            .collect();
        let Some((holds, wait)) = self.planning.holds(proposal) else {
            self.planning.cadence.served();
            return (needed, 0);
        };
        let held = needed.iter().zip(&holds).filter(|(needed, held)| **needed && **held).count();
        if held > 0 {
            self.planning.cadence.wake_after(wait);
        }
        (needed.iter().zip(holds).map(|(needed, held)| *needed && !held).collect(), held)
    }

    /// For each launch of the plan: whether any of its pods still needs a place.
    fn waiting(&self, plan: &Plan) -> Vec<bool> {
        let world = self.state.view().world();
        let claims = world.claims_by_node();
        let needs_place = |uid: &PodUid| {
            world.pods.get(uid).is_some_and(|pod| match &pod.node {
                None => true,
                // A pod on a node that is leaving is planned for although it still runs. Where the
                // place that it was to have is no more, its node stays.
                Some(node) => {
                    claims.get(node).is_some_and(|claim| claim.is_leaving() && !claim.may_stay())
                }
            })
        };
        plan.launches.iter().map(|node| node.pods.iter().any(needs_place)).collect()
    }

    /// Asks for the claim of one of a plan's new nodes; its name when the directive was sent.
    fn create_claim(
        &mut self,
        at: usize,
        proposal: &Proposal,
        origin: Origin<'_>,
    ) -> Option<String> {
        let node = &proposal.plan.launches[at];
        let pool = self.state.pool(node.pool.as_str());
        let drift_hash = proposal.drift_hashes.get(node.pool.as_str()).cloned();
        let entropy = &self.supervisor.platform().entropy;
        let claim = v1::NodeClaim {
            name: format!("{}-{}", node.pool, suffix(entropy)),
            launch_id: launch_id::new(self.planning.session_epoch(), entropy.bits()),
            create_time: Some(timestamp(self.now_ms())),
            drift_hash: drift_hash.unwrap_or_default(),
            ..new_claim(node, pool, origin)
        };
        let name = claim.name.clone();
        let pods = node.pods.iter().map(ToString::to_string).collect();
        let reason = makes_up_for(&proposal.plan, at).map_or("", DisruptionReason::name).to_owned();
        let create = cluster::CreateClaim { claim: Some(claim.clone()), pods, reason };
        let action = Action::CreateClaim(create);
        let sent = self.outbox.direct(&format!("create/{name}"), &name, action, origin);
        sent.then(|| {
            self.state.creating(claim, origin.now_ms);
            name
        })
    }

    fn disrupt(&mut self, going: &[&Disruption], launched: &[Option<String>], origin: Origin<'_>) {
        for disruption in going {
            let named = |index: &usize| launched.get(*index).cloned().flatten();
            let replaced_by: Option<Vec<String>> =
                disruption.replacements.iter().map(named).collect();
            // Without all of its replacements the disruption must not begin.
            if let Some(replaced_by) = replaced_by
                && self.disrupt_claims(disruption, &replaced_by, origin)
            {
                self.planning.shown.decided(disruption);
            }
        }
    }

    /// Asks for each claim to be marked; whether any is.
    fn disrupt_claims(
        &mut self,
        disruption: &Disruption,
        replaced_by: &[String],
        origin: Origin<'_>,
    ) -> bool {
        let (reason, mut begun) = (disruption.reason.name(), false);
        for (claim, node) in with_nodes(disruption) {
            let assumes = self.assumption(claim, node, disruption.reason);
            let moved = assumes.as_ref().map_or(0, |assumes| assumes.pods.len());
            let action = Action::DisruptClaim(cluster::DisruptClaim {
                claim: claim.to_string(),
                reason: reason.to_owned(),
                replaced_by: replaced_by.to_vec(),
                cancel: false,
                assumes,
            });
            let key = format!("disrupt/{claim}");
            if self.outbox.direct(&key, claim.as_str(), action, origin) {
                if disruption.reason == DisruptionReason::Underutilized {
                    self.state.moving(claim.as_str(), moved, self.now_ms());
                }
                self.state.disrupting(claim.as_str(), reason, replaced_by, origin.now_ms);
                begun = true;
            }
        }
        begun
    }

    /// Whether a disruption still stands: the plan is as old as it took to make.
    fn may_disrupt(&self, disruption: &Disruption, now_ms: i64) -> bool {
        let named: Vec<_> = with_nodes(disruption).collect();
        if planted::is("S17") {
            return true;
        }
        let held = |claim: &ClaimName, node: Option<&NodeName>| {
            self.safety.is_spared(claim.as_str()) || self.depends_on_unreadable(claim, node)
        };
        let may_choose = self.state.tombstones().choice().is_none();
        if !may_choose || named.iter().any(|(claim, node)| held(claim, *node)) {
            return false;
        }
        let moves: BTreeSet<&PodUid> = disruption.moves.iter().map(|moved| &moved.pod).collect();
        let world = self.state.view().world();
        let reason = Some(disruption.reason);
        let stands = |claim: &ClaimName, node: Option<&NodeName>| {
            let Some((known, node)) = world.claims.get(claim).zip(node) else { return false };
            (!verdict::objects(world, known, node, now_ms) || verdict::overrides(known, reason))
                && verdict::moved(world, node).all(|pod| moves.contains(&pod.uid))
        };
        disruption.reason == DisruptionReason::Excess
            || named.iter().all(|(claim, node)| stands(claim, *node))
    }

    /// Claims that are not disrupted by choice now, for the planner: it is the turn of others.
    pub(super) fn spared(&self) -> BTreeMap<ClaimName, Spared> {
        let mut spared = self.safety.spared();
        if !self.state.tombstones().is_empty() {
            let claims = self.state.view().world().claims_by_node();
            let held = claims
                .iter()
                .filter(|(node, claim)| self.depends_on_unreadable(&claim.name, Some(node)))
                .map(|(_, claim)| (claim.name.clone(), Spared::Unreadable));
            spared.extend(held);
        }
        spared
    }

    /// True when a claim, its node or pool, a pod on it or a budget of such a pod cannot be read.
    fn depends_on_unreadable(&self, claim: &ClaimName, node: Option<&NodeName>) -> bool {
        let (stones, watched) = (self.state.tombstones(), self.state.watched().get(claim.as_str()));
        watched.is_none_or(|claim| stones.holds(claim, node.map(NodeName::as_str)))
            || node.is_some_and(|node| self.is_guarded(node))
    }

    /// What a disruption by choice rests on; nothing where it is of need, or its owner overrides
    /// objections.
    fn assumption(
        &self,
        claim: &ClaimName,
        node: Option<&NodeName>,
        reason: DisruptionReason,
    ) -> Option<cluster::Assumption> {
        if reason == DisruptionReason::Excess {
            return None;
        }
        let world = self.state.view().world();
        let known = world.claims.get(claim)?;
        let objected = node.is_some_and(|node| verdict::objects(world, known, node, self.now_ms()));
        if objected && verdict::overrides(known, Some(reason)) {
            return None;
        }
        let pods = node.map(|node| verdict::moved(world, node).map(|pod| pod.uid.to_string()));
        Some(cluster::Assumption { pods: pods.into_iter().flatten().collect() })
    }

    /// Existing nodes: only pods that kube-scheduler has given up on need to be told, and none
    /// while any place is as good as another and nodes open, since it tries all pods again for each
    /// of these.
    fn nominate(&mut self, proposal: &Proposal, origin: Origin<'_>) {
        let plan = &proposal.plan;
        // A node gets its nominations with its registration, not before: kube-scheduler would clear
        // them while the node repels pods, or has no room for them yet.
        let closed = self.state.starting_nodes();
        if plan.any_order && !closed.is_empty() {
            return;
        }
        let world = self.state.view().world();
        let mut by_node: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for placement in &plan.placements {
            let Target::Node(node) = &placement.target else { continue };
            if closed.contains(node.as_str()) || proposal.awaited.contains(node) {
                continue;
            }
            let pod = world.pods.get(&placement.pod);
            let waits = pod.is_some_and(|pod| {
                pod.node.is_none() && pod.unschedulable && pod.nominated_node.is_none()
            });
            if waits {
                by_node.entry(node.to_string()).or_default().push(placement.pod.to_string());
            }
        }
        let binding = self.state.binds_until_ms(origin.now_ms).filter(|_| plan.any_order);
        if let Some(until_ms) = binding.filter(|_| !by_node.is_empty()) {
            let wait_ms = u64::try_from(until_ms - origin.now_ms).unwrap_or(0);
            self.planning.cadence.wake_after(Duration::from_millis(wait_ms));
            return;
        }
        for (node, pods) in by_node {
            // By its pods: what was said of others is no reason to leave these without a word.
            let key = format!("nominate/{node}/{:x}", digest(&pods));
            let action = Action::NominatePods(cluster::NominatePods { node, pods });
            self.outbox.direct(&key, "", action, origin);
        }
    }

    /// Says on each pod that the newest plan could not place why that is, once for each reason.
    pub(super) fn tell_unplaced(&mut self, origin: Origin<'_>) {
        let Some(newest) = self.planning.newest() else { return };
        let plan = Arc::clone(&newest.plan);
        for unplaced in &plan.unplaced {
            self.tell(unplaced, origin);
        }
    }

    fn tell(&mut self, unplaced: &Unplaced, origin: Origin<'_>) {
        let message = format!("Longshore cannot place the pod: {}", unplaced.reason);
        for uid in unplaced.pods.iter().take(TOLD_PER_SHAPE) {
            let about = v1::ObjectRef { kind: v1::ObjectKind::Pod.into(), key: uid.to_string() };
            let action = Action::PublishEvent(cluster::PublishEvent {
                about: Some(about),
                warning: true,
                reason: "FailedScheduling".to_owned(),
                message: message.clone(),
            });
            // By the whole text: a pool not ready yet and one that never will be have the same
            // code.
            self.outbox.direct_once(&format!("event/{uid}"), &message, action, origin);
        }
    }
}

/// Tells lists of pods apart.
fn digest(pods: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    pods.hash(&mut hasher);
    hasher.finish()
}

/// Each claim of a disruption with its node, when it has one.
fn with_nodes(disruption: &Disruption) -> impl Iterator<Item = (&ClaimName, Option<&NodeName>)> {
    let nodes = &disruption.nodes;
    disruption.claims.iter().enumerate().map(|(index, claim)| (claim, nodes.get(index)))
}

/// Why the nodes go that a launch of the plan takes the place of, if it is for that.
fn makes_up_for(plan: &Plan, at: usize) -> Option<DisruptionReason> {
    let mut disruptions = plan.disruptions.iter();
    disruptions.find(|it| it.replacements.contains(&at)).map(|it| it.reason)
}

/// The claim of a node but for what tells it from others.
fn new_claim(node: &NewNode, pool: Option<&v1::NodePool>, origin: Origin<'_>) -> v1::NodeClaim {
    v1::NodeClaim {
        expire_after: pool.and_then(|pool| pool.expire_after),
        termination_grace_period: pool.and_then(|pool| pool.termination_grace_period),
        traceparent: origin.traceparent.to_owned(),
        ..wire::plan::claim(node)
    }
}

fn suffix(entropy: &Entropy) -> String {
    let character = || SUFFIX_CHARACTERS[entropy.range(0..SUFFIX_CHARACTERS.len())];
    (0..SUFFIX_LENGTH).map(|_| char::from(character())).collect()
}

/// One line for each plan that does something.
fn report(proposal: &Proposal, launched: &[Option<String>], held: usize) {
    let plan = &proposal.plan;
    if launched.is_empty() && plan.disruptions.is_empty() && plan.unplaced.is_empty() {
        return;
    }
    let unplaced: usize = plan.unplaced.iter().map(|unplaced| unplaced.pods.len()).sum();
    let disrupted: usize = plan.disruptions.iter().map(|disruption| disruption.claims.len()).sum();
    tracing::info!(
        plan_id = proposal.plan_id,
        pods = plan.placements.len(),
        launches = launched.iter().flatten().count(),
        held,
        price_micro_usd_per_hour = plan.launch_price_micro_usd_per_hour,
        cost_micro_usd_per_hour = plan.launch_cost_micro_usd_per_hour,
        bound_micro_usd_per_hour = plan.bound.cost_micro_usd_per_hour,
        unplaced,
        disrupted,
        "pods batched, packing computed"
    );
    let reasons = plan.unplaced.iter().map(|unplaced| &unplaced.reason);
    for reason in reasons.clone().take(REASONS_MAX) {
        tracing::warn!(plan_id = proposal.plan_id, "not placed: {reason}");
    }
    let more = reasons.len().saturating_sub(REASONS_MAX);
    if more > 0 {
        tracing::warn!(plan_id = proposal.plan_id, more, "not placed, for as many other reasons");
    }
}
