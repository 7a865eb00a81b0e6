//! Runs of cases by turns, and the documents made of them.
//!
//! Invariant: a run that fails is written down as one and stops nothing; documents are complete
//! after each.

mod kept;

use std::path::Path;

use anyhow::Result;

use super::args::{CaseName, Contender, LiveArgs};
use super::cases::{self, Case};
use super::contender::Running;
use super::figures::{Played, figures};
use super::recorder::{Recorder, calls};
use super::report::{self, burst, chart};
use super::results::{Results, Run};
use super::script::{Span, play};
use super::world::World;
use crate::bench::{machine, tell};
use crate::stage::hands;

/// Measures everything that is asked for, and writes it down after each run.
///
/// # Errors
/// When a document cannot be written.
pub async fn all(args: &LiveArgs, names: &[CaseName]) -> Result<Results> {
    let (commit, machine) = (machine::commit(), machine::describe());
    let mut results = Results { commit, machine, runs: Vec::new() };
    for name in names {
        let case = cases::case(*name)?;
        for number in 1..=args.runs {
            for contender in &args.contenders {
                let dir = args.keep.join(format!("{}-{}-{number}", name.text(), contender.text()));
                let title = format!("{}, {}, run {number}", name.text(), contender.text());
                let kept = args.resume.then(|| kept::find(&dir, &results)).flatten();
                tell(&format!("{title}{}", if kept.is_some() { ": kept" } else { "" }));
                let run = match kept {
                    Some(run) => run,
                    None => Box::pin(new(&case, (*contender, number), &dir, &results)).await?,
                };
                run.phases.iter().for_each(|played| tell(&format!("  {}", report::brief(played))));
                results.runs.push(run);
                write(&results, args)?;
            }
        }
    }
    Ok(results)
}

/// One run, whose outcome is kept however it ends.
async fn new(
    case: &Case,
    (contender, number): (Contender, u32),
    dir: &Path,
    results: &Results,
) -> Result<Run> {
    let (phases, marks) = (Vec::new(), Vec::new());
    let mut run = Run { case: case.name, contender, number, phases, error: None, marks };
    if let Err(error) = Box::pin(measure(case, &mut run, dir)).await {
        tell(&format!("  failed: {error:#}; logs: {}", dir.display()));
        run.error = Some(format!("{error:#}"));
    }
    kept::keep(dir, &run, results)?;
    Ok(run)
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
    let mut contender = Running::start(run.contender, world).await?;
    hands::apply(&world.client, &case.supply).await?;
    world.settled().await?;
    let recorder = Recorder::start(&world.client, &world.region);
    let mut spans = Vec::new();
    let outcome = Box::pin(play(case, world, &recorder, &mut contender, &mut spans)).await;
    // What it does while it ends is no part of a phase.
    let outcome = outcome.and(contender.stop().await);
    calls::written(&world.audit_log).await?;
    run.marks = recorder.marks()?;
    run.marks.extend(calls::cloud(&world.region.calls(), recorder.clock));
    run.marks.extend(calls::api(&world.audit_log, recorder.clock)?);
    run.marks.sort_by_key(|mark| mark.at_ms);
    run.phases = spans.into_iter().map(|span| played(run, span)).collect();
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
