//! A cluster that has settled: what its watcher holds, what it does while pods are replaced, and
//! how long it took to be taken in.
//!
//! Invariant: the clock starts before the watcher does; it is settled once it does next to nothing,
//! and pods are replaced evenly over the time in which it is looked at.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::ClusterArgs;
use super::fill;
use super::report::{Measured, megabytes, seconds};
use super::stand::{LIMIT, Program, Stand};
use crate::bench::numbers::float;
use crate::bench::tell;

/// One pod in so many is replaced.
const REPLACED_OF: u32 = 100;
/// Share of a processor, in thousandths, below which a program does next to nothing.
const IDLE_PER_MILLE: u64 = 50;

/// Measures.
///
/// # Errors
/// When a part does not start or ends, or the cluster does not settle.
pub async fn measure(args: &ClusterArgs) -> Result<Vec<Measured>> {
    let mut stand = Stand::start(args, false).await?;
    fill::nodes(&stand.client, args.nodes).await?;
    fill::running(&stand.client, args.pods, args.nodes).await?;
    fill::waiting(&stand.client, 1).await?;
    tell("  the cluster is there; the watcher starts");
    let began = Instant::now();
    stand.start_program(Program::Watcher).await?;
    stand.whole().await?;
    let whole = began.elapsed();
    stand.planned(|plan| plan.pods > 0).await?;
    let planned = began.elapsed();
    timeout(LIMIT, idle(&mut stand, Duration::from_secs(args.quiet))).await??;
    let held = Program::ALL.map(|program| stand.process(program).map(|it| it.rss_bytes()));
    let [watcher, scheduler, actuator] = held.map(|bytes| bytes?.map(megabytes));
    let peak = stand.process(Program::Watcher)?.peak_rss_bytes()?;
    tell("  settled; pods are replaced");
    let (cpu_ms, replaced) = replacing(&mut stand, args).await?;
    let size = format!("{} pods on {} nodes", args.pods, args.nodes);
    Ok(vec![
        Measured::new(format!("watcher's memory, {size}, settled"), watcher?).with(format!(
            "largest so far {}; scheduler {}, actuator {}",
            megabytes(peak),
            scheduler?,
            actuator?
        )),
        Measured::new(
            "the same, processor time while 1 % of the pods are replaced",
            seconds(cpu_ms),
        )
        .with(format!(
            "{replaced} pods in {} s: {:.1} % of a processor",
            args.seconds,
            share(cpu_ms, args.seconds)
        )),
        Measured::new("from the watcher's start until the scheduler has all of it", since(whole)),
        Measured::new("from the watcher's start until the scheduler's first plan", since(planned)),
    ])
}

/// Waits until the watcher does next to nothing for a while.
async fn idle(stand: &mut Stand, quiet: Duration) -> Result<()> {
    let mut looks = interval(quiet);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let quiet_ms = u64::try_from(quiet.as_millis())?;
    let mut before = None;
    loop {
        looks.tick().await;
        let watcher = stand.process(Program::Watcher)?;
        watcher.ensure_running()?;
        let now = watcher.cpu_ms()?;
        if before.is_some_and(|before| (now - before) * 1_000 <= quiet_ms * IDLE_PER_MILLE) {
            return Ok(());
        }
        before = Some(now);
    }
}

/// The watcher's processor time in milliseconds while pods are replaced, and how many were.
async fn replacing(stand: &mut Stand, args: &ClusterArgs) -> Result<(u64, u32)> {
    let replaced = (args.pods / REPLACED_OF).max(1);
    let time = Duration::from_secs(args.seconds);
    let mut due = interval(time / replaced);
    let before = stand.process(Program::Watcher)?.cpu_ms()?;
    let began = Instant::now();
    for number in 0..replaced {
        due.tick().await;
        fill::replace(&stand.client, number, args.pods + number, args.nodes).await?;
    }
    // The last has as long as each before it.
    due.tick().await;
    let took = began.elapsed();
    ensure!(took < time * 2, "the API server is too slow: {took:?} for {time:?}");
    Ok((stand.process(Program::Watcher)?.cpu_ms()? - before, replaced))
}

fn since(time: Duration) -> String {
    seconds(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Processor time as a share of so many seconds, in percent.
fn share(cpu_ms: u64, over_s: u64) -> f64 {
    float(cpu_ms) / float(over_s) / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_one_processor() {
        assert!((share(600, 60) - 1.0).abs() < 1e-9);
        assert_eq!(since(Duration::from_millis(1_250)), "1.25 s");
    }
}
