//! Which rules matter to the pods of a plan, and which domains a spread has to level.
//!
//! Invariant: the same for all ways of placing.

use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::world::topology::{Group, Topology};

/// A condition matters to new pods when one of its owners is or will be somewhere.
pub(crate) fn is_live(model: &Model<'_>, group: &Group) -> bool {
    group.spec.preference.is_none() && (are_waiting(model, group) || group.has_owners())
}

/// True when pods that obey it wait for a place.
pub(crate) fn are_waiting(model: &Model<'_>, group: &Group) -> bool {
    group.spec.owners.iter().any(|shape| !model.demand[shape].is_empty())
}

/// Tells the spreads of a shape which domains they have to level.
pub(crate) fn widen(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    topology: &mut Topology,
    shape: usize,
    key: &str,
) {
    let request = &model.requests[shape];
    let places = priced.places.of(priced, shape, &model.alternatives[shape], key);
    let bought = places.iter().filter(|place| place.cost(priced, request).is_some());
    let bought: Vec<&str> = bought.filter_map(|place| place.domain.as_deref()).collect();
    topology.widen(shape, key, |filter| {
        let counted = priced.places.counted(model, filter, key);
        bought.iter().map(|name| (*name).to_owned()).chain(counted.iter().cloned()).collect()
    });
}
