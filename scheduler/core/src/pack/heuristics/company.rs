//! Seating: pods that must join others on their node get their node, and the others, first.
//!
//! Invariant: a node opened here grows until its company has room; what room is then left is offered
//! to all other rows before anything else is bought.

use crate::pack::heuristics::insert::{Habit, Nodes};
use crate::pack::heuristics::task::Task;
use crate::pack::problem::Outcome;
use crate::pack::problem::{Packed, Problem};

/// Seats all rows that need company; none when there are no such rows.
pub(crate) fn seat(
    task: Task<'_>,
    outcome: &mut Outcome,
    begun: &mut [bool],
) -> Option<Vec<Packed>> {
    let problem = task.problem;
    let waits = |row: &usize| outcome.left[*row] > 0 && needs_company(problem, *row);
    let waiting: Vec<usize> = (0..problem.rows.len()).filter(waits).collect();
    if waiting.is_empty() {
        return None;
    }
    let mut nodes = Nodes::new(problem, task.bins, begun.to_vec());
    for row in &waiting {
        seat_row(problem, &mut nodes, *row, outcome);
    }
    let mut others: Vec<usize> =
        (0..problem.rows.len()).filter(|row| outcome.left[*row] > 0).collect();
    others.sort_by(|a, b| task.values[*b].total_cmp(&task.values[*a]).then(a.cmp(b)));
    for row in others {
        let left = outcome.left[row];
        outcome.left[row] = nodes.insert(row, left, Habit::Join, &mut outcome.ledger);
    }
    begun.copy_from_slice(nodes.begun());
    Some(nodes.finish(Vec::new()).packed)
}

/// Adds pods of the row to growing nodes; when none grows further, another leader opens the next.
fn seat_row(problem: &Problem, nodes: &mut Nodes<'_>, row: usize, outcome: &mut Outcome) {
    loop {
        let left = outcome.left[row];
        outcome.left[row] = nodes.insert(row, left, Habit::Grow, &mut outcome.ledger);
        if outcome.left[row] == 0 {
            return;
        }
        let shape = problem.rows[row].shape;
        let leads = |other: &usize| {
            outcome.left[*other] > 0
                && !needs_company(problem, *other)
                && problem.rules.leads(problem.rows[*other].shape, shape)
        };
        let Some(leader) = (0..problem.rows.len()).find(leads) else { return };
        if nodes.insert(leader, 1, Habit::Fresh, &mut outcome.ledger) > 0 {
            return;
        }
        outcome.left[leader] -= 1;
    }
}

fn needs_company(problem: &Problem, row: usize) -> bool {
    problem.rules.needs_company(problem.rows[row].shape)
}
