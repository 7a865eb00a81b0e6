//! The proof of how little the launched pods could cost: values of pods where they say more than
//! prices of resources.
//!
//! Invariant: topology, limits and reservations are left out, never added, so the bound can only be
//! too low.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::answer::{NewNode, Plan};
use crate::bound::certificate::{PodClass, SharedRoom};
use crate::bound::price_sets::{self, Group, Pods};
use crate::bound::{self, LowerBound};
use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::pack::column_generation::dual_values::{self, ImproveEffort};
use crate::pack::problem::dominance::skylines;
use crate::pack::problem::limits::LimitSet;
use crate::pack::problem::rules::{NodeRules, NodeState};
use crate::pack::problem::{Bin, ItemClass, Load, Problem, vector};
use crate::question::Effort;

/// Most classes for which values are sought one by one; the programme is dense.
const CLASSES_MAX: usize = 256;
/// Most groups of rooms that admit the same pods for which prices are sought.
const GROUPS_MAX: usize = 12;
/// Work when a plan is due.
const DEFAULT_EFFORT: ImproveEffort =
    ImproveEffort { rounds: 24, work: 10_000_000, above: 0, barren: 5, steps: 200, gain_min: 1e-4 };
/// Work when quality counts more.
const MAX_EFFORT: ImproveEffort = ImproveEffort {
    rounds: 400,
    work: u64::MAX,
    above: 0,
    barren: 400,
    steps: 5_000,
    gain_min: 1e-6,
};

/// The bound that values of pods prove; none when it says no more than is known, or when the check
/// refuses it.
pub(super) fn by_values(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    launched: &[i64],
    plan: &Plan,
) -> Option<LowerBound> {
    let shapes: Vec<usize> = (0..launched.len()).filter(|shape| launched[*shape] > 0).collect();
    if model.input.effort == Effort::Greedy || shapes.is_empty() {
        return None;
    }
    let class = |shape: &usize| PodClass {
        shape: model.shapes[*shape].id.clone(),
        request: model.requests[*shape].clone(),
        count: launched[*shape],
    };
    let classes: Vec<PodClass> = shapes.iter().map(class).collect();
    let rooms = rooms(model, priced, &shapes);
    if shapes.len() > CLASSES_MAX {
        return by_price_sets(model.dims.names(), &classes, &rooms);
    }
    by_classes(model, &shapes, &classes, &rooms, plan)
}

/// The bound that values of pods prove which are sought one by one.
fn by_classes(
    model: &Model<'_>,
    shapes: &[usize],
    classes: &[PodClass],
    rooms: &[SharedRoom],
    plan: &Plan,
) -> Option<LowerBound> {
    let asked = model.input.effort;
    let problem = problem(classes, rooms);
    let effort = if asked == Effort::Max { MAX_EFFORT } else { DEFAULT_EFFORT };
    let effort = ImproveEffort { above: plan.bound.cost_micro_usd_per_hour, ..effort };
    let values = dual_values::of_rows(&problem, planned(model, shapes, &plan.launches), effort)?;
    bound::from_values(&values, classes, rooms)
}

/// The bound that values of pods prove which follow from a set of resource prices for each group of
/// rooms that admit the same pods; none when all are one group, or too many.
fn by_price_sets(
    names: &[String],
    classes: &[PodClass],
    rooms: &[SharedRoom],
) -> Option<LowerBound> {
    let mut groups: BTreeMap<&[bool], Group<'_>> = BTreeMap::new();
    for room in rooms {
        let group = groups.entry(&room.admits).or_default();
        let beaten = |(_, other): &(i64, &[i64])| vector::fits(&room.room, other);
        // Rooms come in order of price.
        if !group.rooms.iter().any(beaten) {
            group.rooms.push((room.price_micro_usd_per_hour, &room.room));
        }
    }
    if !(2..=GROUPS_MAX).contains(&groups.len()) {
        return None;
    }
    let open = |class: usize| groups.keys().map(|admits| admits[class]).collect();
    let open: Vec<Vec<bool>> = (0..classes.len()).map(open).collect();
    let pods = classes.iter().zip(&open).map(|(class, open)| Pods {
        request: &class.request,
        count: class.count,
        open,
    });
    let pods: Vec<Pods<'_>> = pods.collect();
    let sets = price_sets::of(&pods, &groups.into_values().collect::<Vec<_>>());
    bound::from_sets(&sets, names, classes, &open, rooms)
}

/// What planned nodes cost and hold of the classes, each kind once.
fn planned(model: &Model<'_>, shapes: &[usize], nodes: &[NewNode]) -> BTreeSet<(i64, Load)> {
    let class = |(shape, count)| Some((shapes.binary_search(&shape).ok()?, count));
    let node =
        |node: &NewNode| (node.cost(), model.load(node).into_iter().filter_map(class).collect());
    nodes.iter().filter(|node| !node.standing).map(node).collect()
}

/// Everything on offer, once for each price, room and set of classes that it admits, in order of
/// price. Labels that a pool leaves open keep nobody apart here.
fn rooms(model: &Model<'_>, priced: &PricedOffers<'_, '_>, shapes: &[usize]) -> Vec<SharedRoom> {
    // Many shapes ask the same of a node: each question is put to each offer once.
    let mut questions = indexmap::IndexMap::new();
    let ask = |shape: &usize| {
        let answers = priced.ask_all(*shape, &model.shapes[*shape].node_alternatives());
        let same: Vec<_> = answers.iter().map(Rc::as_ptr).collect();
        questions.insert_full(same, answers).0
    };
    let asked: Vec<usize> = shapes.iter().map(ask).collect();
    let mut sold: BTreeMap<(usize, usize, usize), SharedRoom> = BTreeMap::new();
    for (at, offer) in priced.all.iter().enumerate() {
        let facts = &priced.facts[at];
        let room =
            sold.entry((offer.pool_offers, offer.kind, facts.kind)).or_insert_with(|| SharedRoom {
                price_micro_usd_per_hour: priced.cost(at),
                room: priced.most_room(at).clone(),
                admits: vec![false; questions.len()],
            });
        room.room
            .iter_mut()
            .zip(priced.most_room(at))
            .for_each(|(most, here)| *most = (*most).max(*here));
        for (admits, answers) in room.admits.iter_mut().zip(questions.values()) {
            *admits |= priced.admits(answers, at);
        }
    }
    let by_class = |room: SharedRoom| SharedRoom {
        admits: asked.iter().map(|question| room.admits[*question]).collect(),
        ..room
    };
    let distinct: BTreeSet<SharedRoom> = sold.into_values().map(by_class).collect();
    distinct.into_iter().filter(|room| room.admits.contains(&true)).collect()
}

/// The same as a packing problem without limits and rules.
fn problem(classes: &[PodClass], rooms: &[SharedRoom]) -> Problem {
    let mut groups = indexmap::IndexSet::new();
    let bin = |room: &SharedRoom| Bin {
        price: room.price_micro_usd_per_hour,
        room: room.room.clone(),
        group: groups.insert_full(room.admits.clone()).0,
        tier: 0,
        limit_set: 0,
        charge: Vec::new(),
        reservation: None,
        start: 0,
    };
    let bins: Vec<Bin> = rooms.iter().map(bin).collect();
    let class = |(shape, class): (usize, &PodClass)| ItemClass {
        shape,
        request: class.request.clone(),
        count: class.count,
    };
    Problem {
        classes: classes.iter().enumerate().map(class).collect(),
        skyline: skylines(&bins, 1),
        bins,
        admits: groups.into_iter().collect(),
        limit_sets: vec![LimitSet::default()],
        scarce: vec![false],
        rules: NodeRules::new(Vec::new(), classes.len()),
        starts: vec![NodeState::default()],
    }
}
