//! In which order planned nodes open, as the scheduler's sessions let them.
//!
//! Invariant: a node opens after those whose pods it has room for besides its own; nodes that have
//! room for each other's pods open together (docs/design/0002-realisation.md). Written apart from
//! the planner.

use std::collections::BTreeSet;

use longshore_core::ids::{PodUid, ShapeId};
use longshore_core::question::PlanInput;
use longshore_core::requirements::Requirements;
use longshore_core::taint::untolerated;
use longshore_core::world::shape::PodShape;

use super::machines::Machine;

/// Pods that wait.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Those that are planned somewhere.
    pub planned: Vec<PodUid>,
    /// Those that the plan calls impossible.
    pub impossible: Vec<PodUid>,
}

/// A closed machine, as far as the order goes.
struct Side {
    /// Shapes of waiting pods that are wanted there.
    holds: BTreeSet<ShapeId>,
    /// Shapes of waiting pods that it has room for besides.
    draws: BTreeSet<ShapeId>,
    /// Whether it has room for pods that the plan calls impossible.
    tempts: bool,
}

/// Those of the closed machines that open next, while these pods wait.
#[must_use]
pub fn next<'m, 'a>(
    closed: &[&'m Machine<'a>],
    waiting: &Waiting,
    input: &PlanInput,
) -> Vec<&'m Machine<'a>> {
    let planned = shapes(&waiting.planned, input);
    let impossible = shapes(&waiting.impossible, input);
    let side = |machine: &Machine<'_>| Side {
        holds: shapes(&machine.planned.pods, input).intersection(&planned).cloned().collect(),
        draws: drawn(machine, &planned, input),
        tempts: !drawn(machine, &impossible, input).is_empty(),
    };
    let sides: Vec<Side> = closed.iter().map(|machine| side(machine)).collect();
    first(&sides).into_iter().map(|at| closed[at]).collect()
}

/// Those that draw nobody from others; without such, all but those that others need not wait for.
fn first(sides: &[Side]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..sides.len()).collect();
    let draws =
        |from: usize, by: usize| from != by && !sides[from].holds.is_disjoint(&sides[by].draws);
    let harmless = left.iter().copied().filter(|by| !left.iter().any(|from| draws(*from, *by)));
    let harmless: Vec<usize> = harmless.collect();
    if !harmless.is_empty() {
        let (tempting, plain): (Vec<usize>, Vec<usize>) =
            harmless.into_iter().partition(|at| sides[*at].tempts);
        return if plain.is_empty() { tempting } else { plain };
    }
    loop {
        let drawn = |from: &usize| left.iter().any(|by| draws(*from, *by));
        let core: Vec<usize> = left.iter().copied().filter(drawn).collect();
        if core.len() == left.len() || core.is_empty() {
            return left;
        }
        left = core;
    }
}

/// Which of these shapes find room on a machine besides what is planned there.
fn drawn(machine: &Machine<'_>, of: &BTreeSet<ShapeId>, input: &PlanInput) -> BTreeSet<ShapeId> {
    let shapes = of.iter().map(|shape| &input.world.shapes[shape]);
    let finds = |shape: &&std::sync::Arc<PodShape>| {
        let labels = machine.labels();
        let admits = |terms: &Requirements| terms.allow(&labels);
        untolerated(&machine.planned.taints, &shape.tolerations).is_none()
            && shape.node_alternatives().iter().any(admits)
            && has_room(machine, shape, input)
    };
    shapes.filter(finds).map(|shape| shape.id.clone()).collect()
}

/// Whether a pod finds room: nominations hold nothing back from higher priorities.
fn has_room(machine: &Machine<'_>, shape: &PodShape, input: &PlanInput) -> bool {
    let free = machine.room.minus(&machine.planned.requests);
    let own = machine.planned.pods.iter().filter_map(|uid| input.world.pods.get(uid));
    let own = own.map(|pod| &input.world.shapes[&pod.shape]);
    let lower = own.filter(|own| own.priority < shape.priority);
    let free = lower.fold(free, |free, own| free.plus(&own.requests));
    shape.requests.fits_in(&free)
}

fn shapes(pods: &[PodUid], input: &PlanInput) -> BTreeSet<ShapeId> {
    let known = pods.iter().filter_map(|uid| input.world.pods.get(uid));
    known.map(|pod| pod.shape.clone()).collect()
}
