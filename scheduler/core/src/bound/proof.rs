//! The proof of how little the launched pods could cost: values of pods or whole nodes, where they
//! say more than prices of resources.
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

/// Most kinds of pods for which values are sought one by one; the programme is dense.
const CLASSES_MAX: usize = 256;
/// Most groups of rooms that admit the same pods for which prices are sought.
const GROUPS_MAX: usize = 12;
/// Most nodes of which it matters that they are whole: of more, each is a small part.
const WHOLE_NODES_MAX: usize = 100;
/// Most kinds of pods for which whole nodes are looked at.
const WHOLE_KINDS_MAX: usize = 16;
/// Work when a plan is due.
const DEFAULT_EFFORT: ImproveEffort = ImproveEffort {
    rounds: 24,
    work: 10_000_000,
    above: 0,
    barren: 12,
    steps: 1_000,
    gain_min: 1e-4,
};
/// Work when quality counts more.
const MAX_EFFORT: ImproveEffort = ImproveEffort {
    rounds: 400,
    work: u64::MAX,
    above: 0,
    barren: 400,
    steps: 5_000,
    gain_min: 1e-6,
};

/// A bound that says more than the one that is known, by values of pods or by whole nodes; none
/// when neither does, or when the check refuses it.
pub(super) fn closer(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    launched: &[i64],
    (plan, known): (&Plan, &LowerBound),
) -> Option<LowerBound> {
    let shapes: Vec<usize> = (0..launched.len()).filter(|shape| launched[*shape] > 0).collect();
    if model.input.effort == Effort::Greedy {
        return None;
    }
    let class = |shape: &usize| PodClass {
        shape: model.shapes[*shape].id.clone(),
        request: model.requests[*shape].clone(),
        count: launched[*shape],
    };
    let classes: Vec<PodClass> = shapes.iter().map(class).collect();
    let rooms = rooms(model, priced, &shapes);
    let kinds = Kinds::new(&classes, &rooms);
    let names = model.dims.names();
    if kinds.classes.len() > CLASSES_MAX {
        return by_price_sets(names, &classes, &rooms).filter(|found| found.says_more(known));
    }
    let nodes = || plan.launches.iter().filter(|node| !node.standing);
    let asked = model.input.effort;
    let effort = if asked == Effort::Max { MAX_EFFORT } else { DEFAULT_EFFORT };
    let effort = ImproveEffort { above: known.cost_micro_usd_per_hour, ..effort };
    let planned = planned(model, (&shapes, &kinds.of), nodes());
    let values = dual_values::of_rows(&kinds.problem(), planned, effort);
    let found = values.and_then(|values| {
        let values: Vec<f64> = kinds.of.iter().map(|kind| values[*kind]).collect();
        bound::from_values(&values, &classes, &rooms).filter(|found| found.says_more(known))
    });
    if nodes().count() > WHOLE_NODES_MAX || kinds.classes.len() > WHOLE_KINDS_MAX {
        return found;
    }
    let values = found.as_ref().unwrap_or(known);
    let whole = bound::from_whole_nodes(values, names, &classes, &rooms);
    if whole.says_more(values) { Some(whole) } else { found }
}

/// Classes as the search for values sees them: those that request the same and may use the same
/// rooms are one, since one value is as good for all of them.
struct Kinds {
    /// The kind of each class.
    of: Vec<usize>,
    /// The first class of each kind, with the pods of all.
    classes: Vec<PodClass>,
    /// What can be bought, for kinds.
    rooms: Vec<SharedRoom>,
}

impl Kinds {
    fn new(classes: &[PodClass], rooms: &[SharedRoom]) -> Self {
        let mut kinds = indexmap::IndexMap::<(&[i64], Vec<bool>), PodClass>::new();
        let mut of = Vec::with_capacity(classes.len());
        for (at, class) in classes.iter().enumerate() {
            let admits = rooms.iter().map(|room| room.admits[at]).collect();
            let kind = kinds.entry((&class.request, admits));
            of.push(kind.index());
            kind.or_insert_with(|| PodClass { count: 0, ..class.clone() }).count += class.count;
        }
        let admits = |at: usize| kinds.keys().map(|(_, admits)| admits[at]).collect();
        let rooms = rooms.iter().enumerate();
        let rooms = rooms.map(|(at, room)| SharedRoom { admits: admits(at), ..room.clone() });
        Self { of, rooms: rooms.collect(), classes: kinds.values().cloned().collect() }
    }

    /// A packing problem without limits and rules.
    fn problem(&self) -> Problem {
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
        let bins: Vec<Bin> = self.rooms.iter().map(bin).collect();
        let class = |(shape, class): (usize, &PodClass)| ItemClass {
            shape,
            request: class.request.clone(),
            count: class.count,
        };
        Problem {
            classes: self.classes.iter().enumerate().map(class).collect(),
            skyline: skylines(&bins, 1),
            bins,
            admits: groups.into_iter().collect(),
            limit_sets: vec![LimitSet::default()],
            scarce: vec![false],
            rules: NodeRules::new(Vec::new(), self.classes.len()),
            starts: vec![NodeState::default()],
        }
    }
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

/// What planned nodes cost and hold of each kind of pods, each sort of node once.
fn planned<'n>(
    model: &Model<'_>,
    (shapes, kinds): (&[usize], &[usize]),
    nodes: impl Iterator<Item = &'n NewNode>,
) -> BTreeSet<(i64, Load)> {
    let load = |node: &NewNode| {
        let mut load = BTreeMap::new();
        for (shape, count) in model.load(node) {
            if let Ok(class) = shapes.binary_search(&shape) {
                *load.entry(kinds[class]).or_insert(0) += count;
            }
        }
        load.into_iter().collect()
    };
    nodes.map(|node| (node.cost(), load(node))).collect()
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
