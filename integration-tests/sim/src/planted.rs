//! The defects that once were, and which seed finds each.
//!
//! Invariant: the list names every defect that the code can commit again (a test compares). A seed finds a
//! defect when it breaks a rule with it and none without; one that no seed finds fails the command.

use anyhow::Result;
use serde_json::json;

use crate::args::{How, Output};
use crate::children::{self, Going};
use crate::run::Outcome;

/// Names under which defects are planted, each with what it was.
pub const PLANTED: &[(&str, &str)] = &[
    ("S1", "directive ids begin anew in each session, and old answers are given to new directives"),
    ("S1a", "a view counts as settled at once after a snapshot"),
    ("S1b", "a session that follows another plans at once"),
    (
        "S2",
        "claims and instances that another autoscaler made count as gone or unowned by their age",
    ),
    ("S3", "what cannot be read counts as absent"),
    ("S3a", "a drain counts as done though a pod on the node cannot be read"),
    ("S3b", "a buffer whose reference cannot be read gives its room away"),
    ("S4", "one listing that lacks an instance ends it"),
    ("S5", "regions and clusters are keyed by name alone"),
    ("S6", "no breaker bounds what goes on absence alone"),
    ("S7", "an instance whose launch is recorded as failed cannot be ended"),
    ("S7a", "a launch is failed on an error of a repeated call"),
    ("S8", "a lost answer is followed by another token at once"),
    ("S8a", "a second instance of a launch is left alone"),
    (
        "S9",
        "a definite answer does not end its token; a deleted claim with a pending launch sends nothing",
    ),
    ("S9a", "launches have no deadline"),
    ("S10", "interruptions are read before the first listing and lost"),
    ("S11", "one bad instance blocks its batch of terminations"),
    ("S12", "a launch from a template that is gone calls without end"),
    ("S13", "one type's permanent error faults the whole class"),
    ("S13a", "one failed look-up empties a class"),
    ("S13b", "a class that AWS did not answer about fails launches for good"),
    ("S13c", "a profile that EC2 has not learned of fails launches for good"),
    ("S14", "clusters never leave the ledger"),
    ("S14a", "old catalogues stay in memory"),
    ("S15", "a sleeping launch holds its slot"),
    ("S15a", "clusters do not take turns for slots"),
    ("S16", "a refused plan is dropped whole"),
    ("S16a", "the bound takes an absent label for allowed"),
    ("S16b", "planner and check count a pool's limit differently"),
    ("S16c", "planner and check spend disruption budgets in different orders"),
    ("S16d", "a DaemonSet that selects karpenter.sh/initialized is reserved by the check only"),
    ("S16e", "a DaemonSet of only some outcomes of a claim is reserved for none"),
    ("S16f", "replicas are launched below minValues"),
    ("S16g", "the bound ignores labels that a pool leaves open"),
    ("S17", "disruptions run on the view they were decided on"),
    ("S17a", "a disruption that failed half-way leaves its taint for good"),
    ("S18", "half-started nodes, replacements and broken classes are waited for without end"),
    ("S19", "DaemonSets leave negative room"),
    ("S20", "a failed task keeps the leadership"),
    ("S20a", "a task that panics is started again with what it broke"),
    ("S20s", "a planner that panicked is not asked again"),
    ("S21", "what etcd refuses for good counts as out of reach"),
    ("S21a", "a cluster's record over the store's size is tried without end"),
    ("S22", "a Lease is over by another host's clock"),
    ("S22a", "writes go on without the Lease"),
    ("S22b", "calls of the API server have no end"),
    ("S23", "plans and directives expire by other hosts' clocks"),
    ("S23a", "a pod counts as stuck by another host's clock"),
    ("S24", "cluster facts are read once"),
    ("S25", "deletions wait behind registrations"),
    ("S25s", "what is urgent waits behind a plan that fills the stream"),
    ("S26", "any region's change wakes every session"),
    ("S27", "tables fed from outside have no bound"),
    ("S28", "sessions stay where they landed"),
    ("S29", "failed dispatches are tried without growth; a pool that goes still launches"),
    ("S29a", "planned pods of a failed create stay planned"),
    ("S31", "a fresh node is emptied before the pods that are promised to it arrive"),
    ("S32", "what was just moved is moved again for any saving"),
];

/// Looks for each planted defect; the number of those that were not found.
///
/// # Errors
/// When a child cannot be started.
#[allow(clippy::print_stdout, reason = "the report is what the command is for")]
pub fn find(
    within: u64,
    only: &[String],
    how: &How,
    (output, jobs): (Output, usize),
) -> Result<usize> {
    let mut rows = Vec::new();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    for (name, what) in PLANTED.iter().filter(|(name, _)| wanted(name)) {
        let found = first_seed(name, within, how, jobs)?;
        let first =
            found.as_ref().and_then(|outcome| Some((outcome.seed, outcome.violations.first()?)));
        if output == Output::Text {
            println!(
                "{}",
                match &first {
                    Some((seed, broken)) => format!("{name}: seed {seed}: {}: {what}", broken.rule),
                    None => format!("{name}: not found within {within} seeds: {what}"),
                }
            );
        }
        rows.push(json!({
            "name": name,
            "what": what,
            "seed": first.as_ref().map(|(seed, _)| seed),
            "rule": first.as_ref().map(|(_, broken)| &broken.rule),
        }));
    }
    let missing = rows.iter().filter(|row| row["seed"].is_null()).count();
    if output == Output::Json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(missing)
}

/// The first seed that breaks a rule with a defect planted and none without it.
fn first_seed(name: &str, within: u64, how: &How, jobs: usize) -> Result<Option<Outcome>> {
    let mut planted = how.clone();
    planted.plant.push(name.to_owned());
    let seeds: Vec<u64> = (0..within).collect();
    for seeds in seeds.chunks(jobs.max(1)) {
        let mut broken = Vec::new();
        children::run(seeds.iter().copied(), &planted, jobs, |outcome| {
            broken.extend((!outcome.violations.is_empty()).then(|| outcome.clone()));
            Going::On
        })?;
        for outcome in broken {
            let mut innocent = false;
            children::run([outcome.seed], how, 1, |without| {
                innocent = without.violations.is_empty();
                Going::On
            })?;
            if innocent {
                return Ok(Some(outcome));
            }
        }
    }
    Ok(None)
}
