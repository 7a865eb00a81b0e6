//! In which order nodes that are fit should open to pods.
//!
//! Invariant: advice only. kube-scheduler puts a pod on any node that takes it, so a node with room
//! to spare draws pods which are wanted on nodes that open after it. Nodes that would draw each
//! other's pods open together: then every pod finds its own node open.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::{Plan, Unplaced, any_order};
use crate::model::Model;
use crate::pack::problem::vector::{self, Vector};
use crate::place::state::PlanState;
use crate::vocabulary::ids::ClaimName;

/// A node that may open.
struct Side {
    claim: ClaimName,
    /// Shapes that the plan puts there.
    holds: BTreeSet<usize>,
    /// Shapes that it has room for besides.
    draws: BTreeSet<usize>,
    /// Whether it has room for pods that have no place.
    tempts: bool,
}

/// Says in which order nodes open, and whether their pods need to be told.
pub(crate) fn order(model: &Model<'_>, state: &PlanState, plan: &mut Plan) {
    plan.turns = turns(model, state, &plan.unplaced);
    plan.any_order = any_order::any_order(model);
}

/// The turn in which each fit node opens, from 0.
fn turns(model: &Model<'_>, state: &PlanState, unplaced: &[Unplaced]) -> BTreeMap<ClaimName, i64> {
    let homeless = unplaced.iter().filter_map(|refused| model.index_of(&refused.shape)).collect();
    let sides = sides(model, state, &homeless);
    let mut left: Vec<&Side> = sides.iter().collect();
    let mut turns = BTreeMap::new();
    for turn in 0.. {
        let next = next(&left);
        if next.is_empty() {
            break;
        }
        left.retain(|side| !next.contains(&side.claim));
        turns.extend(next.into_iter().map(|claim| (claim, turn)));
    }
    turns
}

fn sides(model: &Model<'_>, state: &PlanState, homeless: &BTreeSet<usize>) -> Vec<Side> {
    let coming = model.existing_nodes.iter().enumerate().filter_map(|(at, existing)| {
        let claim = existing.claim.as_ref().filter(|claim| claim.initialized_ms.is_none())?;
        (existing.fit && state.open[at]).then(|| (at, claim.name.clone()))
    });
    let coming: Vec<(usize, ClaimName)> = coming.collect();
    // Pods of buffers are no pods to be drawn.
    let held = |at: usize| {
        let added = state.added[at].keys().copied();
        added.filter(|shape| !model.buffered.contains_key(shape))
    };
    let wanted: BTreeSet<usize> = coming.iter().flat_map(|(at, _)| held(*at)).collect();
    let side = |(at, claim): (usize, ClaimName)| {
        let mut rooms = Rooms { model, state, existing: at, known: BTreeMap::new() };
        Side {
            claim,
            holds: held(at).collect(),
            draws: wanted.iter().copied().filter(|shape| rooms.take(*shape)).collect(),
            tempts: homeless.iter().any(|shape| rooms.take(*shape)),
        }
    };
    coming.into_iter().map(side).collect()
}

/// What pods of each priority find free on an existing node besides the pods that are planned
/// there: nominations hold nothing back from pods of higher priority.
struct Rooms<'m, 's, 'a> {
    model: &'m Model<'a>,
    state: &'s PlanState,
    existing: usize,
    known: BTreeMap<i32, Vector>,
}

impl Rooms<'_, '_, '_> {
    /// True when a pod of the shape would be bound there.
    fn take(&mut self, shape: usize) -> bool {
        let Self { model, state, existing, .. } = *self;
        let priority = model.shapes[shape].priority;
        let room = self.known.entry(priority).or_insert_with(|| {
            let mut room = state.rooms[existing].clone();
            let added = state.added[existing].iter();
            for (other, count) in
                added.filter(|(other, _)| model.shapes[**other].priority < priority)
            {
                vector::add(&mut room, &model.requests[*other], *count);
            }
            room
        });
        vector::fits(&model.requests[shape], room)
            && model.existing_nodes[existing]
                .admits(model.shapes[shape], &model.alternatives[shape])
    }
}

/// Nodes to open next: those with no room for pods that are planned elsewhere, first the ones that
/// have none for pods without a place either. Where each would take pods of another, those that
/// take from each other open together.
fn next(left: &[&Side]) -> BTreeSet<ClaimName> {
    let holders = count(left.iter().map(|side| &side.holds));
    let draws =
        |side: &&&Side| side.draws.iter().any(|shape| is_elsewhere(&holders, &side.holds, *shape));
    let (harmful, harmless): (Vec<&Side>, Vec<&Side>) = left.iter().partition(draws);
    if harmless.is_empty() {
        return names(cycle(harmful));
    }
    let (tempting, plain): (Vec<&Side>, Vec<&Side>) =
        harmless.into_iter().partition(|side| side.tempts);
    names(if plain.is_empty() { tempting } else { plain })
}

/// What is left when nodes that no other draws from are left out, again and again.
fn cycle(mut all: Vec<&Side>) -> Vec<&Side> {
    loop {
        let drawers = count(all.iter().map(|side| &side.draws));
        let drawn = |side: &&Side| {
            side.holds.iter().any(|shape| is_elsewhere(&drawers, &side.draws, *shape))
        };
        let core: Vec<&Side> = all.iter().copied().filter(drawn).collect();
        if core.is_empty() || core.len() == all.len() {
            return all;
        }
        all = core;
    }
}

/// True when others than the owner of a set have the shape, too.
fn is_elsewhere(counts: &BTreeMap<usize, usize>, own: &BTreeSet<usize>, shape: usize) -> bool {
    counts.get(&shape).is_some_and(|count| *count > usize::from(own.contains(&shape)))
}

fn count<'s>(sets: impl Iterator<Item = &'s BTreeSet<usize>>) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for shape in sets.flatten() {
        *counts.entry(*shape).or_default() += 1;
    }
    counts
}

fn names(sides: Vec<&Side>) -> BTreeSet<ClaimName> {
    sides.into_iter().map(|side| side.claim.clone()).collect()
}
