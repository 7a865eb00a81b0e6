//! Whether pods need to be told their nodes.
//!
//! Invariant: never true where a pod could be left without a place by the order in which
//! kube-scheduler binds the others.

use crate::model::Model;
use crate::vocabulary::taint::{Taint, TaintEffect, UNREGISTERED};

/// True when whichever pods get the planned places first, the others fit into those that are left:
/// all that wait request the same, may go to the same nodes, and no rule about other pods touches
/// them. What DaemonSets request must be there before a node opens, or pods would be bound in its
/// place.
pub(crate) fn any_order(model: &Model<'_>) -> bool {
    let waiting = model.input.world.pending().filter_map(|(id, _)| model.index_of(id));
    let waiting: Vec<usize> = waiting.filter(|shape| may_be_bound(model, *shape)).collect();
    let leaving = (0..model.shapes.len()).filter(|shape| !model.demand[*shape].is_empty());
    let all: Vec<usize> = waiting.into_iter().chain(leaving).collect();
    let Some(first) = all.first() else { return true };
    all.iter().all(|shape| is_free(model, *shape) && is_like(model, *shape, *first))
        && model.daemons.iter().all(|shape| comes_before_opening(model, *shape))
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
