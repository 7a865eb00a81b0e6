//! What one more pod of a shape would cost: the plan for it beside the plan without it.
//!
//! Invariant: both plans are made by the planner as it is, so the price is what would be paid.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::answer::{Candidate, Plan, Target};
use crate::explain::choices::OneMore;
use crate::plan::plan;
use crate::question::PlanInput;
use crate::vocabulary::ids::{ObjectKey, PodUid, ShapeId};
use crate::world::pod::Pod;
use crate::world::view::{Change, ClusterView};

/// Name of the pod that is added; more of the last letter when somebody has it.
const NAME: &str = "one-more";

/// What one more pod of a shape would cost besides `before`, a plan that was made from this input.
/// None for shapes that are unknown or whose pods belong to their node.
#[must_use]
pub fn one_more(input: &PlanInput, before: &Plan, shape: &ShapeId) -> Option<OneMore> {
    let kind = input.world.shapes.get(shape)?;
    if kind.stays_with_node() {
        return None;
    }
    let after = plan(&with_one_more(input, shape, &kind.namespace));
    let refused = after.unplaced.iter().find(|unplaced| unplaced.shape == *shape);
    if unplaced(&after, shape) > unplaced(before, shape) {
        let refused = refused.map(|unplaced| unplaced.reason.clone());
        return Some(OneMore { refused, ..OneMore::default() });
    }
    let price = after.fleet_price_micro_usd_per_hour - before.fleet_price_micro_usd_per_hour;
    let (added, dropped) = (more(&after, before), more(before, &after));
    let same = added.is_empty() && dropped.is_empty() && price == 0;
    Some(OneMore {
        price_micro_usd_per_hour: price,
        existing: fuller(input, before, &after, shape).filter(|_| same),
        added,
        dropped,
        refused: None,
    })
}

fn with_one_more(input: &PlanInput, shape: &ShapeId, namespace: &str) -> PlanInput {
    let mut name = NAME.to_owned();
    while input.world.pods.contains_key(name.as_str()) {
        name.push('e');
    }
    let mut view = ClusterView::of(Arc::clone(&input.world));
    view.apply(Change::Pod(Pod {
        key: ObjectKey::new(namespace, &name),
        uid: name.into(),
        shape: shape.clone(),
        unschedulable: true,
        ..Pod::default()
    }));
    PlanInput { world: view.snapshot(), ..input.clone() }
}

fn unplaced(plan: &Plan, shape: &ShapeId) -> usize {
    let own = plan.unplaced.iter().filter(|unplaced| unplaced.shape == *shape);
    own.map(|unplaced| unplaced.pods.len()).sum()
}

/// Launches of one plan that the other lacks, by what is bought.
fn more(plan: &Plan, other: &Plan) -> Vec<Candidate> {
    let mut left: BTreeMap<&Candidate, i64> = BTreeMap::new();
    for node in &other.launches {
        *left.entry(&node.candidates[0]).or_default() += 1;
    }
    let mut more = Vec::new();
    for bought in plan.launches.iter().map(|node| &node.candidates[0]) {
        match left.get_mut(bought).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => more.push(bought.clone()),
        }
    }
    more.sort_unstable();
    more
}

/// The existing node that carries more pods of the shape in the second plan, or else more pods.
fn fuller(input: &PlanInput, before: &Plan, after: &Plan, shape: &ShapeId) -> Option<Target> {
    let added = |uid: &PodUid| !input.world.pods.contains_key(uid);
    let own = |uid: &PodUid| {
        added(uid) || input.world.pods.get(uid).is_some_and(|pod| pod.shape == *shape)
    };
    let counts = |plan: &Plan, counted: &dyn Fn(&PodUid) -> bool| {
        let mut counts: BTreeMap<Target, i64> = BTreeMap::new();
        for placement in plan.places().filter(|placement| counted(&placement.pod)) {
            *counts.entry(placement.target.clone()).or_default() += 1;
        }
        counts
    };
    let grown = |counted: &dyn Fn(&PodUid) -> bool| {
        let known = counts(before, counted);
        let mut later = counts(after, counted).into_iter();
        let more = later.find(|(target, count)| {
            target.name().is_some() && *count > known.get(target).copied().unwrap_or(0)
        });
        more.map(|(target, _)| target)
    };
    grown(&own).or_else(|| grown(&|_| true))
}
