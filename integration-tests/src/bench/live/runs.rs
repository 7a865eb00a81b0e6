//! Runs of cases by turns, and the documents made of them.
//!
//! Invariant: a run that fails is written down as one and stops nothing; documents are complete
//! after each. However many runs are made at once, no two of them start, or are at the beginning of
//! their case, at the same time.

mod kept;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, future, stream};
use tokio::sync::{Mutex, MutexGuard};

use super::args::{CaseName, LiveArgs};
use super::cases::{self, Case};
use super::contender::Running;
use super::figures::{Played, figures};
use super::recorder::{Recorder, calls};
use super::report::{self, burst, chart};
use super::results::{Results, Run, Turn};
use super::script::{Course, Span, play};
use super::world::World;
use crate::bench::{machine, tell};
use crate::parts::ControlPlane;
use crate::stage::hands;
use kept::Kept;

/// Measures everything that is asked for, and writes it down after each run, beside what is kept of
/// other cases. Runs of a case that mostly waits are made at once.
///
/// # Errors
/// When a document cannot be written.
pub async fn all(args: &LiveArgs, names: &[CaseName]) -> Result<Results> {
    let mut results = kept_of(args, machine::describe());
    let known = results.clone();
    let entrance = Mutex::new(());
    let begun = Begun { args, known: &known, commit: machine::commit(), entrance };
    for name in names {
        let case = cases::case(*name)?;
        let turns = turns(args, *name);
        let at_once = if case.waits { turns.len() } else { 1 };
        if at_once > 1 {
            ControlPlane::admit_more(at_once);
        }
        let runs = stream::iter(turns).map(|turn| begun.run(&case, turn)).buffer_unordered(at_once);
        let mut runs = std::pin::pin!(runs);
        while let Some(run) = runs.next().await {
            results.put(run?);
            write(&results, args)?;
        }
    }
    Ok(results)
}

/// Writes the documents of runs that are kept, and measures nothing.
///
/// # Errors
/// When none is kept, or a document cannot be written.
pub fn rewritten(args: &LiveArgs) -> Result<Results> {
    let first = kept::all(&args.keep).into_iter().next().with_context(|| {
        format!("no run is kept in {}: measure without --rewrite", args.keep.display())
    })?;
    let results = kept_of(args, first.machine);
    write(&results, args)?;
    Ok(results)
}

/// What is kept that was measured on a machine.
fn kept_of(args: &LiveArgs, machine: String) -> Results {
    let kept = kept::all(&args.keep).into_iter().filter(|kept| kept.machine == machine);
    let runs = kept.map(|kept| kept.run).collect();
    Results { machine, runs }
}

/// Who is measured when: the contenders by turns.
fn turns(args: &LiveArgs, name: CaseName) -> Vec<Turn> {
    let of = |number| args.contenders.iter().map(move |it| (name, number, *it));
    (1..=args.runs).flat_map(of).collect()
}

/// Where a run is kept.
fn dir(args: &LiveArgs, (name, number, contender): Turn) -> PathBuf {
    args.keep.join(format!("{}-{}-{number}", name.text(), contender.text()))
}

/// How long after the beginning of its case, when both contenders have long bought what they buy
/// first, a run that waits shares the machine with the start of another.
const APART: Duration = Duration::from_secs(45);

/// What was known when measuring began.
struct Begun<'b> {
    args: &'b LiveArgs,
    known: &'b Results,
    commit: String,
    /// Held by the run that starts.
    entrance: Mutex<()>,
}

impl Begun<'_> {
    /// One run, unless it is kept and may be taken as it is.
    async fn run(&self, case: &Case, turn: Turn) -> Result<Run> {
        let (name, number, contender) = turn;
        let title = format!("{}, {}, run {number}", name.text(), contender.text());
        let same = |run: &&Run| run.turn() == turn && run.commit == self.commit;
        let kept = self.known.runs.iter().find(same).filter(|_| self.args.resume);
        if kept.is_some() {
            tell(&format!("{title}: kept"));
        }
        let run = match kept {
            Some(run) => run.clone(),
            None => Box::pin(self.anew(case, turn, &title)).await?,
        };
        for played in &run.phases {
            tell(&format!("  {title}: {}", report::brief(played)));
        }
        Ok(run)
    }

    /// A new run, whose outcome is kept however it ends.
    async fn anew(&self, case: &Case, turn: Turn, title: &str) -> Result<Run> {
        let dir = dir(self.args, turn);
        let mut run = Run::begun(turn, &self.commit);
        let entered = self.entrance.lock().await;
        tell(title);
        if let Err(error) = Box::pin(measure(case, &mut run, &dir, entered)).await {
            tell(&format!("  {title}: failed: {error:#}; logs: {}", dir.display()));
            run.error = Some(format!("{error:#}"));
        }
        let kept = Kept { machine: self.known.machine.clone(), run };
        kept::keep(&dir, &kept)?;
        Ok(kept.run)
    }
}

/// One run in a world of its own, whose logs are kept however it ends.
async fn measure(
    case: &Case,
    run: &mut Run,
    dir: &Path,
    entered: MutexGuard<'_, ()>,
) -> Result<()> {
    if dir.exists() {
        std::fs::remove_dir_all(dir)?;
    }
    let world = World::start(dir).await?;
    let outcome = measured(case, run, &world, entered).await;
    world.keep_logs()?;
    outcome
}

async fn measured(
    case: &Case,
    run: &mut Run,
    world: &World,
    entered: MutexGuard<'_, ()>,
) -> Result<()> {
    let mut contender = Running::start(run.contender, world, case.repairs).await?;
    hands::apply(&world.client, &case.supply).await?;
    world.settled().await?;
    let recorder = Recorder::start(&world.client, &world.region);
    let mut course = Course::default();
    let playing = Box::pin(play(case, world, &recorder, &mut contender, &mut course));
    let apart = if case.waits { APART } else { Duration::ZERO };
    let (outcome, ()) = future::join(playing, leave(entered, apart)).await;
    // What it does while it ends is no part of a phase.
    let outcome = outcome.and(contender.stop().await);
    calls::written(&world.audit_log).await?;
    run.marks = recorder.marks()?;
    run.marks.extend(calls::cloud(&world.region.calls(), recorder.clock));
    run.marks.extend(calls::api(&world.audit_log, recorder.clock)?);
    run.marks.sort_by_key(|mark| mark.at_ms);
    run.phases = course.spans.into_iter().map(|span| played(run, span)).collect();
    run.told = course.told;
    outcome
}

/// Lets the next run start, after a while.
async fn leave(entered: MutexGuard<'_, ()>, after: Duration) {
    tokio::time::sleep(after).await;
    drop(entered);
}

fn played(run: &Run, span: Span) -> Played {
    Played { contender: run.contender, figures: figures(&run.marks, &span), span }
}

fn write(results: &Results, args: &LiveArgs) -> Result<()> {
    std::fs::create_dir_all(&args.out)?;
    std::fs::write(args.out.join("live.md"), report::document(results)?)?;
    std::fs::write(args.out.join("live.svg"), chart::svg(results))?;
    if let Some(drawn) = burst::svg(results) {
        std::fs::write(args.out.join("live-burst.svg"), drawn)?;
    }
    std::fs::write(args.keep.join("runs.json"), serde_json::to_vec_pretty(results)?)?;
    Ok(())
}
