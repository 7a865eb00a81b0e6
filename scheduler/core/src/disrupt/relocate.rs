//! Trying to move the pods of some nodes elsewhere.
//!
//! Invariant: a trial that is not taken leaves the plan state exactly as it was.

use crate::disrupt::Context;
use crate::disrupt::candidate::Candidate;
use crate::model::Model;
use crate::pack::problem::limits::LimitSet;
use crate::place::state::{OnExisting, PlanState};
use crate::place::{Placed, Placer, buffers};
use crate::question::Effort;
use crate::topology::preferences::Preferences;
use crate::topology::split_shapes::Assigned;
use crate::world::topology::{Group, GroupRule, GroupSpec};

/// What a trial moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved<'t> {
    /// Existing nodes that go.
    pub(crate) gone: &'t [usize],
    /// Pods of them that would move, by shape.
    pub(crate) pods: &'t [i64],
}

/// Nodes taken out of the plan state, with what it takes to put them back.
pub(crate) struct Relocation<'t, 'g, 'm, 'a> {
    context: &'t mut Context<'g, 'm, 'a>,
    gone: Vec<usize>,
    wanted: Vec<i64>,
    /// What buffers had on the nodes.
    buffered: Vec<OnExisting>,
    groups: Vec<Group>,
    residents: Vec<Group>,
    limit_sets: Vec<LimitSet>,
    open: Vec<bool>,
}

impl<'t, 'g, 'm, 'a> Relocation<'t, 'g, 'm, 'a> {
    /// Takes the nodes out of the plan state.
    pub(crate) fn of(context: &'t mut Context<'g, 'm, 'a>, gone: &[&Candidate<'a>]) -> Self {
        let state = &mut context.state;
        let wanted = wanted(context.model, gone);
        let (groups, limit_sets) = (state.topology.groups.clone(), state.limit_sets.clone());
        let residents = state.residents.groups.clone();
        let open = state.open.clone();
        let existing_nodes = &context.model.existing_nodes;
        for (existing, open) in existing_nodes.iter().zip(&mut state.open) {
            // Only nodes that have settled take moved pods.
            let settled =
                existing.claim.as_ref().is_none_or(|claim| claim.initialized_ms.is_some());
            *open &= existing.node.is_some() && settled;
        }
        let mut buffered = Vec::new();
        for candidate in gone {
            state.open[candidate.existing] = false;
            for (shape, count) in buffers::on_existing(context.model, state, candidate.existing) {
                let there = OnExisting {
                    existing: candidate.existing,
                    shape,
                    count,
                    assigned: Assigned::new(),
                };
                state.put(context.model, &there, -1);
                buffered.push(there);
            }
            let existing = &existing_nodes[candidate.existing];
            for (shape, _) in &candidate.pods {
                let gone = |spec: &GroupSpec| {
                    let domain =
                        existing.label(&spec.key).filter(|_| existing.counts_for(&spec.filter));
                    domain.map(|domain| (domain, -1))
                };
                state.topology.record(*shape, gone);
                state.residents.record(*shape, gone);
            }
        }
        let gone = gone.iter().map(|candidate| candidate.existing).collect();
        Self { context, gone, wanted, buffered, groups, residents, limit_sets, open }
    }

    /// Keeps the pods off these existing nodes.
    pub(crate) fn avoiding(self, existing_nodes: impl Iterator<Item = usize>) -> Self {
        existing_nodes.for_each(|existing| self.context.state.open[existing] = false);
        self
    }

    /// All pods on other nodes that exist; nothing is bought.
    pub(crate) fn onto_existing(self) -> Option<Placed> {
        self.attempt(false, |_, _| true)
    }

    /// The same, when `accept` takes it.
    pub(crate) fn onto_existing_if(
        self,
        accept: impl FnOnce(Moved<'_>, &mut Placed) -> bool,
    ) -> Option<Placed> {
        self.attempt(false, accept)
    }

    /// All pods somewhere, whatever it costs.
    pub(crate) fn anywhere(self) -> Option<Placed> {
        self.attempt(true, |_, _| true)
    }

    /// All pods somewhere, when `accept` takes what would be bought, which it may narrow.
    pub(crate) fn if_worth(
        self,
        accept: impl FnOnce(Moved<'_>, &mut Placed) -> bool,
    ) -> Option<Placed> {
        self.attempt(true, accept)
    }

    fn attempt(
        self,
        buy: bool,
        accept: impl FnOnce(Moved<'_>, &mut Placed) -> bool,
    ) -> Option<Placed> {
        let Context { model, priced, effort, .. } = *self.context;
        let effort = if effort == Effort::Max { Effort::Default } else { Effort::Greedy };
        let placer = Placer { model, priced, effort, buy };
        let mut placed = placer.together(self.context.state, &self.wanted, Preferences::All);
        if !self.buffered.is_empty() && placed.unplaced.is_empty() {
            let mut wanted = vec![0; model.shapes.len()];
            self.buffered.iter().for_each(|there| wanted[there.shape] += there.count);
            placed.add(buffers::unseen(&placer, self.context.state, &wanted));
        }
        let state = &mut *self.context.state;
        state.open = self.open;
        let broken = breaks_rules(&self.groups, &state.topology.groups)
            || leaves_alone(&self.residents, state);
        let moved = Moved { gone: &self.gone, pods: &self.wanted };
        if placed.unplaced.is_empty() && !broken && accept(moved, &mut placed) {
            for existing in self.gone {
                state.open[existing] = false;
            }
            return Some(placed);
        }
        for there in &placed.existing_nodes {
            state.put(model, there, -1);
        }
        self.buffered.iter().for_each(|there| state.put(model, there, 1));
        state.topology.groups = self.groups;
        state.residents.groups = self.residents;
        state.limit_sets = self.limit_sets;
        None
    }
}

/// Pods that nodes would lose, by shape.
pub(crate) fn wanted(model: &Model<'_>, gone: &[&Candidate<'_>]) -> Vec<i64> {
    let mut wanted = vec![0; model.shapes.len()];
    for (shape, _) in gone.iter().flat_map(|candidate| &candidate.pods) {
        wanted[*shape] += 1;
    }
    wanted
}

/// True when some domain has more pods too many than before: moving a pod must not leave those that
/// follow it alone, nor bring a domain that others would have to level.
fn breaks_rules(before: &[Group], after: &[Group]) -> bool {
    let both = before.iter().zip(after).filter(|(_, group)| group.spec.preference.is_none());
    both.into_iter().any(|(before, after)| {
        let (floor, floor_before) = (after.floor(), before.floor());
        after.tallies().any(|(domain, here)| {
            let known = before.excess(before.tally(domain), floor_before);
            after.excess(here, floor) > known.max(0)
        })
    })
}

/// True when the last pods leave a domain that were company there, and others come that need some:
/// by the time these are bound, there may be company only elsewhere.
fn leaves_alone(before: &[Group], state: &PlanState) -> bool {
    let residents = before.iter().zip(&state.residents.groups);
    residents.zip(&state.topology.groups).any(|((before, stay), all)| {
        let spec = &stay.spec;
        let affinity = spec.preference.is_none() && spec.rule == GroupRule::Affinity;
        let lost = |domain: &str| {
            before.tally(domain).members > 0
                && stay.tally(domain).members == 0
                && all.tally(domain).owners > 0
        };
        affinity && !stay.has_no_members() && stay.tallies().any(|(domain, _)| lost(domain))
    })
}
