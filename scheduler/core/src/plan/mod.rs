//! Plans: what is asked, what is answered, and the straight line between.
//!
//! Invariant: a plan is complete. Every pod to place is in `placements` or in `unplaced`; every
//! launch names its closed set of offerings; every disruption names where its pods go.

mod any_order;
pub(crate) mod assemble;
pub(crate) mod buffers;
pub(crate) mod candidates;
mod certain;
mod circle;
mod closed;
mod density;
mod explain;
mod fill;
pub(crate) mod flexibility;
mod glean;
pub(crate) mod goods;
pub(crate) mod hosts;
mod live;
pub(crate) mod market;
mod miss;
pub(crate) mod model;
mod objective;
mod one_by_one;
mod opening;
pub(crate) mod outlook;
mod overlay;
pub(crate) mod place;
mod places;
mod proof;
pub(crate) mod rows;
pub(crate) mod scene;
mod sequence;
mod split;
pub(crate) mod substitutes;
mod trim;
mod turns;
mod types;
mod water;
mod why;
pub(crate) mod wishes;
mod worth;

pub use candidates::{CANDIDATES_MAX, LaunchQuery, launch_candidates};
pub use certain::certain;
pub use closed::closed_pools;
pub use objective::Objective;
pub use overlay::{Overlaid, overlaid};
pub use types::{
    Buffered, Candidate, Disruption, Effort, MinValuesPolicy, NewNode, Placement, Plan, PlanInput,
    Target, Unplaced, WISH_PREMIUM_PERCENT,
};

pub use why::{
    Asked, By, Choice, Company, Narrowing, OneMore, Purchase, ResourceShare, choices, one_more,
};

use crate::disrupt;
use crate::reason::{Obstacle, Reason};
use crate::vocabulary::ids::{PodUid, ShapeId};
use crate::world::pod::Pod;
use crate::world::topology::Heights;
use assemble::Queue;
use explain::Explainer;
use goods::Goods;
use model::Model;
use place::{Placed, Placer};
use scene::Scene;

/// Decides what to launch, where pods go, and what to take out of service.
#[must_use]
pub fn plan(input: &PlanInput) -> Plan {
    density::choose(input, plan_at)
}

/// The plan with spreads over hosts of these heights.
fn plan_at(input: &PlanInput, heights: &Heights) -> Plan {
    let model = Model::with(input, heights);
    let goods = Goods::new(&model);
    let mut scene = Scene::new(&model, &goods);
    let placer = Placer { model: &model, goods: &goods, effort: input.effort, buy: true };
    let mut placed = placer.place(&mut scene, &schedulable(&model));
    placer.glean(&mut scene, &mut placed);
    let room = buffers::place(&placer, &mut scene, &mut placed);
    let mut plan = Plan::default();
    let explainer = Explainer { model: &model, goods: &goods, scene: &scene };
    answer_pods(&explainer, &placed, &mut plan);
    buffers::answer(&explainer, &room, &mut plan);
    buffers::launches(&model, &goods, &room, &mut plan);
    let mut launched = vec![0; model.shapes.len()];
    placed.count_launched(&mut launched);
    let context = disrupt::Context {
        model: &model,
        goods: &goods,
        scene: &mut scene,
        effort: input.effort,
        launched: &mut launched,
    };
    disrupt::add(context, &mut plan);
    buffers::forget(&model, &mut launched);
    plan.turns = opening::turns(&model, &scene, &plan.unplaced);
    plan.any_order = any_order::any_order(&model);
    worth::add(&model, &goods, &launched, &mut plan);
    plan
}

/// What a plan does with one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodAnswer {
    /// Where it goes, or where it is; none when it has no place.
    pub target: Option<Target>,
    /// Why it has none; [`Obstacle::None`] when it has one.
    pub reason: Reason,
}

/// What a plan, made from this input, does with a pod. None when the pod is unknown.
#[must_use]
pub fn explain_pod(input: &PlanInput, plan: &Plan, uid: &PodUid) -> Option<PodAnswer> {
    let pod = input.world.pods.get(uid)?;
    let planned = plan.places().find(|placement| placement.pod == *uid);
    let target = planned.map(|placement| placement.target.clone());
    let target = target.or_else(|| pod.node.clone().map(Target::Node));
    let unplaced = plan.unplaced.iter().find(|unplaced| unplaced.pods.contains(uid));
    let leaf = |obstacle| Reason::leaf(format!("Pod/{}", pod.key), obstacle);
    let reason = match (&target, unplaced) {
        (_, Some(unplaced)) => unplaced.reason.clone(),
        (Some(_), None) => leaf(Obstacle::None),
        (None, None) if opts_out(input, pod) => leaf(Obstacle::OptedOut),
        (None, None) => leaf(Obstacle::NotWaiting),
    };
    Some(PodAnswer { target, reason })
}

fn opts_out(input: &PlanInput, pod: &Pod) -> bool {
    input.world.shapes.get(&pod.shape).is_some_and(|shape| shape.opts_out())
}

/// Why pods of a shape can or cannot get a new node of each pool, whether or not any is waiting. None
/// when the shape is unknown.
#[must_use]
pub fn explain_shape(input: &PlanInput, shape: &ShapeId) -> Option<Reason> {
    let model = Model::new(input);
    let goods = Goods::new(&model);
    let scene = Scene::new(&model, &goods);
    let shape = model.shapes.iter().position(|known| known.id == *shape)?;
    let explainer = Explainer { model: &model, goods: &goods, scene: &scene };
    Some(explainer.reason(shape, &Obstacle::None))
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
    let (model, goods) = (explainer.model, explainer.goods);
    let mut queue = Queue::new(model, &model.demand);
    plan.placements = assemble::placements(model, &placed.hosts, &mut queue);
    let (launches, new) = assemble::launches(model, goods, &placed.nodes, &mut queue, 0);
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
