//! What the commands print.
//!
//! Invariant: text for people goes line by line as it is known; JSON is one document at the end,
//! and people see the lines on standard error meanwhile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use crate::args::{How, Output};
use crate::children::{self, Going};
use crate::run::Outcome;

/// Runs seeds and reports; the number of seeds that broke a rule.
///
/// # Errors
/// When a child cannot be started.
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what it is for")]
pub fn seeds(
    seeds: std::ops::Range<u64>,
    how: &How,
    (output, jobs): (Output, usize),
    within: Option<Duration>,
) -> Result<usize> {
    let began = Instant::now();
    let mut outcomes: Vec<Outcome> = Vec::new();
    children::run(seeds, how, jobs, |outcome| {
        match output {
            Output::Text => println!("{}", line(outcome)),
            Output::Json => eprintln!("{}", line(outcome)),
        }
        outcomes.push(outcome.clone());
        let over = within.is_some_and(|within| began.elapsed() >= within);
        if over { Going::Stop } else { Going::On }
    })?;
    let summary = summary(&outcomes, began.elapsed());
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&summary)?),
        Output::Text => println!("{}", text(&summary)),
    }
    Ok(outcomes.iter().filter(|outcome| !outcome.violations.is_empty()).count())
}

/// A seed in a line.
#[must_use]
pub fn line(outcome: &Outcome) -> String {
    let rested = outcome.rested_seconds.map_or("no rest".to_owned(), |s| format!("rest in {s} s"));
    let faults: u64 = outcome.faults.values().sum();
    let head = format!(
        "seed {}: {} simulated s in {} ms, {faults} faults, {rested}",
        outcome.seed, outcome.simulated_seconds, outcome.wall_ms
    );
    let head = outcome.settled.iter().fold(head, |head, found| {
        let [dearest, last] = [found.dearest_micro_usd_per_hour, found.micro_usd_per_hour]
            .map(|price| format!("${}.{:04}", price / 1_000_000, price % 1_000_000 / 100));
        format!(
            "{head}\n  {} pods: {} evictions, {} launches, {} nodes at {last} an hour (at most {dearest}), last move after {} s",
            found.pods, found.evictions, found.launches, found.nodes, found.last_move_seconds
        )
    });
    outcome.violations.iter().fold(head, |text, broken| {
        let at = crate::journal::stamp(broken.at_ms);
        format!("{text}\n  {at} step {} {}: {}", broken.step, broken.rule, broken.text)
    })
}

fn summary(outcomes: &[Outcome], wall: Duration) -> serde_json::Value {
    let mut faults: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in outcomes.iter().flat_map(|outcome| &outcome.faults) {
        *faults.entry(name).or_default() += count;
    }
    let violations: Vec<_> = outcomes
        .iter()
        .flat_map(|outcome| outcome.violations.iter().map(move |broken| (outcome.seed, broken)))
        .map(|(seed, broken)| {
            json!({ "seed": seed, "step": broken.step, "rule": broken.rule, "text": broken.text })
        })
        .collect();
    let settled: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.settled.as_ref()).collect();
    let rests = outcomes.iter().filter_map(|outcome| outcome.rested_seconds);
    json!({
        "seeds": outcomes.len(),
        "simulated_seconds": outcomes.iter().map(|outcome| outcome.simulated_seconds).sum::<u64>(),
        "wall_seconds": wall.as_secs_f64(),
        "cpu_seconds": outcomes.iter().map(|outcome| outcome.wall_ms).sum::<u64>() / 1000,
        "steps": outcomes.iter().map(|outcome| outcome.steps).sum::<u64>(),
        "faults": faults,
        "rest_seconds_max": rests.max(),
        "settled": settled,
        "violations": violations,
    })
}

fn text(summary: &serde_json::Value) -> String {
    let violations = summary["violations"].as_array().map_or(0, Vec::len);
    format!(
        "{} seeds, {} simulated seconds in {} wall seconds, {violations} violations",
        summary["seeds"], summary["simulated_seconds"], summary["wall_seconds"]
    )
}
