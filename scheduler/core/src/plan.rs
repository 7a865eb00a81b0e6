//! The straight line from a question to its plan.
//!
//! Invariant: a plan is complete. Every pod to place is in `placements` or in `unplaced`; every
//! launch names its closed set of offerings; every disruption names where its pods go.

use crate::answer::any_order;
use crate::answer::assemble::{self, Queue};
use crate::answer::opening;
use crate::answer::{Plan, Unplaced};
use crate::bound::total;
use crate::disrupt;
use crate::explain::obstacles::Explainer;
use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::place::state::PlanState;
use crate::place::{Placed, Placer, buffers};
use crate::question::PlanInput;
use crate::reason::Obstacle;
use crate::topology::density;
use crate::world::topology::Heights;

/// Decides what to launch, where pods go, and what to take out of service.
#[must_use]
pub fn plan(input: &PlanInput) -> Plan {
    density::choose(input, plan_at)
}

/// The plan with spreads over hosts of these heights.
fn plan_at(input: &PlanInput, heights: &Heights) -> Plan {
    let model = Model::with(input, heights);
    let priced = PricedOffers::new(&model);
    let mut state = PlanState::new(&model, &priced);
    let placer = Placer { model: &model, priced: &priced, effort: input.effort, buy: true };
    let mut placed = placer.place(&mut state, &schedulable(&model));
    placer.glean(&mut state, &mut placed);
    let room = buffers::place(&placer, &mut state, &mut placed);
    let mut plan = Plan::default();
    let explainer = Explainer { model: &model, priced: &priced, state: &state };
    answer_pods(&explainer, &placed, &mut plan);
    buffers::answer(&explainer, &room, &mut plan);
    buffers::launches(&model, &priced, &room, &mut plan);
    let mut launched = vec![0; model.shapes.len()];
    placed.count_launched(&mut launched);
    let context = disrupt::Context {
        model: &model,
        priced: &priced,
        state: &mut state,
        effort: input.effort,
        launched: &mut launched,
    };
    disrupt::add(context, &mut plan);
    buffers::forget(&model, &mut launched);
    plan.turns = opening::turns(&model, &state, &plan.unplaced);
    plan.any_order = any_order::any_order(&model);
    total::add(&model, &priced, &launched, &mut plan);
    plan
}

/// Pods of each shape that can be placed at all.
fn schedulable(model: &Model<'_>) -> Vec<i64> {
    let count = |shape: usize| match model.shapes[shape].unschedulable {
        Some(_) => 0,
        None => i64::try_from(model.demand[shape].len()).unwrap_or(i64::MAX),
    };
    (0..model.shapes.len()).map(count).collect()
}

/// Names every pod's place, or the reason why it has none.
fn answer_pods(explainer: &Explainer<'_, '_, '_>, placed: &Placed, plan: &mut Plan) {
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
