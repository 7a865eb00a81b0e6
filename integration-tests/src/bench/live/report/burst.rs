//! docs/live/burst.svg: what happens from the first of a hundred pods on, one contender above the
//! other.
//!
//! Invariant: drawn from the marks of one run of each contender, the middle one by the time until
//! all pods run; both share the axis, which begins with the first pod. Every event is drawn: those
//! that would cover each other are one mark with their number.

mod draw;
mod timeline;

use crate::bench::live::args::{CaseName, Contender};
use crate::bench::live::results::Run;
use timeline::Timeline;

/// The case that is drawn.
pub const CASE: CaseName = CaseName::Hundred;

/// The chart; none where no run of the case came to an end of its first phase.
#[must_use]
pub fn svg(runs: &[&Run]) -> Option<String> {
    let contenders = [Contender::Longshore, Contender::Karpenter];
    let drawn =
        contenders.into_iter().filter_map(|contender| Timeline::of(middle(runs, contender)?));
    let drawn: Vec<Timeline> = drawn.collect();
    (!drawn.is_empty()).then(|| draw::svg(&drawn))
}

/// The run in the middle; what did not reach its goal comes last.
fn middle<'r>(runs: &[&'r Run], contender: Contender) -> Option<&'r Run> {
    let of_case = runs.iter().copied().filter(|run| run.case == CASE && run.contender == contender);
    let mut runs: Vec<&Run> = of_case.filter(|run| !run.phases.is_empty()).collect();
    runs.sort_by_key(|run| {
        let reached = run.phases.first().and_then(|played| played.figures.goal_ms);
        reached.unwrap_or(u64::MAX)
    });
    runs.get(runs.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests;
