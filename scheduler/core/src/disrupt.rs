//! Disruption: which nodes go, why, and where their pods go instead.
//!
//! In this order:
//!
//! 1. nodes that EC2 has announced to take away: they go at once;
//! 2. nodes beyond their pool's replicas: they go at once, whatever budgets say;
//! 3. expired, then drifted nodes: replaced at any price;
//! 4. empty nodes: deleted;
//! 5. consolidation: what saves money is deleted or replaced;
//! 6. replicas that pools lack are added.
//!
//! Invariant: everything is decided against one plan state, so no two decisions use the same room;
//! 3 to 5 keep the pools' budgets, PodDisruptionBudgets and do-not-disrupt.

pub(crate) mod allowance;
pub(crate) mod candidate;
mod consolidate;
mod rebinding;
mod relocate;
mod replicas;
mod scales;
mod turns;

use std::collections::BTreeMap;

use crate::answer::assemble::{self, Queue};
use crate::answer::{Disruption, Plan};
use crate::model::Model;
use crate::model::existing::ExistingNode;
use crate::offers::priced::PricedOffers;
use crate::place::state::PlanState;
use crate::place::{Placed, buffers};
use crate::question::{Effort, Spared};
use crate::vocabulary::ids::PoolName;
use crate::vocabulary::pool::DisruptionReason;
use allowance::Allowance;
use candidate::Candidate;
use relocate::Relocation;
use scales::Stakes;

/// What disruption works on.
pub(crate) struct Context<'g, 'm, 'a> {
    /// The world.
    pub(crate) model: &'m Model<'a>,
    /// What can be bought.
    pub(crate) priced: &'g PricedOffers<'m, 'a>,
    /// What is left.
    pub(crate) state: &'g mut PlanState,
    /// How hard to try.
    pub(crate) effort: Effort,
    /// Pods on launches, by shape.
    pub(crate) launched: &'g mut [i64],
}

/// When pods wait no longer for a node of ours that is not ready, or that shows its taint after it
/// was opened.
fn given_up_ms(existing: &ExistingNode<'_>) -> impl Iterator<Item = i64> {
    let ours = existing.claim.as_ref().zip(existing.node);
    let opened = ours.and_then(|(claim, node)| node.opened_until_ms(claim.initialized_ms?));
    let late = ours.and_then(|(_, node)| node.late_from_ms());
    opened.into_iter().chain(late)
}

/// When pods wait no longer for the room of those that are about to end.
fn awaited_ms(context: &Context<'_, '_, '_>) -> Option<i64> {
    let nodes = context.model.existing_nodes.iter().zip(&context.state.added);
    let used = nodes.filter(|(_, added)| !added.is_empty());
    used.filter_map(|(existing, _)| existing.frees_until_ms).min()
}

/// Adds disruptions, their replacements and the time to wake to a plan whose pods are placed.
pub(crate) fn decide(context: Context<'_, '_, '_>, plan: &mut Plan) {
    let model = context.model;
    interrupted(model, plan);
    let candidates = candidate::all(model);
    let given_up = model.existing_nodes.iter().flat_map(given_up_ms);
    let given_up = given_up.filter(|at_ms| *at_ms > model.input.now_ms);
    let ripe = candidates.iter().filter_map(|candidate| candidate.wake_ms);
    let awaited = awaited_ms(&context);
    let spared = model.input.spared.values().filter_map(|spared| match spared {
        Spared::UntilMs(until_ms) => Some(*until_ms).filter(|at_ms| *at_ms > model.input.now_ms),
        Spared::Unreadable => None,
    });
    plan.wake_ms = ripe.chain(given_up).chain(awaited).chain(spared).min();
    context.state.await_no_ends(model);
    let allowance = Allowance::new(model);
    let kept = |existing: usize| !buffers::on_existing(model, context.state, existing).is_empty();
    let ending =
        candidates.iter().filter(|c| c.ends() && !kept(c.existing)).map(|c| c.existing).collect();
    let ripening = candidates.iter().filter(|c| c.ripens()).map(|c| c.existing).collect();
    let stakes = scales::stakes(model, &candidates);
    let mut disruptor = Disruptor { context, allowance, ending, ripening, stakes, plan };
    disruptor.trim_replicas(&candidates);
    disruptor.replace(&candidates, DisruptionReason::Expired);
    disruptor.replace(&candidates, DisruptionReason::Drifted);
    if model.input.consolidates {
        disruptor.empty(&candidates);
        disruptor.consolidate(&candidates);
    }
    disruptor.add_replicas(&candidates);
}

/// Interrupted nodes go at once. Their pods are placed already, as pods of leaving nodes.
fn interrupted(model: &Model<'_>, plan: &mut Plan) {
    for existing in &model.existing_nodes {
        let (Some(node), Some(claim)) = (existing.node, &existing.claim) else { continue };
        if !existing.is_interrupted(model.input) || claim.deleting || claim.disrupted.is_some() {
            continue;
        }
        let here = |pod: &crate::ids::PodUid| {
            let pod = model.input.world.pods.get(pod);
            pod.is_some_and(|pod| pod.node.as_ref() == Some(&node.name))
        };
        let moves = plan.placements.iter().filter(|placement| here(&placement.pod));
        plan.disruptions.push(Disruption {
            claims: vec![claim.name.clone()],
            nodes: vec![node.name.clone()],
            reason: DisruptionReason::Interrupted,
            replacements: Vec::new(),
            moves: moves.cloned().collect(),
            saving_micro_usd_per_hour: existing.price.unwrap_or(0),
        });
    }
}

/// Takes nodes out of service while a plan grows.
struct Disruptor<'c, 'g, 'm, 'a> {
    context: Context<'g, 'm, 'a>,
    allowance: Allowance<'a>,
    /// Existing nodes that are empty and will go.
    ending: Vec<usize>,
    /// Existing nodes with pods that have not been quiet for long enough.
    ripening: Vec<usize>,
    /// What moves are weighed against, by pool.
    stakes: BTreeMap<PoolName, Stakes>,
    plan: &'c mut Plan,
}

impl<'a> Disruptor<'_, '_, '_, 'a> {
    /// Replaces nodes that must go, whatever it costs, one at a time and the oldest first, so that
    /// no pool waits for ever for what budgets of pods leave to the others. Pods go to others of
    /// these only where they must: they would be moved again.
    fn replace(&mut self, candidates: &[Candidate<'a>], reason: DisruptionReason) {
        let due = candidates.iter().filter(|candidate| candidate.must_go.is_some());
        let due: Vec<usize> = due.map(|candidate| candidate.existing).collect();
        let must_go = candidates.iter().filter(|candidate| candidate.must_go == Some(reason));
        let mut must_go: Vec<_> = must_go.collect();
        must_go.sort_by_key(|candidate| candidate.claim.created_ms);
        for candidate in must_go {
            if !self.may_go(candidate, reason) {
                continue;
            }
            // What a pool with replicas needs besides its other nodes is added to it, not bought.
            let stays = candidate.pool.replicas.is_some();
            let placed = [due.as_slice(), &[]].into_iter().find_map(|avoided| {
                let relocation = Relocation::of(&mut self.context, &[candidate]);
                let relocation = relocation.avoiding(avoided.iter().copied());
                if stays { relocation.onto_existing() } else { relocation.anywhere() }
            });
            if let Some(placed) = placed {
                self.commit(&[candidate], reason, &placed);
            }
        }
    }

    /// Deletes nodes on which nothing runs that counts.
    fn empty(&mut self, candidates: &[Candidate<'a>]) {
        for candidate in candidates.iter().filter(|c| c.may_end()) {
            if !self.may_go(candidate, DisruptionReason::Empty) {
                continue;
            }
            if buffers::on_existing(self.context.model, self.context.state, candidate.existing)
                .is_empty()
            {
                self.context.state.open[candidate.existing] = false;
                self.commit(&[candidate], DisruptionReason::Empty, &Placed::default());
                continue;
            }
            // Room that a buffer has there must be had on other nodes.
            if let Some(placed) = Relocation::of(&mut self.context, &[candidate]).onto_existing() {
                self.commit(&[candidate], DisruptionReason::Empty, &placed);
            }
        }
    }

    /// True when nothing holds the node: not this plan, not a budget, not a pod.
    fn may_go(&self, candidate: &Candidate<'_>, reason: DisruptionReason) -> bool {
        self.is_untouched(candidate)
            && !candidate.is_blocked(reason)
            && self.allowance.admits(self.context.model, &[candidate], reason)
    }

    /// True when this plan neither removes the node already nor counts on it.
    fn is_untouched(&self, candidate: &Candidate<'_>) -> bool {
        let Context { model, state, .. } = &self.context;
        state.open[candidate.existing]
            && buffers::has_existing_alone(model, state, candidate.existing)
    }

    /// Writes a decision into the plan.
    fn commit(&mut self, gone: &[&Candidate<'a>], reason: DisruptionReason, placed: &Placed) {
        let Context { model, priced, .. } = self.context;
        self.allowance.spend(gone, reason);
        placed.count_launched(self.context.launched);
        let mut pods = vec![Vec::new(); model.shapes.len()];
        for (shape, pod) in gone.iter().flat_map(|candidate| &candidate.pods) {
            pods[*shape].push(*pod);
        }
        pods.iter_mut().for_each(|pods| pods.sort_by(|a, b| a.uid.cmp(&b.uid)));
        let mut queue = Queue::new(model, &pods);
        let first = self.plan.launches.len();
        let mut moves = assemble::placements(model, &placed.existing_nodes, &mut queue);
        let (launches, new) = assemble::launches(model, priced, &placed.nodes, &mut queue, first);
        moves.extend(new);
        moves.sort_unstable();
        let spent: i64 = launches.iter().map(|node| node.price()).sum();
        self.plan.launches.extend(launches);
        assemble::list_pods(&moves, &mut self.plan.launches);
        // What only buffers wait for comes after the nodes of pods, here as in the rest of the
        // plan.
        let new = &mut self.plan.launches[first..];
        for node in new {
            node.standing = node.pods.is_empty();
            node.replacement = true;
        }
        let freed: i64 = gone.iter().filter_map(|c| model.existing_nodes[c.existing].price).sum();
        self.plan.disruptions.push(Disruption {
            claims: gone.iter().map(|candidate| candidate.claim.name.clone()).collect(),
            nodes: gone.iter().map(|candidate| candidate.node.name.clone()).collect(),
            reason,
            replacements: (first..self.plan.launches.len()).collect(),
            moves,
            saving_micro_usd_per_hour: freed - spent,
        });
    }
}
