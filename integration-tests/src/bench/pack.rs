//! Our side: one plan in this process.
//!
//! Invariant: only the planner is timed; the check comes after everything has been measured.

use std::io::Write as _;
use std::time::Instant;

use anyhow::Result;
use longshore_core::answer::Plan;
use longshore_core::bound::BoundKind;
use longshore_core::check;
use longshore_core::plan;
use longshore_core::question::PlanInput;

use super::allocated::allocated;
use super::args::PackArgs;
use super::numbers::{count, dollars};
use super::outcome::Outcome;
use super::question;
use crate::parts::process;

/// Plans a pair of files.
///
/// # Errors
/// When a file cannot be read, or the system does not tell the memory in use.
pub fn pack(args: &PackArgs) -> Result<Outcome> {
    let input = question::input(args)?;
    let ((plan, plan_seconds), allocated) = allocated(|| {
        let started = Instant::now();
        let plan = plan(&input);
        (plan, started.elapsed().as_secs_f64())
    });
    let peak_rss_bytes = process::peak_rss_bytes("self")?;
    let bound = (plan.bound.kind != BoundKind::None).then_some(&plan.bound);
    Ok(Outcome {
        lower_bound_usd_per_hour: bound.map(|bound| dollars(bound.cost_micro_usd_per_hour)),
        certificate_checked: bound.map(|bound| bound.checked),
        plan_seconds,
        peak_rss_bytes,
        allocated_bytes: allocated.total,
        effort: Some(args.effort.name().to_owned()),
        ..judged(&plan, &input, args)?
    })
}

/// What can be said of a plan whoever made it.
///
/// # Errors
/// When the list of violations cannot be written.
pub fn judged(plan: &Plan, input: &PlanInput, args: &PackArgs) -> Result<Outcome> {
    let violations = check::check(plan, input);
    if args.list_violations {
        let mut stderr = std::io::stderr().lock();
        violations.iter().try_for_each(|violation| writeln!(stderr, "{violation}"))?;
    }
    let unplaced: usize = plan.unplaced.iter().map(|group| group.pods.len()).sum();
    let waiting = plan.placements.len() + unplaced;
    Ok(Outcome {
        pods: count(waiting),
        placed: count(plan.placements.len()),
        nodes: count(plan.launches.len()),
        price_usd_per_hour: dollars(plan.launch_price_micro_usd_per_hour),
        violations: Some(count(violations.len())),
        ..Outcome::default()
    })
}
