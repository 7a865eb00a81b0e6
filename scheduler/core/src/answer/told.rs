//! Which pods need to be told their nodes.
//!
//! Invariant: nobody is left untold where a pod could be left without a place by the order in which
//! kube-scheduler binds the others.

use std::collections::BTreeSet;

use crate::answer::Plan;
use crate::model::Model;
use crate::vocabulary::ids::PodUid;
use crate::vocabulary::taint::{Taint, TaintEffect, UNREGISTERED};

/// Pods that have to be told their nodes, so that the plan comes true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// All that a node is planned for.
    #[default]
    All,
    /// All but these, which are alike. Once the others have their places, whichever of these are
    /// bound first leave places that suit the rest.
    AllBut(BTreeSet<PodUid>),
    /// None: all that wait are alike.
    None,
}

impl Told {
    /// True for a pod that has to be told.
    #[must_use]
    pub fn includes(&self, pod: &PodUid) -> bool {
        match self {
            Self::All => true,
            Self::AllBut(free) => !free.contains(pod),
            Self::None => false,
        }
    }

    /// True when no pod has to be told.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// Who has to be told. Pods need not be where whichever of them get the planned places first leave
/// places into which the others fit: they request the same, may go to the same nodes, and no rule
/// about other pods touches them. Of several such groups one can be left alone, the largest, when
/// all others are where they belong. What DaemonSets request must be there before a node opens, or
/// pods would be bound in its place.
pub(crate) fn told(model: &Model<'_>, plan: &Plan) -> Told {
    if !model.daemons.iter().all(|shape| comes_before_opening(model, *shape)) {
        return Told::All;
    }
    let waiting = model.input.world.pending().filter_map(|(id, _)| model.index_of(id));
    let waiting: Vec<usize> = waiting.filter(|shape| may_be_bound(model, *shape)).collect();
    let leaving = (0..model.shapes.len()).filter(|shape| !model.demand[*shape].is_empty());
    let all: BTreeSet<usize> = waiting.iter().copied().chain(leaving).collect();
    let group = largest(model, &waiting);
    if group.is_superset(&all) {
        return Told::None;
    }
    match !group.is_empty() && each_has_a_place(model, &all, plan) {
        true => Told::AllBut(pods(model, &group).cloned().collect()),
        false => Told::All,
    }
}

/// True when all pods that wait have a place by the plan, and nobody else comes: who has none takes
/// whatever is open by then, and so does who comes only when a node goes.
fn each_has_a_place(model: &Model<'_>, shapes: &BTreeSet<usize>, plan: &Plan) -> bool {
    let leaves = |shape: usize| model.demand[shape].iter().any(|pod| pod.node.is_some());
    plan.placements.len() == pods(model, shapes).count() && !(0..model.shapes.len()).any(leaves)
}

/// The shapes of the largest group of pods that wait, are alike, and are free.
fn largest(model: &Model<'_>, waiting: &[usize]) -> BTreeSet<usize> {
    let mut groups: Vec<BTreeSet<usize>> = Vec::new();
    for shape in waiting.iter().copied().filter(|shape| is_free(model, *shape)) {
        let mut like = groups
            .iter_mut()
            .filter(|group| group.first().is_some_and(|first| is_like(model, shape, *first)));
        match like.next() {
            Some(group) => drop(group.insert(shape)),
            None => groups.push(BTreeSet::from([shape])),
        }
    }
    // Of equal ones the first.
    groups.reverse();
    groups.into_iter().max_by_key(|group| pods(model, group).count()).unwrap_or_default()
}

/// The pods of these shapes that wait.
fn pods<'m>(model: &'m Model<'_>, shapes: &'m BTreeSet<usize>) -> impl Iterator<Item = &'m PodUid> {
    let pending = model.input.world.pending();
    let theirs =
        pending.filter(|(id, _)| model.index_of(id).is_some_and(|at| shapes.contains(&at)));
    theirs.flat_map(|(_, pods)| pods.keys())
}

/// True when kube-scheduler may bind pods of the shape to a node that opens.
fn may_be_bound(model: &Model<'_>, shape: usize) -> bool {
    !model.stays_with_node(shape) && model.shapes[shape].unschedulable.is_none()
}

/// True when no rule and no preference about other pods, or about ports, touches the shape.
fn is_free(model: &Model<'_>, shape: usize) -> bool {
    model.topology.is_plain(shape) && model.topology.node_preferences.is_free(shape)
}

fn is_like(model: &Model<'_>, one: usize, other: usize) -> bool {
    let (a, b) = (model.shapes[one], model.shapes[other]);
    one == other
        || (a.requests == b.requests
            && a.priority == b.priority
            && a.tolerations == b.tolerations
            && a.preferred_node_terms == b.preferred_node_terms
            && model.alternatives[one] == model.alternatives[other])
}

/// True when pods of a DaemonSet are bound to a node that is still closed.
fn comes_before_opening(model: &Model<'_>, shape: usize) -> bool {
    let closed = Taint {
        key: UNREGISTERED.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoExecute,
    };
    model.shapes[shape].tolerations.iter().any(|toleration| toleration.covers(&closed))
}
