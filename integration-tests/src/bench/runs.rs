//! Runs of one row of the tables: both sides by turns, each run in a process of its own.
//!
//! Invariant: the sides alternate, so that what else the machine does meets both.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

use super::args::Effort;
use super::catalogues::Pool;
use super::numbers::median;
use super::outcome::Outcome;
use super::workloads::{self, Content};

/// What the system's `timeout` ends with when it had to act.
const TIMED_OUT: i32 = 124;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Most runs of a side in a row.
    pub runs: usize,
    /// A side that has run for so long in a row is not started again.
    pub enough: Duration,
    /// A run that takes longer is given up.
    pub limit: Duration,
}

/// What is measured in one row.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name of the workload.
    pub workload: &'static str,
    /// What it is bought from.
    pub pool: Pool,
    /// Whether the peer is asked.
    pub peer: bool,
}

/// What one side did in a row.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Number of runs.
    pub runs: usize,
    /// The middle of them; none when a run was given up.
    pub outcome: Option<Outcome>,
    /// Time of the decision, in seconds; when a run was given up, the time after which it was.
    pub seconds: f64,
}

/// What was measured in a row.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is.
    pub case: Case,
    /// Ours at the least effort: the first plan.
    pub first: Side,
    /// Ours at default effort.
    pub ours: Side,
    /// Ours at the greatest effort, once; without a run where the default was given up.
    pub best: Side,
    /// The peer's; without a run where it was not asked.
    pub peer: Side,
}

impl Row {
    /// How often the default effort fits into the time of the peer's plan; none without a peer.
    #[must_use]
    pub fn speed_up(&self) -> Option<f64> {
        self.speed_up_of(&self.ours)
    }

    /// The same of our first plan.
    #[must_use]
    pub fn first_speed_up(&self) -> Option<f64> {
        self.speed_up_of(&self.first)
    }

    fn speed_up_of(&self, side: &Side) -> Option<f64> {
        (self.peer.runs > 0).then(|| self.peer.seconds / side.seconds)
    }

    /// Our price as a share of the peer's, where both place all pods.
    #[must_use]
    pub fn price_ratio(&self) -> Option<f64> {
        let (ours, peer) = (self.ours.outcome.as_ref()?, self.peer.outcome.as_ref()?);
        let comparable = ours.placed == peer.placed && peer.price_usd_per_hour > 0.0;
        comparable.then(|| ours.price_usd_per_hour / peer.price_usd_per_hour)
    }

    /// Our price as a multiple of the bound.
    #[must_use]
    pub fn over_bound(&self) -> Option<f64> {
        let ours = self.ours.outcome.as_ref()?;
        let bound = ours.lower_bound_usd_per_hour.filter(|bound| *bound > 0.0)?;
        Some(ours.price_usd_per_hour / bound)
    }
}

/// Measures a row. The files are written into `dir`.
///
/// # Errors
/// When a side fails.
pub fn measure(case: Case, pace: Pace, dir: &Path) -> Result<Row> {
    let files = files(case, dir)?;
    let [mut first, mut ours] = [(); 2].map(|()| Runs::new("pack", true, pace));
    let mut peer = Runs::new("peer", case.peer, pace);
    while first.open || ours.open || peer.open {
        first.once(&files, Effort::Greedy)?;
        ours.once(&files, Effort::Default)?;
        peer.once(&files, Effort::Default)?;
    }
    let mut best = Runs::new("pack", !ours.given_up, Pace { runs: 1, ..pace });
    best.once(&files, Effort::Max)?;
    Ok(Row { case, first: first.side(), ours: ours.side(), best: best.side(), peer: peer.side() })
}

/// Runs of one side.
struct Runs {
    command: &'static str,
    pace: Pace,
    done: Vec<Outcome>,
    spent: Duration,
    given_up: bool,
    open: bool,
}

impl Runs {
    const fn new(command: &'static str, open: bool, pace: Pace) -> Self {
        Self { command, pace, done: Vec::new(), spent: Duration::ZERO, given_up: false, open }
    }

    fn once(&mut self, files: &[String], effort: Effort) -> Result<()> {
        if !self.open {
            return Ok(());
        }
        let started = Instant::now();
        let mut args = vec![self.command.to_owned()];
        args.extend_from_slice(files);
        args.extend(["--effort".to_owned(), effort.name().to_owned()]);
        match answer(&args, self.pace.limit)? {
            Some(outcome) => self.done.push(outcome),
            None => self.given_up = true,
        }
        self.spent += started.elapsed();
        let more = self.done.len() < self.pace.runs && self.spent < self.pace.enough;
        self.open = more && !self.given_up;
        Ok(())
    }

    fn side(self) -> Side {
        let runs = self.done.len() + usize::from(self.given_up);
        let outcome = (!self.given_up && runs > 0).then(|| middle(&self.done));
        let limit = self.pace.limit.as_secs_f64();
        let seconds = outcome.as_ref().map_or(limit, |outcome| outcome.plan_seconds);
        Side { runs, outcome, seconds }
    }
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

/// What this program answers when it is started anew; none when that takes longer than the limit.
///
/// # Errors
/// When it cannot be started, fails or says something else.
pub fn answer<T: DeserializeOwned>(args: &[String], limit: Duration) -> Result<Option<T>> {
    let own = std::env::current_exe().context("cannot tell where the running program is")?;
    let seconds = limit.as_secs().to_string();
    let output = Command::new("timeout").arg(seconds).arg(own).args(args).output()?;
    if output.status.code() == Some(TIMED_OUT) {
        return Ok(None);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "bench {}: {}", args.join(" "), error.trim());
    Ok(Some(serde_json::from_slice(&output.stdout)?))
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
