//! Runs of cases by turns, and the documents made of them.
//!
//! Invariant: a run that fails is written down as one and stops nothing; documents are complete
//! after each.

mod kept;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

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
use crate::stage::hands;
use kept::Kept;

/// Measures everything that is asked for, and writes it down after each run, beside what is kept of
/// other cases.
///
/// # Errors
/// When a document cannot be written.
pub async fn all(args: &LiveArgs, names: &[CaseName]) -> Result<Results> {
    let (commit, machine) = (machine::commit(), machine::describe());
    let mut results = kept_of(args, machine);
    for turn in turns(args, names) {
        let (name, number, contender) = turn;
        let dir = dir(args, turn);
        let title = format!("{}, {}, run {number}", name.text(), contender.text());
        let same = |run: &&Run| run.turn() == turn && run.commit == commit;
        let kept = results.runs.iter().find(same).filter(|_| args.resume);
        tell(&format!("{title}{}", if kept.is_some() { ": kept" } else { "" }));
        let run = match kept {
            Some(run) => run.clone(),
            None => {
                let begun = Run::begun(turn, &commit);
                Box::pin(new(&cases::case(name)?, begun, &dir, &results)).await?
            }
        };
        run.phases.iter().for_each(|played| tell(&format!("  {}", report::brief(played))));
        results.put(run);
        write(&results, args)?;
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

/// Who is measured when: the contenders by turns, in each case as often as is asked for or of use.
fn turns(args: &LiveArgs, names: &[CaseName]) -> impl Iterator<Item = Turn> {
    let runs = |name: CaseName| if name.is_upkeep() { 1 } else { args.runs };
    let each = move |name: CaseName| (1..=runs(name)).map(move |number| (name, number));
    let of = |(name, number)| args.contenders.iter().map(move |it| (name, number, *it));
    names.iter().copied().flat_map(each).flat_map(of)
}

/// Where a run is kept.
fn dir(args: &LiveArgs, (name, number, contender): Turn) -> PathBuf {
    args.keep.join(format!("{}-{}-{number}", name.text(), contender.text()))
}

/// One run, whose outcome is kept however it ends.
async fn new(case: &Case, mut run: Run, dir: &Path, results: &Results) -> Result<Run> {
    if let Err(error) = Box::pin(measure(case, &mut run, dir)).await {
        tell(&format!("  failed: {error:#}; logs: {}", dir.display()));
        run.error = Some(format!("{error:#}"));
    }
    let kept = Kept { machine: results.machine.clone(), run };
    kept::keep(dir, &kept)?;
    Ok(kept.run)
}

/// One run in a world of its own, whose logs are kept however it ends.
async fn measure(case: &Case, run: &mut Run, dir: &Path) -> Result<()> {
    if dir.exists() {
        std::fs::remove_dir_all(dir)?;
    }
    let world = World::start(dir).await?;
    let outcome = measured(case, run, &world).await;
    world.keep_logs()?;
    outcome
}

async fn measured(case: &Case, run: &mut Run, world: &World) -> Result<()> {
    let mut contender = Running::start(run.contender, world, case.repairs).await?;
    hands::apply(&world.client, &case.supply).await?;
    world.settled().await?;
    let recorder = Recorder::start(&world.client, &world.region);
    let mut course = Course::default();
    let outcome = Box::pin(play(case, world, &recorder, &mut contender, &mut course)).await;
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
