//! What a plan does with one pod, and whether pods of a shape can get a node at all.
//!
//! Invariant: says of every pod that is known either where it goes or why it has no place.

use crate::answer::{Plan, Target};
use crate::explain::obstacles::Explainer;
use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::place::state::PlanState;
use crate::question::PlanInput;
use crate::reason::{Obstacle, Reason};
use crate::vocabulary::ids::{PodUid, ShapeId};
use crate::world::pod::Pod;

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

/// Why pods of a shape can or cannot get a new node of each pool, whether or not any is waiting.
/// None when the shape is unknown.
#[must_use]
pub fn explain_shape(input: &PlanInput, shape: &ShapeId) -> Option<Reason> {
    let model = Model::new(input);
    let priced = PricedOffers::price(&model);
    let state = PlanState::begin(&model, &priced);
    let shape = model.shapes.iter().position(|known| known.id == *shape)?;
    let explainer = Explainer { model: &model, priced: &priced, state: &state };
    Some(explainer.reason(shape, &Obstacle::None))
}
