//! In which order planned nodes open, as the scheduler's sessions let them.
//!
//! Invariant: nodes that would draw fewer pods which are not wanted there open first, those that draw as
//! many together (docs/design/0002-realisation.md). Written apart from the planner's own count.

use std::collections::BTreeMap;

use longshore_core::ids::{PodUid, ShapeId};
use longshore_core::plan::PlanInput;
use longshore_core::resources::Resources;
use longshore_core::taint::untolerated;

use super::machines::Machine;

/// Pods of each shape.
type Count = BTreeMap<ShapeId, i64>;

/// Pods that wait.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Those that are planned somewhere.
    pub planned: Vec<PodUid>,
    /// Those that the plan calls impossible.
    pub impossible: Vec<PodUid>,
}

/// Those of the closed machines that open next, while these pods wait.
#[must_use]
pub fn next<'m, 'a>(
    closed: &[&'m Machine<'a>],
    waiting: &Waiting,
    input: &PlanInput,
) -> Vec<&'m Machine<'a>> {
    let (planned, impossible) = (count(&waiting.planned, input), count(&waiting.impossible, input));
    let draws = |machine: &Machine<'_>| {
        (drawn(machine, &planned, input), drawn(machine, &impossible, input))
    };
    let draws: Vec<_> = closed.iter().map(|machine| draws(machine)).collect();
    let least = draws.iter().min().copied();
    let first = closed.iter().zip(draws).filter(|(_, draws)| Some(*draws) == least);
    first.map(|(machine, _)| *machine).collect()
}

/// How many pods that are not wanted there a machine would draw.
fn drawn(machine: &Machine<'_>, waiting: &Count, input: &PlanInput) -> i64 {
    let own = count(&machine.planned.pods, input);
    let draws = waiting.iter().map(|(shape, count)| {
        let shape = &input.world.shapes[shape];
        let others = count - own.get(&shape.id).copied().unwrap_or(0);
        let repelled = untolerated(&machine.planned.taints, &shape.tolerations).is_some();
        let room = room(machine, shape.priority, &own, input);
        if repelled { 0 } else { copies(&shape.requests, &room, others) }
    });
    draws.max().unwrap_or(0)
}

/// What a pod of that priority finds free: nominations hold nothing back from higher priorities.
fn room(machine: &Machine<'_>, priority: i32, own: &Count, input: &PlanInput) -> Resources {
    let free = machine.room.minus(&machine.planned.requests);
    let shapes = own.iter().map(|(shape, count)| (&input.world.shapes[shape], *count));
    let lower = shapes.filter(|(shape, _)| shape.priority < priority);
    lower.fold(free, |free, (shape, count)| free.plus(&shape.requests.times(count)))
}

/// How many of at most `most` pods fit.
fn copies(requests: &Resources, room: &Resources, most: i64) -> i64 {
    (1..=most).take_while(|count| requests.times(*count).fits_in(room)).last().unwrap_or(0)
}

fn count(pods: &[PodUid], input: &PlanInput) -> Count {
    let mut all = Count::new();
    for pod in pods.iter().filter_map(|uid| input.world.pods.get(uid)) {
        *all.entry(pod.shape.clone()).or_default() += 1;
    }
    all
}
