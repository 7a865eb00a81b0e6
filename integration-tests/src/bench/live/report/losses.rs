//! Where Karpenter is ahead, row by row, with the cause and what was tried.
//!
//! Invariant: the rows are found by comparing, so that none can be left out; only their causes are
//! written by hand, and a row without one says so.

mod causes;

use super::Phase;
use super::rows::{ROWS, Row};

/// What is closer than this is a draw: medians of three runs differ as much from day to day.
const DRAW: f64 = 1.02;

/// The section; says so where there is no such row.
#[must_use]
pub fn section(phases: &[Phase<'_>]) -> String {
    let title = "## Where Karpenter is ahead";
    let lines: Vec<String> = phases.iter().flat_map(lines).collect();
    if lines.is_empty() {
        return format!("{title}\n\nIn no row by more than 2 %.");
    }
    let head = "Every row in which its median is less than Longshore's by more than 2 %, or which \
                only it reached; those of one phase together that have one cause.\n\n| case, phase | \
                row: Longshore / Karpenter | why, and what was tried |\n|---|---|---|";
    format!("{title}\n\n{head}\n{}", lines.join("\n"))
}

fn lines(phase: &Phase<'_>) -> Vec<String> {
    let mut by_cause: Vec<(&str, Vec<String>)> = Vec::new();
    for row in ROWS.iter().filter(|row| is_lost(row, phase)) {
        let cause = causes::of(phase.case.name, phase.name, row.name);
        let cause = cause.unwrap_or("**not explained yet**");
        let figures = [&phase.ours, &phase.peers].map(|runs| row.cell(runs));
        let lost = format!("{}: {}", row.name, figures.join(" / "));
        match by_cause.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, rows)) => rows.push(lost),
            None => by_cause.push((cause, vec![lost])),
        }
    }
    let what = format!("{}, {}", phase.case.name.text(), phase.name);
    let line = |(cause, rows): (&str, Vec<String>)| {
        format!("| {what} | {} | {cause} |", rows.join("<br>"))
    };
    by_cause.into_iter().map(line).collect()
}

fn is_lost(row: &Row, phase: &Phase<'_>) -> bool {
    match (row.middle(&phase.ours), row.middle(&phase.peers)) {
        (Some(ours), Some(peers)) => ours > peers * DRAW,
        (None, Some(_)) => row.is_due() && !phase.ours.is_empty(),
        (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::bench::live::args::{CaseName, Contender};
    use crate::bench::live::cases::{Goal, case};
    use crate::bench::live::contender::Usage;
    use crate::bench::live::figures::{Played, figures};
    use crate::bench::live::recorder::seen::{Capacity, Mark, What};
    use crate::bench::live::script::Span;

    use super::*;

    /// One run whose pods run after so long, or do not, on nodes of this price.
    fn played(contender: Contender, goal_ms: Option<u64>, micro_usd_per_hour: u64) -> Played {
        let capacity = Capacity { instances: 1, micro_usd_per_hour };
        let marks = [Mark { at_ms: 1, what: What::Capacity(capacity) }];
        let span = Span {
            name: "out".to_owned(),
            goal: Goal::Run(1),
            limit_s: 240,
            began_ms: 0,
            goal_ms,
            end_ms: 240_000,
            is_settled: goal_ms.is_some(),
            running: 0,
            usage: [Usage::default(); 3],
            away: None,
        };
        Played { contender, figures: figures(&marks, &span), span }
    }

    fn phase<'r>(ours: &'r Played, peers: &'r Played) -> Phase<'r> {
        let case = case(CaseName::One).unwrap();
        Phase { case, name: "out", ours: vec![ours], peers: vec![peers] }
    }

    fn lost(ours: &Played, peers: &Played) -> Vec<&'static str> {
        let phase = phase(ours, peers);
        ROWS.iter().filter(|row| is_lost(row, &phase)).map(|row| row.name).collect()
    }

    #[test]
    fn a_row_is_lost_by_more_than_noise_or_where_only_the_peer_came_there() {
        let [ours, peers] = [Contender::Longshore, Contender::Karpenter];
        let (mine, theirs) = (played(ours, Some(10_100), 100), played(peers, Some(10_000), 90));
        assert_eq!(lost(&mine, &theirs), ["$/h then", "$/h in the end"]);
        let late = played(ours, None, 90);
        assert_eq!(lost(&late, &theirs), ["all pods run, s", "settled after, s"]);
        assert!(lost(&theirs, &late).is_empty());
    }

    #[test]
    fn each_lost_row_is_in_the_section() {
        let ours = played(Contender::Longshore, Some(20_000), 90);
        let theirs = played(Contender::Karpenter, Some(10_000), 90);
        let said = section(&[phase(&ours, &theirs)]);
        let first = "| one, out | all pods run, s: 20.00 / 10.00<br>";
        assert!(said.contains(first), "{said}");
        assert_eq!(said.matches("| one, out |").count(), 1, "what has one cause is one line");
        assert!(section(&[phase(&theirs, &theirs)]).contains("In no row"));
    }
}
