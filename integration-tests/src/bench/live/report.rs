//! docs/live/README.md: what was measured live, on what, and how.
//!
//! Invariant: each figure is the median of the runs that have it; what was not reached is said
//! where its figure would stand. Losses are in the same tables as wins, and in one of their own.

pub mod burst;
pub mod chart;
mod losses;
mod rows;
mod told;

use anyhow::Result;

use super::args::{CaseName, Contender};
use super::cases::{self, Case};
use super::figures::Played;
use super::results::{Origin, Results};
use rows::{ROWS, Row, TEXTS};

pub use rows::brief;

/// The document.
///
/// # Errors
/// When a case cannot be read.
pub fn document(results: &Results) -> Result<String> {
    let head = format!(
        "# Live, side by side\n\nWritten by `make peer-live`; do not edit. {}. \
         Karpenter is the published AWS controller, v{}; Longshore is `longshore up`. \
         Runs of each contender in each case, by turns: {}, from `rollout` on one; figures are \
         medians.",
        origins(results),
        crate::bench::report::part_version("karpenter"),
        results.runs.iter().map(|run| run.number).max().unwrap_or_default(),
    );
    let burst = results.cases().contains(&burst::CASE).then(|| BURST.to_owned());
    let phases = phases(results)?;
    let (glance, lost) = (at_a_glance(&phases), losses::section(&phases));
    let cases = tables(results, Pictures::Linked)?;
    let parts = [Some(head), Some(glance), burst, Some(lost), Some(cases), Some(HOW.to_owned())];
    Ok(parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n") + "\n")
}

/// What was measured and where: one commit on one machine, or which cases of which on which.
fn origins(results: &Results) -> String {
    let found = results.origins();
    let build = |origin: &Origin| if origin.release { "release" } else { "debug" };
    if let [(origin, _)] = &found[..] {
        let (Origin { commit, machine, .. }, build) = (origin, build(origin));
        return format!("Machine: {machine}. Commit: {commit}, a {build} build");
    }
    let of = |(origin, cases): &(&Origin, Vec<CaseName>)| {
        let (Origin { commit, machine, .. }, build) = (origin, build(origin));
        let cases: Vec<String> = cases.iter().map(|case| case.text()).collect();
        format!("{}: {commit}, a {build} build, on {machine}", cases.join(", "))
    };
    format!("Measured: {}", found.iter().map(of).collect::<Vec<_>>().join("; "))
}

/// The rows that matter most, of all phases in one table: Longshore's and, behind it, Karpenter's.
fn at_a_glance(phases: &[Phase<'_>]) -> String {
    let columns: Vec<(&Row, &str)> =
        ROWS.iter().filter_map(|row| Some((row, row.headline?))).collect();
    let titles: Vec<&str> = columns.iter().map(|(_, title)| *title).collect();
    let line = |phase: &Phase<'_>| {
        let cells = columns.iter().map(|(row, _)| {
            format!("{} / {}", row.figure_of(&phase.ours), row.figure_of(&phase.peers))
        });
        let cells: Vec<String> = cells.collect();
        format!("| {}, {} | {} |", phase.case.name.text(), phase.name, cells.join(" | "))
    };
    let lines: Vec<String> = phases.iter().map(line).collect();
    let (titles, rule) = (titles.join(" | "), "---:|".repeat(columns.len()));
    format!(
        "Longshore / Karpenter, the rows that matter most:\n\n| case, phase | {titles} \
         |\n|---|{rule}\n{}",
        lines.join("\n")
    )
}

/// Whether tables name the charts beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pictures {
    /// In a document, where they are seen.
    Linked,
    /// In a terminal.
    None,
}

/// The tables of all cases.
///
/// # Errors
/// When a case cannot be read.
pub fn tables(results: &Results, pictures: Pictures) -> Result<String> {
    let (phases, mut parts) = (phases(results)?, Vec::new());
    for phases in phases.chunk_by(|one, next| one.case.name == next.case.name) {
        let Some(Phase { case, .. }) = phases.first() else { continue };
        let name = case.name.text();
        parts.push(format!("## {name}\n\n{}.", capital(case.about)));
        let picture = (pictures == Pictures::Linked)
            .then(|| format!("![Pods and prices over time]({name}.svg)"));
        parts.extend(picture);
        parts.extend(phases.iter().map(table));
        parts.extend(told::lists(case.name, results));
        parts.extend(failures(case.name, results));
    }
    Ok(parts.join("\n\n"))
}

const BURST: &str = "\
The burst of a hundred pods as a timeline, the middle run of each:

![Pods, claims, calls, nodes and evictions from the first of a hundred pods on](burst.svg)";

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
in `w2-example`, whose nodes stay for 30 s; 100 s in `hundred` and `perf-basic`, longer than Longshore leaves pods where they \
came first); it is given up 240 s after all pods run.
- Nodes are instances that are pending or running, and $/h is what they cost together at the region's prices, \
spot at spot prices.
- Writes are creates, updates, patches and deletes of anything but Leases and Events, refused ones included, by \
the audit log. Evictions are those that were granted, and pods that the contender deleted.
- Where nodes have to go, all pods run only once these nodes are gone as well. A phase that lasts a fixed time has \
no such row. Pods away are those of the workload that do not run, the most at one moment, less those that their \
PodDisruptionBudget allows to be away.
- What was told is what the contender's Events and its objects' conditions say, each text once; names are left \
out.
- Processor time and memory are the contender's process alone. Karpenter logs as its chart has it; its limit \
on requests to the API server is raised to 1,000 a second, so that it is not what is measured.

    make peer-live                      # everything; PEER_LIVE_ARGS=\"--cases one,hundred\" for less
    bench live --help";

/// A phase of a case, and who played it.
struct Phase<'r> {
    case: Case,
    name: &'static str,
    ours: Vec<&'r Played>,
    peers: Vec<&'r Played>,
}

/// The phases of all cases that were measured, in order.
fn phases(results: &Results) -> Result<Vec<Phase<'_>>> {
    let mut found = Vec::new();
    for case in results.cases() {
        let case = cases::case(case)?;
        for phase in &case.phases {
            let played = |contender| played(results, (case.name, phase.name), contender);
            let (ours, peers) = (played(Contender::Longshore), played(Contender::Karpenter));
            found.push(Phase { case: case.clone(), name: phase.name, ours, peers });
        }
    }
    Ok(found)
}

fn played<'r>(
    results: &'r Results,
    (case, phase): (CaseName, &str),
    contender: Contender,
) -> Vec<&'r Played> {
    let runs = results.runs.iter().filter(|run| run.case == case && run.contender == contender);
    runs.flat_map(|run| &run.phases).filter(|it| it.span.name == phase).collect()
}

/// What each contender did in a phase.
fn table(phase: &Phase<'_>) -> String {
    let line = |name: &str, [ours, peers]: [String; 2]| format!("| {name} | {ours} | {peers} |");
    let both = [&phase.ours, &phase.peers];
    let head = format!("| {} | Longshore | Karpenter |\n|---|---:|---:|", phase.name);
    let shown = ROWS.iter().filter(|row| both.iter().any(|all| row.is_shown(all)));
    let figures = shown.map(|row| line(row.name, both.map(|all| row.cell(all))));
    let texts = TEXTS.iter().map(|(name, cell)| line(name, both.map(|all| cell(all))));
    [head].into_iter().chain(figures).chain(texts).collect::<Vec<_>>().join("\n")
}

fn failures(case: CaseName, results: &Results) -> Option<String> {
    let of_case = results.runs.iter().filter(|run| run.case == case);
    let told = of_case.filter_map(|run| {
        let error = run.error.as_ref()?.lines().next()?;
        Some(format!("- {}, run {}, failed: {error}", run.contender.text(), run.number))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("\n"))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
