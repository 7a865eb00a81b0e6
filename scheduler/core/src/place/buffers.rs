//! Room for the pods of capacity buffers, after all real pods have theirs.
//!
//! Invariant: buffers take nothing from real pods: they get room on existing nodes that is left,
//! then what is left on nodes bought for real pods, and only then nodes of their own. None of their
//! pods is ever named.

use std::collections::BTreeMap;

use crate::answer::{Buffered, Plan};
use crate::explain::obstacles::Explainer;
use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::pack::problem::vector;
use crate::place::state::PlanState;
use crate::place::{Bought, Placed, Placer};
use crate::reason::{Obstacle, Reason};

/// Where the pods of buffers have room.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// On existing nodes and on nodes of their own.
    pub(crate) placed: Placed,
    /// On nodes bought for real pods, by shape.
    shared: BTreeMap<usize, i64>,
}

/// Finds room for all buffers; loads of nodes bought for real pods grow by what is put there.
pub(crate) fn reserve(
    placer: &Placer<'_, '_, '_>,
    state: &mut PlanState,
    real: &mut Placed,
) -> Room {
    let model = placer.model;
    let mut left = vec![0; model.shapes.len()];
    for (shape, count) in &model.buffered {
        left[*shape] = if model.shapes[*shape].unschedulable.is_none() { *count } else { 0 };
    }
    if left.iter().all(|count| *count == 0) {
        return Room::default();
    }
    let onto_existing = Placer { buy: false, ..*placer };
    let mut placed = unseen(&onto_existing, state, &left);
    placed.unplaced.clear();
    placed.existing_nodes.iter().for_each(|there| left[there.shape] -= there.count);
    let shared = share(placer, &mut real.nodes, &mut left);
    let bought = unseen(placer, state, &left);
    placed.add(bought);
    Room { placed, shared }
}

/// Places pods of buffers so that real pods placed later do not count them as company: what they
/// see is what kube-scheduler sees.
pub(crate) fn unseen(placer: &Placer<'_, '_, '_>, state: &mut PlanState, wanted: &[i64]) -> Placed {
    let (groups, occupied) = (state.topology.groups.clone(), state.occupied.clone());
    let placed = placer.place(state, wanted);
    (state.topology.groups, state.occupied) = (groups, occupied);
    placed
}

/// Puts pods of buffers where nodes bought for real pods have room, whichever candidate they
/// become.
fn share(
    placer: &Placer<'_, '_, '_>,
    nodes: &mut [Bought],
    left: &mut [i64],
) -> BTreeMap<usize, i64> {
    let (model, priced) = (placer.model, placer.priced);
    let mut shared = BTreeMap::new();
    let plain = |shape: &usize| model.topology.is_plain(*shape);
    for shape in model.buffered.keys().copied().filter(plain) {
        let answers = priced.ask_all(shape, &model.shapes[shape].node_alternatives());
        for node in nodes.iter_mut() {
            let each = node.offers.iter().map(|offer| {
                let mut room = priced.facts[*offer].room.clone();
                for (shape, count) in &node.load {
                    vector::add(&mut room, &model.requests[*shape], -count);
                }
                let admitted = priced.admits(&answers, *offer);
                if admitted { vector::copies(&model.requests[shape], &room) } else { 0 }
            });
            let count = each.min().unwrap_or(0).min(left[shape] / node.copies);
            if count > 0 {
                node.load.push((shape, count));
                node.load.sort_unstable();
                left[shape] -= count * node.copies;
                *shared.entry(shape).or_default() += count * node.copies;
            }
        }
    }
    shared
}

/// Forgets the pods of buffers in counts by shape: what is proven speaks of real pods only.
pub(crate) fn forget(model: &Model<'_>, launched: &mut [i64]) {
    model.buffered.keys().for_each(|shape| launched[*shape] = 0);
}

/// Says of each buffer how much of it has room.
pub(crate) fn answer(explainer: &Explainer<'_, '_, '_>, room: &Room, plan: &mut Plan) {
    let model = explainer.model;
    for buffer in model.input.world.buffers.values() {
        let Some(shape) = model.index_of(&buffer.shape) else { continue };
        let count = |in_service: bool| -> i64 {
            let existing_nodes =
                room.placed.existing_nodes.iter().filter(|there| there.shape == shape);
            let there = existing_nodes.filter(|there| {
                let existing = &model.existing_nodes[there.existing];
                (existing.node.is_some() && existing.fit) == in_service
            });
            there.map(|there| there.count).sum()
        };
        let bought: i64 = room
            .placed
            .nodes
            .iter()
            .flat_map(|node| node.load.iter().map(move |load| (load, node.copies)))
            .filter(|((of, _), _)| *of == shape)
            .map(|((_, count), copies)| count * copies)
            .sum();
        let in_service = count(true);
        let coming = count(false) + bought + room.shared.get(&shape).copied().unwrap_or(0);
        let unplaced = buffer.replicas.saturating_sub(in_service + coming).max(0);
        let sought = model.buffered.get(&shape).copied().unwrap_or(0);
        let beyond = sought < buffer.replicas && in_service + coming >= sought;
        let last = room.placed.unplaced.iter().find(|refused| refused.shape == shape);
        let last = last.map_or(&Obstacle::NoPoolAdmits, |refused| &refused.obstacle);
        let reason = match unplaced {
            0 => Reason::leaf(format!("CapacityBuffer/{}", buffer.key), Obstacle::None),
            _ if beyond => Reason::leaf(
                format!("CapacityBuffer/{}", buffer.key),
                Obstacle::TooManyReplicas { wanted: buffer.replicas, most: sought },
            ),
            _ => explainer.reason(shape, last),
        };
        let answer = Buffered { in_service, coming, unplaced, reason };
        plan.buffers.insert(buffer.key.clone(), answer);
    }
}

/// Pods of buffers that the plan state has put on an existing node, by shape.
pub(crate) fn on_existing(
    model: &Model<'_>,
    state: &PlanState,
    existing: usize,
) -> Vec<(usize, i64)> {
    let added = state.added[existing].iter().map(|(shape, count)| (*shape, *count));
    added.filter(|(shape, _)| model.buffered.contains_key(shape)).collect()
}

/// True when nobody but buffers gets room on an existing node.
pub(crate) fn has_existing_alone(model: &Model<'_>, state: &PlanState, existing: usize) -> bool {
    state.added[existing].keys().all(|shape| model.buffered.contains_key(shape))
}

/// Launches that stand for buffers, spelt out without pods.
pub(crate) fn launches(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    room: &Room,
    plan: &mut Plan,
) {
    let mut nobody =
        crate::answer::assemble::Queue::new(model, &vec![Vec::new(); model.shapes.len()]);
    let bought = &room.placed.nodes;
    let (nodes, _) = crate::answer::assemble::launches(model, priced, bought, &mut nobody, 0);
    let standing = |node| crate::answer::NewNode { standing: true, ..node };
    plan.launches.extend(nodes.into_iter().map(standing));
}
