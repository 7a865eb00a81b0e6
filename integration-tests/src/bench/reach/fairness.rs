//! What the trouble of two clusters and one client costs the other clusters of the same scheduler.
//!
//! Invariant: blocks with and without trouble take turns on one scheduler, so that what else the
//! machine does meets both; each counted time belongs to one of the two alone.

use std::ops::Range;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use super::FairnessArgs;
use super::cluster::Cluster;
use super::quantity::Quantity;
use super::stand::Stand;
use super::watcher::{self, Watcher};
use crate::bench::numbers::{count, float, percentile};
use crate::bench::tell;
use crate::parts::Process;

/// Clusters that make trouble: the first flaps, the second is flooded.
pub const TROUBLED: usize = 2;
/// What of each block is not counted, because the one before it still shows.
const SETTLE: Duration = Duration::from_secs(2);
/// A plan that takes longer counts as this.
const PLAN_LIMIT: Duration = Duration::from_secs(30);
/// Times of the other clusters' plans with trouble, over those without.
const LIMITS: (f64, f64) = (1.10, 1.03);

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Unsettled,
    Calm,
    Trouble,
}

/// A plan's time, in thousandths of a second, and when it was.
type Sample = (Phase, f64);

/// Measures.
///
/// # Errors
/// When a part does not start, or no plan comes.
pub async fn measure(args: &FairnessArgs) -> Result<Vec<Quantity>> {
    let mut stand = Stand::start(1, args.size.clusters, args.size.each()).await?;
    let url = stand.schedulers[0].url();
    let (phase, phases) = watch::channel(Phase::Unsettled);
    let (samples, mut heard) = mpsc::unbounded_channel();
    let mut watchers = JoinSet::new();
    for (index, cluster) in stand.clusters.iter().enumerate().skip(TROUBLED) {
        let share = float(count(index)) / float(count(stand.clusters.len()));
        let first = Instant::now() + Duration::from_secs_f64(args.interval * (1.0 + share));
        let ticks = (first, Duration::from_secs_f64(args.interval));
        let (url, cluster) = (url.clone(), cluster.clone());
        watchers.spawn(calm(url, cluster, ticks, (phases.clone(), samples.clone())));
    }
    sleep(Duration::from_secs_f64(2.0 * args.interval)).await;
    for number in 1..=args.blocks {
        tell(&format!("fairness: {number} of {} pairs of quiet and troubled times", args.blocks));
        block(args, &phase, Phase::Calm).await;
        let trouble = trouble(&url, args)?;
        block(args, &phase, Phase::Trouble).await;
        drop(trouble);
        while let Some(ended) = watchers.try_join_next() {
            ended?.context("a watcher has ended")?;
        }
    }
    stand.schedulers[0].process.ensure_running()?;
    let mut all = Vec::new();
    while let Ok(sample) = heard.try_recv() {
        all.push(sample);
    }
    Ok(judge(&all))
}

async fn block(args: &FairnessArgs, now: &watch::Sender<Phase>, phase: Phase) {
    now.send_replace(Phase::Unsettled);
    sleep(SETTLE).await;
    now.send_replace(phase);
    sleep(Duration::from_secs_f64(args.seconds)).await;
    now.send_replace(Phase::Unsettled);
}

/// Those who make trouble are a process of their own, and the last to get a processor: in life they
/// are other machines.
fn trouble(url: &str, args: &FairnessArgs) -> Result<Process> {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(std::env::current_exe()?);
    command.args(["reach", "trouble", "--scheduler", url]);
    command.args(args.size.flags());
    Process::start("trouble", command, &std::env::temp_dir())
}

/// A cluster to which a pod comes at each tick; it says how long the pod's place took.
async fn calm(
    url: String,
    cluster: Cluster,
    (first, every): (Instant, Duration),
    (phases, samples): (watch::Receiver<Phase>, mpsc::UnboundedSender<Sample>),
) -> Result<()> {
    let mut watcher = Watcher::open(&url, &cluster, cluster.objects(), 1).await?;
    let mut ticks = interval_at(first, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let numbers: Range<u64> = 0..u64::MAX;
    for number in numbers {
        idle(&mut watcher, &mut ticks).await?;
        let pod = cluster.waiting(number);
        let uid = pod.uid.clone();
        let (before, asked) = (*phases.borrow(), Instant::now());
        watcher.change(vec![watcher::pod(pod)]).await?;
        // Without an answer it is as late as may be told.
        match timeout(PLAN_LIMIT, watcher.place_of(&uid)).await {
            Ok(placed) => placed.with_context(|| cluster.name.clone())?,
            Err(_) => tracing::warn!(cluster = cluster.name, "no plan within {PLAN_LIMIT:?}"),
        }
        let took = asked.elapsed().as_secs_f64() * 1e3;
        if before == *phases.borrow() || took > SETTLE.as_secs_f64() * 1e3 {
            samples.send((before, took))?;
        }
        watcher.change(vec![watcher::gone(&uid)]).await?;
    }
    Ok(())
}

/// Answers what is asked until the next tick.
async fn idle(watcher: &mut Watcher, ticks: &mut tokio::time::Interval) -> Result<()> {
    loop {
        tokio::select! {
            _ = ticks.tick() => return Ok(()),
            asked = watcher.next() => drop(asked?),
        }
    }
}

fn judge(samples: &[Sample]) -> Vec<Quantity> {
    let of = |wanted: Phase| -> Vec<f64> {
        samples.iter().filter(|(phase, _)| *phase == wanted).map(|(_, took)| *took).collect()
    };
    let (calm, trouble) = (of(Phase::Calm), of(Phase::Trouble));
    let at = |percent| (percentile(&calm, percent), percentile(&trouble, percent));
    let ((p50, p50_trouble), (p99, p99_trouble)) = (at(50), at(99));
    let enough = calm.len() >= 100 && trouble.len() >= 100;
    let detail = format!(
        "p99 {p99:.1} ms without ({} plans), {p99_trouble:.1} ms with ({} plans); p50 {p50:.1} and \
         {p50_trouble:.1} ms",
        calm.len(),
        trouble.len(),
    );
    let ratio = if p99 > 0.0 { p99_trouble / p99 } else { f64::INFINITY };
    let name = "p99 of other clusters' plans, with a flap and floods over without";
    vec![Quantity::new(name, "×", ratio, LIMITS).with(detail, enough)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_held_against_calm_and_few_plans_prove_nothing() {
        let samples = |calm: f64, trouble: f64, count: usize| {
            let one = [(Phase::Calm, calm), (Phase::Trouble, trouble), (Phase::Unsettled, 1e6)];
            one.repeat(count)
        };
        assert!(judge(&samples(100.0, 109.0, 200))[0].holds);
        assert!(!judge(&samples(100.0, 111.0, 200))[0].holds);
        assert!(!judge(&samples(100.0, 100.0, 20))[0].holds);
        assert!(!judge(&[])[0].holds);
    }
}
