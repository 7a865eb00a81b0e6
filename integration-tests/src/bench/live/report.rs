//! docs/live.md: what was measured live, on what, and how.
//!
//! Invariant: each figure is the median of the runs that have it; what was not reached is said
//! where its figure would stand. Losses are in the same tables as wins.

pub mod burst;
pub mod chart;

use std::collections::BTreeMap;

use anyhow::Result;

use super::args::{CaseName, Contender};
use super::cases::{self, Case};
use super::figures::{Figures, Played};
use super::recorder::seen::Capacity;
use super::results::{Results, Run};
use super::script::SETTLE_LIMIT;
use crate::bench::numbers::{count, dollars, float, median};

/// Names listed in a row of calls.
const NAMES_MAX: usize = 8;

/// The document.
///
/// # Errors
/// When a case cannot be read.
pub fn document(results: &Results) -> Result<String> {
    let head = format!(
        "# Live, side by side\n\nWritten by `make peer-live`; do not edit. Machine: {}. Commit: {}. \
         Karpenter is the published AWS controller, v{}; Longshore is `longshore up`, a {} build. \
         Runs of each contender in each case, by turns: {}; figures are medians.\n\n![Pods and prices over \
         time](live.svg)",
        results.machine,
        results.commit,
        crate::bench::report::part_version("karpenter"),
        if cfg!(debug_assertions) { "debug" } else { "release" },
        results.runs.iter().map(|run| run.number).max().unwrap_or_default(),
    );
    let burst = burst::svg(results).map(|_| BURST.to_owned());
    let parts = [Some(head), burst, Some(tables(results)?), Some(HOW.to_owned())];
    Ok(parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n") + "\n")
}

/// The tables of all cases.
///
/// # Errors
/// When a case cannot be read.
pub fn tables(results: &Results) -> Result<String> {
    let mut parts = Vec::new();
    for case in measured(results) {
        let case = cases::case(case)?;
        parts.push(format!("## {}\n\n{}.", case.name.text(), capital(case.about)));
        parts.extend(case.phases.iter().map(|phase| table(&case, phase.name, results)));
        parts.extend(failures(&case, results));
    }
    Ok(parts.join("\n\n"))
}

/// A phase in a line, for who waits.
#[must_use]
pub fn brief(played: &Played) -> String {
    let Played { span, figures, .. } = played;
    let settled = figures.settled_ms.map_or_else(|| "not settled".to_owned(), seconds);
    format!(
        "{}: CreateFleet {} to {}, goal {}, {}; settled {settled}, {}; {} evictions, {} launches, {} \
         writes, {:.1} s of processor time",
        span.name,
        figures.first_call_ms.map_or_else(dash, seconds),
        figures.last_call_ms.map_or_else(dash, seconds),
        goal(played),
        held(figures.at_goal),
        held(figures.at_end),
        figures.evictions,
        figures.launches,
        figures.writes[1],
        float(figures.cpu_ms[1]) / 1e3,
    )
}

const BURST: &str = "\
The burst of a hundred pods as a timeline, the middle run of each:

![Pods, claims, calls, nodes and evictions from the first of a hundred pods on](live-burst.svg)";

const HOW: &str = "\
## How it is measured

- Each run has a control plane of its own (etcd, kube-apiserver, kube-scheduler, kube-controller-manager, all \
real), a simulated region us-east-1 with EC2's wire protocol, and kubelets that join its instances. An instance \
runs 8 s after its launch, its Node is there and Ready 2 s later: a boot takes 10 s for everybody. One node of \
Fargate, which takes none of the pods, is there all the time: without any node kube-scheduler tries pods again ever \
more seldom, for 18 s in the end, and hides whatever the contender does.
- The contender is one process with every right on the cluster. A case begins when class and pool are Ready and \
it has asked nothing of AWS for 3 s but for messages; there is no pod to warm it up.
- The pool, unless a case says otherwise: linux on amd64, on demand, categories c, m and r, generation \
above 2, WhenEmptyOrUnderutilized, consolidateAfter 0s, a budget of 10 %.
- Times are read from watches of the cluster and from the region's own record; CreateFleet is counted from the \
first pod on. Settled is the last change of a pod, node, claim or instance, when none has followed for 30 s (45 s \
in `w2`, whose nodes stay for 30 s; 100 s in `hundred` and `perf-basic`, longer than Longshore leaves pods where they \
came first); it is given up 240 s after all pods run.
- Nodes are instances that are pending or running, and $/h is what they cost together at the region's prices, \
spot at spot prices.
- Writes are creates, updates, patches and deletes of anything but Leases and Events, refused ones included, by \
the audit log. Evictions are those that were granted, and pods that the contender deleted.
- Processor time and memory are the contender's process alone. Karpenter logs as its chart has it; its limit \
on requests to the API server is raised to 1,000 a second, so that it is not what is measured.

    make peer-live                      # everything; PEER_LIVE_ARGS=\"--cases one,hundred\" for less
    bench live --help";

fn measured(results: &Results) -> Vec<CaseName> {
    let mut names: Vec<CaseName> = results.runs.iter().map(|run| run.case).collect();
    names.dedup();
    names
}

fn runs_of<'a>(
    results: &'a Results,
    case: &'a Case,
    contender: Contender,
) -> impl Iterator<Item = &'a Run> {
    results.runs.iter().filter(move |run| run.case == case.name && run.contender == contender)
}

/// What each contender did in a phase.
fn table(case: &Case, phase: &str, results: &Results) -> String {
    let played = |contender| -> Vec<&Played> {
        let phases = runs_of(results, case, contender).flat_map(|run| &run.phases);
        phases.filter(|it| it.span.name == phase).collect()
    };
    let (ours, peers) = (played(Contender::Longshore), played(Contender::Karpenter));
    let head = format!("| {phase} | Longshore | Karpenter |\n|---|---:|---:|");
    let rows = ROWS.iter().map(|(name, cell)| {
        format!("| {name} | {} | {} |", shown(&ours, cell), shown(&peers, cell))
    });
    [head].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

fn shown(played: &[&Played], cell: &Cell) -> String {
    if played.is_empty() { dash() } else { cell(played) }
}

/// What stands in a row, made of all runs of one contender.
type Cell = fn(&[&Played]) -> String;

const ROWS: [(&str, Cell); 19] = [
    ("all pods run, s", |all| all_goals(all)),
    ("the same less boot, s", |all| middle(all, |it| it.goal_less_boot_ms.map(float), secs)),
    ("first CreateFleet, s", |all| middle(all, |it| it.first_call_ms.map(float), secs)),
    ("last CreateFleet until all run, s", |all| middle(all, |it| it.last_call_ms.map(float), secs)),
    ("calls of CreateFleet until all run", |all| number(all, |it| it.calls_to_goal)),
    ("nodes then", |all| number(all, |it| it.at_goal.instances)),
    ("$/h then", |all| middle(all, |it| Some(usd(it.at_goal)), price)),
    ("settled after, s", settled),
    ("nodes in the end", |all| number(all, |it| it.at_end.instances)),
    ("$/h in the end", |all| middle(all, |it| Some(usd(it.at_end)), price)),
    ("instances launched", |all| number(all, |it| it.launches)),
    ("evictions", |all| number(all, |it| it.evictions)),
    ("API writes until all run; in all", |all| {
        format!("{}; {}", number(all, |it| it.writes[0]), number(all, |it| it.writes[1]))
    }),
    ("API writes for each pod", writes_per_pod),
    ("Events written", |all| number(all, |it| it.events)),
    ("calls of AWS", |all| named(all, |it| &it.cloud)),
    ("requests to the API server", |all| named(all, |it| &it.api)),
    ("processor time until all run; in all, s", |all| {
        let of = |part: usize| middle(all, |it| Some(float(it.cpu_ms[part])), secs);
        format!("{}; {}", of(0), of(1))
    }),
    ("peak memory, MB", |all| {
        middle(all, |it| Some(float(it.peak_rss_bytes)), |it| format!("{:.0}", it / 1e6))
    }),
];

/// The median of those that have the figure; how many these are, where some have not.
fn middle(
    all: &[&Played],
    figure: impl Fn(&Figures) -> Option<f64>,
    text: impl Fn(f64) -> String,
) -> String {
    let found: Vec<f64> = all.iter().filter_map(|it| figure(&it.figures)).collect();
    match (found.len(), all.len()) {
        (0, _) => dash(),
        (some, all) if some < all => format!("{} ({some} of {all} runs)", text(median(&found))),
        _ => text(median(&found)),
    }
}

fn number(all: &[&Played], figure: impl Fn(&Figures) -> u64) -> String {
    middle(all, |it| Some(float(figure(it))), |it| format!("{it:.0}"))
}

/// How long it took, or how far it came.
fn all_goals(all: &[&Played]) -> String {
    let missed: Vec<String> =
        all.iter().filter(|it| it.figures.goal_ms.is_none()).map(|it| goal(it)).collect();
    let reached = middle(all, |it| it.goal_ms.map(float), secs);
    if missed.len() == all.len() { missed.join("; ") } else { reached }
}

fn goal(played: &Played) -> String {
    let Played { span, figures, .. } = played;
    let missed = || format!("not in {} s ({} of {})", span.limit_s, span.running, played.pods());
    figures.goal_ms.map_or_else(missed, seconds)
}

fn settled(all: &[&Played]) -> String {
    let reached = all.iter().any(|it| it.figures.goal_ms.is_some());
    if reached && all.iter().all(|it| it.figures.settled_ms.is_none()) {
        return format!("not {} s after they ran", SETTLE_LIMIT.as_secs());
    }
    middle(all, |it| it.settled_ms.map(float), secs)
}

fn writes_per_pod(all: &[&Played]) -> String {
    let pods = all.first().map_or(1, |it| it.pods().max(1));
    let each = |it: &Figures| Some(float(it.writes[1]) / float(count(pods)));
    middle(all, each, |it| format!("{it:.2}"))
}

/// The names of the middle run, the most frequent first.
fn named(all: &[&Played], of: impl Fn(&Figures) -> &BTreeMap<String, u64>) -> String {
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|it| it.figures.goal_ms.unwrap_or(u64::MAX));
    let Some(played) = sorted.get((sorted.len() - 1) / 2) else { return dash() };
    let found = of(&played.figures);
    let mut names: Vec<(&String, &u64)> = found.iter().collect();
    names.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
    let rest = names.len().saturating_sub(NAMES_MAX);
    let listed = names.iter().take(NAMES_MAX).map(|(name, number)| format!("{name} {number}"));
    let listed = listed.collect::<Vec<_>>().join(", ");
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}: {listed}{more}", found.values().sum::<u64>())
}

fn failures(case: &Case, results: &Results) -> Option<String> {
    let of_case = results.runs.iter().filter(|run| run.case == case.name);
    let told = of_case.filter_map(|run| {
        let error = run.error.as_ref()?.lines().next()?;
        Some(format!("- {}, run {}, failed: {error}", run.contender.text(), run.number))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("\n"))
}

fn held(capacity: Capacity) -> String {
    format!("{} nodes ${}", capacity.instances, price(usd(capacity)))
}

fn usd(capacity: Capacity) -> f64 {
    dollars(i64::try_from(capacity.micro_usd_per_hour).unwrap_or(i64::MAX))
}

fn price(usd: f64) -> String {
    if usd < 10.0 { format!("{usd:.4}") } else { format!("{usd:.2}") }
}

fn seconds(ms: u64) -> String {
    format!("{} s", secs(float(ms)))
}

fn secs(ms: f64) -> String {
    format!("{:.2}", ms / 1e3)
}

fn dash() -> String {
    "–".to_owned()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
