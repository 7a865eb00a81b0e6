//! The straight line from a question to its plan.
//!
//! ```text
//! question -> resolve -> price -> place -> retry -> reserve
//!          -> compose -> disrupt -> open -> prove -> plan
//! ```
//!
//! Invariant: a plan is complete. Every pod to place is in `placements` or in `unplaced`; every
//! launch names its closed set of offerings; every disruption names where its pods go.

use crate::answer::Plan;
use crate::answer::steps::{Planned, Steps};
use crate::answer::{compose, opening};
use crate::bound::total;
use crate::disrupt;
use crate::explain::obstacles::Explainer;
use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::place::state::PlanState;
use crate::place::{Placer, buffers};
use crate::question::PlanInput;
use crate::topology::density;
use crate::world::topology::Heights;

/// Decides what to launch, where pods go, and what to take out of service.
#[must_use]
pub fn plan(input: &PlanInput) -> Plan {
    plan_in_steps(input).plan
}

/// The same, and what each step came to.
#[must_use]
pub fn plan_in_steps(input: &PlanInput) -> Planned {
    density::choose(input, plan_at)
}

/// The plan with spreads over hosts of these heights.
fn plan_at(input: &PlanInput, heights: &Heights) -> Planned {
    let model = Model::resolve(input, heights);
    let priced = PricedOffers::price(&model);
    let mut state = PlanState::begin(&model, &priced);
    let placer = Placer { model: &model, priced: &priced, effort: input.effort, buy: true };

    let mut placed = placer.place(&mut state, &model.schedulable());
    let first = placed.counts();
    placer.retry(&mut state, &mut placed);
    let second = placed.counts();
    let room = buffers::reserve(&placer, &mut state, &mut placed);

    let explainer = Explainer { model: &model, priced: &priced, state: &state };
    let mut plan = compose::compose(&explainer, &placed, &room);
    let mut launched = placed.launched(&model);
    let context = disrupt::Context {
        model: &model,
        priced: &priced,
        state: &mut state,
        effort: input.effort,
        launched: &mut launched,
    };
    disrupt::decide(context, &mut plan);
    buffers::forget(&model, &mut launched);
    opening::order(&model, &state, &mut plan);
    total::prove(&model, &priced, &launched, &mut plan);

    let steps = Steps {
        resolved: model.counts(),
        priced: priced.counts(),
        placed: first,
        retried: second,
        launches: plan.launches.len(),
        disruptions: plan.disruptions.len(),
        proved: (plan.bound.kind, plan.gap_ppm),
    };
    Planned { plan, steps }
}
