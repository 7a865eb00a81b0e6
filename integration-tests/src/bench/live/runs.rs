//! Runs of cases by turns, and the documents made of them.
//!
//! Invariant: a run that fails is written down as one and stops nothing; documents are complete
//! after each.

mod kept;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::args::{CaseName, LiveArgs};
use super::cases::{self, Case};
use super::contender::Running;
use super::figures::{Played, figures};
use super::recorder::{Recorder, calls};
use super::report::{self, burst, chart};
use super::results::{Origin, Results, Run, Turn};
use super::script::{Course, Span, play};
use super::world::World;
use crate::bench::tell;
use crate::stage::hands;

/// The document.
pub const DOCUMENT: &str = "README.md";
/// The figures of all runs.
const FIGURES: &str = "runs.json";

/// Measures everything that is asked for, and writes it down after each run, beside what is known
/// of other cases.
///
/// # Errors
/// When a document cannot be written.
pub async fn all(args: &LiveArgs, names: &[CaseName]) -> Result<Results> {
    let origin = Origin::here();
    let mut results = known(args)?;
    for turn in turns(args, names) {
        let (name, number, contender) = turn;
        let dir = dir(args, turn);
        let title = format!("{}, {}, run {number}", name.text(), contender.text());
        let same = |run: &&Run| run.turn() == turn && run.origin == origin;
        let kept = results.runs.iter().find(same).filter(|_| args.resume);
        tell(&format!("{title}{}", if kept.is_some() { ": kept" } else { "" }));
        let run = match kept {
            Some(run) => run.clone(),
            None => Box::pin(new(&cases::case(name)?, Run::begun(turn, &origin), &dir)).await?,
        };
        run.phases.iter().for_each(|played| tell(&format!("  {}", report::brief(played))));
        results.put(run);
        write(&results, args)?;
    }
    Ok(results)
}

/// Writes the documents of runs that are known, and measures nothing.
///
/// # Errors
/// When there is none, or a document cannot be written.
pub fn rewritten(args: &LiveArgs) -> Result<Results> {
    let results = known(args)?;
    let (keep, out) = (args.keep.display(), args.out.display());
    ensure!(
        !results.runs.is_empty(),
        "no run is kept in {keep} or written down in {out}: measure without --rewrite"
    );
    write(&results, args)?;
    Ok(results)
}

/// What is written down, and in its place what is kept with its timelines; what failed is not
/// known.
fn known(args: &LiveArgs) -> Result<Results> {
    let mut results = written(args)?;
    results.runs.retain(|run| run.error.is_none());
    kept::all(&args.keep).into_iter().for_each(|run| results.put(run));
    Ok(results)
}

/// The figures that are written down.
fn written(args: &LiveArgs) -> Result<Results> {
    let path = args.out.join(FIGURES);
    if !path.exists() {
        return Ok(Results::default());
    }
    let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let read = serde_json::from_slice(&text);
    read.with_context(|| format!("{} holds no figures: remove it", path.display()))
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
async fn new(case: &Case, mut run: Run, dir: &Path) -> Result<Run> {
    if let Err(error) = Box::pin(measure(case, &mut run, dir)).await {
        tell(&format!("  failed: {error:#}; logs: {}", dir.display()));
        run.error = Some(format!("{error:#}"));
    }
    kept::keep(dir, &run)?;
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
    let file = |name: &str| args.out.join(name);
    std::fs::write(file(DOCUMENT), report::document(results)?)?;
    for case in results.cases() {
        // Without their timelines, what was drawn of them stays.
        let Some(runs) = results.drawable(case) else { continue };
        std::fs::write(file(&format!("{}.svg", case.text())), chart::svg(&runs))?;
        if let Some(drawn) = burst::svg(&runs) {
            std::fs::write(file("burst.svg"), drawn)?;
        }
    }
    std::fs::write(file(FIGURES), serde_json::to_string(results)? + "\n")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::args::Contender;
    use super::*;

    #[test]
    fn what_failed_is_measured_again() {
        let dir = tempfile::tempdir().unwrap();
        let args = LiveArgs {
            cases: Vec::new(),
            contenders: vec![Contender::Longshore],
            runs: 2,
            out: dir.path().to_owned(),
            keep: dir.path().join("keep"),
            resume: true,
            rewrite: false,
        };
        assert!(known(&args).unwrap().runs.is_empty(), "nothing is written down");
        let run =
            |number| Run::begun((CaseName::One, number, Contender::Longshore), &Origin::here());
        let failed = Run { error: Some("etcd ended".to_owned()), ..run(2) };
        let results = Results { runs: vec![run(1), failed] };
        std::fs::write(dir.path().join(FIGURES), serde_json::to_vec(&results).unwrap()).unwrap();
        let numbers =
            |results: Results| results.runs.iter().map(|run| run.number).collect::<Vec<_>>();
        assert_eq!(numbers(known(&args).unwrap()), [1]);
        kept::keep(&args.keep.join("one-longshore-2"), &run(2)).unwrap();
        assert_eq!(numbers(known(&args).unwrap()), [1, 2]);
    }
}
