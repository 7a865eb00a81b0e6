//! Runs of one row of the tables: both sides by turns, each run in a process of its own.
//!
//! Invariant: the sides alternate, so that what else the machine does meets both.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

use super::args::Effort;
use super::catalogues::Pool;
use super::numbers::median;
use super::outcome::Outcome;
use super::workloads::{self, Content};

/// What is measured in one row.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name of the workload.
    pub workload: &'static str,
    /// What it is bought from.
    pub pool: Pool,
    /// Runs of ours.
    pub ours: usize,
    /// Runs of the peer; none where it is not asked.
    pub peer: usize,
}

/// What was measured in it.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is.
    pub case: Case,
    /// Ours at default effort.
    pub ours: Outcome,
    /// Ours at the greatest effort, once.
    pub best: Outcome,
    /// The peer's.
    pub peer: Option<Outcome>,
}

impl Row {
    /// Ours in the time of the peer's; none without a peer.
    #[must_use]
    pub fn speed_up(&self) -> Option<f64> {
        Some(self.peer.as_ref()?.plan_seconds / self.ours.plan_seconds)
    }

    /// Our price as a share of the peer's.
    #[must_use]
    pub fn price_ratio(&self) -> Option<f64> {
        let peer = self.peer.as_ref().filter(|peer| peer.price_usd_per_hour > 0.0)?;
        Some(self.ours.price_usd_per_hour / peer.price_usd_per_hour)
    }

    /// Our price as a multiple of the bound.
    #[must_use]
    pub fn over_bound(&self) -> Option<f64> {
        let bound = self.ours.lower_bound_usd_per_hour.filter(|bound| *bound > 0.0)?;
        Some(self.ours.price_usd_per_hour / bound)
    }
}

/// Measures a row. The files are written into `dir`.
///
/// # Errors
/// When a side fails.
pub fn measure(case: Case, dir: &Path) -> Result<Row> {
    let files = files(case, dir)?;
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for turn in 0..case.ours.max(case.peer) {
        if turn < case.ours {
            ours.push(child("pack", &files, Effort::Default)?);
        }
        if turn < case.peer {
            peer.push(child("peer", &files, Effort::Default)?);
        }
    }
    let best = child("pack", &files, Effort::Max)?;
    Ok(Row { case, ours: middle(&ours), best, peer: (!peer.is_empty()).then(|| middle(&peer)) })
}

fn files(case: Case, dir: &Path) -> Result<Vec<String>> {
    let text = |path: std::path::PathBuf| path.display().to_string();
    let catalogue = text(workloads::write_catalogue(case.pool, dir)?);
    let workload = text(workloads::write(case.workload, dir)?);
    let flag = match workloads::named(case.workload)? {
        Content::Rows(_) => "--workload",
        Content::Manifests(_) => "--filename",
    };
    let mut all = vec!["--catalogue".to_owned(), catalogue, flag.to_owned(), workload];
    if let Some(most) = case.pool.max_cpu_milli() {
        all.extend(["--max-cpu-milli".to_owned(), most.to_string()]);
    }
    if let Some(set) = case.pool.daemon_set() {
        let requests = format!("{},{}", set.cpu_millis, set.memory_mib);
        all.extend(["--daemonset".to_owned(), requests]);
    }
    Ok(all)
}

fn child(command: &str, files: &[String], effort: Effort) -> Result<Outcome> {
    let mut args = vec![command.to_owned()];
    args.extend_from_slice(files);
    args.extend(["--effort".to_owned(), effort.name().to_owned()]);
    answer(&args)
}

/// What this program answers when it is started anew.
///
/// # Errors
/// When it cannot be started, fails or says something else.
pub fn answer<T: DeserializeOwned>(args: &[String]) -> Result<T> {
    let own = std::env::current_exe().context("cannot tell where the running program is")?;
    let output = Command::new(own).args(args).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "bench {}: {}", args.join(" "), error.trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The first run, with the middle of what differs from run to run.
fn middle(runs: &[Outcome]) -> Outcome {
    let whole = |of: fn(&Outcome) -> u64| {
        let mut all: Vec<u64> = runs.iter().map(of).collect();
        all.sort_unstable();
        all.get(all.len().saturating_sub(1) / 2).copied().unwrap_or_default()
    };
    let of = |of: fn(&Outcome) -> f64| median(&runs.iter().map(of).collect::<Vec<_>>());
    Outcome {
        plan_seconds: of(|run| run.plan_seconds),
        price_usd_per_hour: of(|run| run.price_usd_per_hour),
        nodes: whole(|run| run.nodes),
        peak_rss_bytes: whole(|run| run.peak_rss_bytes),
        allocated_bytes: whole(|run| run.allocated_bytes),
        ..runs.first().cloned().unwrap_or_default()
    }
}
