//! Wall clocks that are ten minutes wrong, of one program after the other, ahead and behind: each
//! is ended and comes back with the other time of day.

use anyhow::{Result, ensure};
use jiff::Timestamp;
use longshore_it::parts::{Process, poll};

use super::unharmed;
use crate::kill::crowd::{Crowd, LIMIT};

/// Pods at the start, and those that come after each change of a clock.
const PODS: u32 = 3;
const MORE: u32 = 2;
/// How wrong a clock is, in seconds.
const SKEW_S: i64 = 600;
/// How far the stamps of a log may lie from what the clock should show, in seconds.
const TOLERANCE_S: i64 = 60;

/// The programs whose clocks are wrong.
#[derive(Clone, Copy, Debug)]
enum Program {
    Watcher,
    Scheduler,
    Actuator,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_whose_clock_is_wrong() -> Result<()> {
    wrong(Program::Watcher, "longshore-watcher").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_whose_clock_is_wrong() -> Result<()> {
    wrong(Program::Scheduler, "longshore-scheduler").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actuator_whose_clock_is_wrong() -> Result<()> {
    wrong(Program::Actuator, "longshore-actuator").await
}

/// Ahead, behind and right again.
async fn wrong(program: Program, name: &str) -> Result<()> {
    let mut crowd = Box::pin(Crowd::start(&format!("clock-{program:?}"), PODS, |_| {})).await?;
    crowd.arrive().await?;
    unharmed(&crowd).await?;
    for ahead_s in [SKEW_S, -SKEW_S, 0] {
        crowd.fleet.set_clock(name, ahead_s);
        let old = process(&mut crowd, program)?;
        old.terminate()?;
        old.wait_for_exit(LIMIT).await?;
        match program {
            Program::Watcher => crowd.fleet.restart_watcher(0)?,
            Program::Scheduler => crowd.fleet.restart_scheduler(0).await?,
            Program::Actuator => crowd.fleet.restart_actuator(0).await?,
        }
        crowd.grow(MORE).await?;
        unharmed(&crowd).await?;
        let shown_s = shown_ahead_s(process(&mut crowd, program)?).await?;
        let off_s = (shown_s - ahead_s).abs();
        ensure!(off_s < TOLERANCE_S, "the clock is {shown_s} s ahead instead of {ahead_s}");
    }
    Ok(())
}

fn process(crowd: &mut Crowd, program: Program) -> Result<&mut Process> {
    match program {
        Program::Watcher => crowd.fleet.watcher(0),
        Program::Scheduler => crowd.fleet.scheduler(0),
        Program::Actuator => crowd.fleet.actuator(0),
    }
}

/// How far the stamp of a process's latest line is ahead of time, in seconds.
async fn shown_ahead_s(process: &Process) -> Result<i64> {
    poll::until("a line has a stamp", LIMIT, || async {
        let log = process.log()?;
        let mut stamps =
            log.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
        let latest: Option<Timestamp> = stamps.next_back();
        let latest = latest.ok_or_else(|| anyhow::anyhow!("no line has one"))?;
        Ok::<_, anyhow::Error>(latest.as_second() - Timestamp::now().as_second())
    })
    .await
}
