//! A plan from what was placed: names for counts, and a reason for every pod that has no place.
//!
//! Invariant: every pod that waits is in `placements` or in `unplaced`, exactly once.

use crate::answer::assemble::{self, Queue};
use crate::answer::{Plan, Unplaced};
use crate::explain::obstacles::Explainer;
use crate::place::Placed;
use crate::place::buffers::{self, Room};
use crate::reason::Obstacle;

/// The plan without disruptions and without its proof.
pub(crate) fn compose(explainer: &Explainer<'_, '_, '_>, placed: &Placed, room: &Room) -> Plan {
    let mut plan = Plan::default();
    name_pods(explainer, placed, &mut plan);
    buffers::answer(explainer, room, &mut plan);
    buffers::launches(explainer.model, explainer.priced, room, &mut plan);
    plan
}

/// Names every pod's place, or the reason why it has none.
fn name_pods(explainer: &Explainer<'_, '_, '_>, placed: &Placed, plan: &mut Plan) {
    let (model, priced) = (explainer.model, explainer.priced);
    let mut queue = Queue::new(model, &model.demand);
    plan.placements = assemble::placements(model, &placed.existing_nodes, &mut queue);
    let (launches, new) = assemble::launches(model, priced, &placed.nodes, &mut queue, 0);
    plan.launches = launches;
    plan.placements.extend(new);
    assemble::sort(&mut plan.placements);
    assemble::list_pods(&plan.placements, &mut plan.launches);
    for shape in 0..model.shapes.len() {
        let rest = queue.take(shape, i64::MAX, None);
        if rest.is_empty() {
            continue;
        }
        let ends = placed.unplaced.iter().filter(|refused| refused.shape == shape);
        let mut ends = ends.map(|refused| &refused.obstacle);
        let named = ends.find(|obstacle| **obstacle != Obstacle::NoPoolAdmits);
        let last = named.unwrap_or(&Obstacle::NoPoolAdmits);
        plan.unplaced.push(Unplaced {
            shape: model.shapes[shape].id.clone(),
            pods: rest.iter().map(|pod| pod.uid.clone()).collect(),
            reason: explainer.reason(shape, last),
        });
    }
}
