//! Where pods would rather be: alternatives narrowed by preferences about nodes.
//!
//! Invariant: a preference is granted only where something can be had for it.

use super::TopologySplitter;

use crate::topology::preferences::{Preferences, soft_taints};
use crate::vocabulary::labels::NODE_POOL;
use crate::vocabulary::requirements::Requirements;
/// Alternatives narrowed by preferences about nodes, the strongest first, as long as something can
/// be had for them.
pub(super) fn narrowed(
    allotter: &TopologySplitter<'_, '_, '_>,
    shape: usize,
    plain: &[Requirements],
) -> Vec<Requirements> {
    let mut wanted = plain.to_vec();
    for term in terms(allotter, shape) {
        let narrowed: Vec<Requirements> = wanted
            .iter()
            .map(|alternative| alternative.and(&term))
            .filter(|alternative| !alternative.is_contradictory())
            .collect();
        if can_be_met(allotter, shape, &narrowed) {
            wanted = narrowed;
        }
    }
    wanted
}

/// Preferences about nodes, strongest first.
fn terms(allotter: &TopologySplitter<'_, '_, '_>, shape: usize) -> Vec<Requirements> {
    let kind = allotter.model.shapes[shape];
    let mut terms = Vec::new();
    if allotter.preferences <= Preferences::Taints {
        terms.extend(soft_taints(allotter.model, kind));
    }
    if allotter.preferences <= Preferences::Nodes {
        let mut preferred: Vec<_> = kind.preferred_node_terms.iter().collect();
        preferred.sort_by_key(|term| std::cmp::Reverse(term.weight));
        terms.extend(preferred.into_iter().map(|term| term.requirements.clone()));
    }
    terms
}

/// True when a node can be bought, or a node that is there has room, where all of this holds.
fn can_be_met(
    allotter: &TopologySplitter<'_, '_, '_>,
    shape: usize,
    alternatives: &[Requirements],
) -> bool {
    if alternatives.is_empty() {
        return false;
    }
    let (model, priced) = (allotter.model, allotter.priced);
    let request = &model.requests[shape];
    let places = priced.places.of(priced, shape, alternatives, NODE_POOL);
    places.iter().any(|place| {
        (allotter.buy && place.cost(priced, request).is_some())
            || allotter.room(place, request, 1) > 0
    })
}
