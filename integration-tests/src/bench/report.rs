//! docs/benchmarks.md: what was measured, on what, and how to measure it again.
//!
//! Invariant: every number stands beside its workload and its pool; machine, commit and the peer's
//! version are named once; losses are in the same tables as wins.

use super::latency::{Case, Measured};
use super::numbers::float;
use super::outcome::Outcome;
use super::results::Results;
use super::runs::{Row, Side};
use super::{goals, machine};

/// The document.
#[must_use]
pub fn document(results: &Results) -> String {
    let quick = if results.quick {
        " A quick run: at most three runs, none longer than a minute, and the peer is not asked where it takes minutes."
    } else {
        ""
    };
    let (machine, commit) = (machine::describe(), &results.commit);
    let parts = [
        format!(
            "# Benchmarks\n\nWritten by `make bench`; do not edit. Machine: {machine}. Commit: \
             {commit}. The peer is Karpenter's scheduler, v{}, called in a process of its own on the \
             same files.{quick}\n\n![Price over the proven lower bound](benchmarks.svg)",
            part_version("peer")
        ),
        "## Goals\n\nA floor has to hold; ✗ marks one that does not.".to_owned(),
        goals::table(results),
        PLANS.to_owned(),
        plans(&results.rows),
        "## What a plan takes\n\nMedian of the runs. Memory is the largest resident set of a process \
         that reads the files and plans; ours counts its allocations while it is timed."
            .to_owned(),
        costs(&results.rows),
        "## Latency and memory of other worlds".to_owned(),
        cases(&results.cases),
        HOW.to_owned(),
    ];
    parts.join("\n\n") + "\n"
}

const PLANS: &str = "\
## Plans

Ours is the default effort, first the least, best the greatest. A price is the sum over the planned nodes, each at its
cheapest offering, and what is sought is the least price, as the peer seeks it: `--node-fee 0`. The bound is
proven, no set of nodes costs less. A ratio below 1 is ours being cheaper. Violations are what the independent check finds in a plan as it would be bought: a
peer's node that leaves the zone open is judged in the first of the zones, where pods that others count
may then stand in the way of a spread. Where not all pods are placed, prices do not compare.";

const HOW: &str = "\
## How it is measured

- Both sides read the same two files: `bench files DIR` writes them. Pods and catalogues come from
  seeded generators and from the embedded facts about EC2 (us-east-1, on demand, one price in three
  zones). `generic` pods draw from five sizes of CPU and six of memory, `diverse` pods are Karpenter's
  own benchmark mix (spread over zones and nodes, together, apart) on four hundred types of one price
  for each unit, `basic` and `wide` are the deployments of its performance suite, `third` are pods of a
  third to two thirds of a node, `poison` puts 10,000 pods that fit nothing before `generic-30000`.
- Each run is a process of its own; the two sides take turns, up to ten times; tables show medians. A side that
  has run for 20 seconds in a row is not started again; a run of ten minutes is given up.
- Only the decision is timed: `plan` for us, `Solve` for the peer, with the five workers of its own
  benchmark and without the controller's limit of a minute. Its scheduler is made anew for each run.
- Plans are judged by `longshore_core::check`, which shares no code with the planner, for both sides.

    make bench                      # everything; the peer takes minutes on the largest
    bench pack --catalogue FILE --workload FILE --output json";

/// Version of a pinned part, as tools/parts/versions has it.
#[must_use]
pub fn part_version(part: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/parts/versions");
    let text = std::fs::read_to_string(root).unwrap_or_default();
    let mut lines = text.lines().map(str::split_whitespace);
    let found = lines.find_map(|mut words| (words.next() == Some(part)).then(|| words.next()));
    found.flatten().unwrap_or("unknown").to_owned()
}

fn plans(rows: &[Row]) -> String {
    let head = "| workload | pool | pods | nodes | first $/h | $/h | best $/h | bound $/h | over bound | peer's \
                nodes | peer's $/h | ours ÷ peer's | violations | peer's |\n\
                |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|";
    let lines = rows.iter().map(|row| {
        let bound = |found: &Outcome| found.lower_bound_usd_per_hour.map_or_else(dash, price);
        line(&[
            row.case.workload.to_owned(),
            row.case.pool.name().to_owned(),
            of(&row.ours, placed),
            of(&row.ours, |found| found.nodes.to_string()),
            of(&row.first, |found| price(found.price_usd_per_hour)),
            of(&row.ours, |found| price(found.price_usd_per_hour)),
            of(&row.best, |found| price(found.price_usd_per_hour)),
            of(&row.ours, bound),
            row.over_bound().map_or_else(dash, ratio),
            of(&row.peer, |found| found.nodes.to_string()),
            of(&row.peer, |found| price(found.price_usd_per_hour)),
            row.price_ratio().map_or_else(dash, |found| set_off(ratio(found), found > 1.0)),
            of(&row.ours, violations),
            of(&row.peer, violations),
        ])
    });
    [head.to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn costs(rows: &[Row]) -> String {
    let head = "| workload | pool | first ms | ms | best ms | peer's ms | first faster | faster | runs | peer's runs | B/pod | \
                peer's B/pod | MB | peer's MB |\n\
                |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|";
    let lines = rows.iter().map(|row| {
        let faster =
            |found: Option<f64>| found.map_or_else(dash, |it| set_off(times(it), it < 1.0));
        line(&[
            row.case.workload.to_owned(),
            row.case.pool.name().to_owned(),
            milliseconds(&row.first),
            milliseconds(&row.ours),
            milliseconds(&row.best),
            milliseconds(&row.peer),
            faster(row.first_speed_up()),
            faster(row.speed_up()),
            row.ours.runs.to_string(),
            row.peer.runs.to_string(),
            of(&row.ours, per_pod),
            of(&row.peer, per_pod),
            of(&row.ours, |found| megabytes(found.peak_rss_bytes)),
            of(&row.peer, |found| megabytes(found.peak_rss_bytes)),
        ])
    });
    [head.to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn of(side: &Side, pick: impl Fn(&Outcome) -> String) -> String {
    side.outcome.as_ref().map_or_else(dash, pick)
}

fn cases(cases: &[(Case, Measured)]) -> String {
    let head = "| case | runs | p50 ms | p99 ms | MB |\n|---|---:|---:|---:|---:|".to_owned();
    let lines = cases.iter().map(|(case, found)| {
        let name = match case {
            Case::Small => "1,000 pods in 200 classes, first plan",
            Case::SmallDefault => "the same, default effort",
            Case::Large => "100,000 pods in 500 classes onto 10,000 half-full nodes, first plan",
            Case::LargeDefault => "the same, default effort",
            Case::State => "view of 10,000 nodes with claims and 100,000 pods",
            Case::Certificate => "checking the proof of a bound against every offering",
        };
        let bytes = if found.bytes > 0 { megabytes(found.bytes) } else { dash() };
        let time = |ms: f64| if ms > 0.0 { format!("{ms:.3}") } else { dash() };
        line(&[
            name.to_owned(),
            found.runs.to_string(),
            time(found.p50_ms),
            time(found.p99_ms),
            bytes,
        ])
    });
    [head].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

fn dash() -> String {
    "–".to_owned()
}

fn placed(outcome: &Outcome) -> String {
    let Outcome { pods, placed, .. } = outcome;
    if placed == pods { pods.to_string() } else { format!("{placed} of {pods}") }
}

fn violations(outcome: &Outcome) -> String {
    outcome.violations.map_or_else(dash, |found| found.to_string())
}

fn price(usd: f64) -> String {
    if usd < 10.0 { format!("{usd:.4}") } else { format!("{usd:.2}") }
}

fn ratio(value: f64) -> String {
    format!("{value:.4}")
}

fn times(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}×") } else { format!("{value:.0}×") }
}

/// What is lost stands out.
fn set_off(text: String, lost: bool) -> String {
    if lost { format!("**{text}**") } else { text }
}

fn milliseconds(side: &Side) -> String {
    let ms = side.seconds * 1e3;
    match (side.runs, &side.outcome) {
        (0, _) => dash(),
        (_, None) => format!("> {ms:.0}"),
        (_, Some(_)) if ms < 10.0 => format!("{ms:.2}"),
        (_, Some(_)) => format!("{ms:.0}"),
    }
}

fn per_pod(outcome: &Outcome) -> String {
    format!("{:.0}", float(outcome.allocated_bytes) / float(outcome.pods.max(1)))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", float(bytes) / 1e6)
}
