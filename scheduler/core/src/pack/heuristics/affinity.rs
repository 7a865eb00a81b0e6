//! Required affinity on a node: pods that must join others on their node get their node, and the
//! others, first.
//!
//! Invariant: a node opened here grows until its company has room; what room is then left is
//! offered to all other classes before anything else is bought.

use crate::pack::heuristics::insert::{Nodes, Overflow};
use crate::pack::heuristics::task::Task;
use crate::pack::problem::Outcome;
use crate::pack::problem::{Packed, Problem};

/// Places all classes that need others on their node; none when there are no such classes.
pub(crate) fn place(
    task: Task<'_>,
    outcome: &mut Outcome,
    occupied: &mut [bool],
) -> Option<Vec<Packed>> {
    let problem = task.problem;
    let waits = |class: &usize| outcome.left[*class] > 0 && needs_affinity(problem, *class);
    let waiting: Vec<usize> = (0..problem.classes.len()).filter(waits).collect();
    if waiting.is_empty() {
        return None;
    }
    let mut nodes = Nodes::new(problem, task.bins, occupied.to_vec());
    for class in &waiting {
        seat_row(problem, &mut nodes, *class, outcome);
    }
    let mut others: Vec<usize> =
        (0..problem.classes.len()).filter(|class| outcome.left[*class] > 0).collect();
    others.sort_by(|a, b| task.values[*b].total_cmp(&task.values[*a]).then(a.cmp(b)));
    for class in others {
        let left = outcome.left[class];
        outcome.left[class] = nodes.insert(class, left, Overflow::Join, &mut outcome.limits_left);
    }
    occupied.copy_from_slice(nodes.occupied());
    Some(nodes.finish(Vec::new()).packed)
}

/// Adds pods of the class to growing nodes; when none grows further, another leader opens the next.
fn seat_row(problem: &Problem, nodes: &mut Nodes<'_>, class: usize, outcome: &mut Outcome) {
    loop {
        let left = outcome.left[class];
        outcome.left[class] = nodes.insert(class, left, Overflow::Grow, &mut outcome.limits_left);
        if outcome.left[class] == 0 {
            return;
        }
        let shape = problem.classes[class].shape;
        let leads = |other: &usize| {
            outcome.left[*other] > 0
                && !needs_affinity(problem, *other)
                && problem.rules.leads(problem.classes[*other].shape, shape)
        };
        let Some(leader) = (0..problem.classes.len()).find(leads) else { return };
        if nodes.insert(leader, 1, Overflow::Fresh, &mut outcome.limits_left) > 0 {
            return;
        }
        outcome.left[leader] -= 1;
    }
}

fn needs_affinity(problem: &Problem, class: usize) -> bool {
    problem.rules.needs_affinity(problem.classes[class].shape)
}
