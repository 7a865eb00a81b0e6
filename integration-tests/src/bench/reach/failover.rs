//! How long clusters are without plans when one of two schedulers is killed.
//!
//! Invariant: the clock starts before the kill and stops when the last cluster, whichever scheduler
//! it was on, has a plan for a waiting pod; of a cluster that had to move only what the other
//! scheduler says counts.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use longshore_runtime::entropy::Entropy;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::FailoverArgs;
use super::cluster::Cluster;
use super::quantity::Quantity;
use super::stand::Stand;
use super::watcher::{self, Watcher};
use crate::bench::numbers::median;
use crate::bench::tell;
use crate::parts::CutProxy;

/// From the kill to a plan, in seconds.
const LIMITS: (f64, f64) = (10.0, 3.0);
/// Longest that anything is waited for.
const LIMIT: Duration = Duration::from_secs(90);
/// By then every watcher has noticed that its scheduler has gone.
const NOTICED: Duration = Duration::from_secs(1);
/// How a watcher connects again, as the shipped one does.
const RECONNECT: BackoffPolicy =
    BackoffPolicy { minimum: Duration::from_millis(200), maximum: Duration::from_secs(10) };

/// What a cluster has to tell.
enum News {
    /// A waiting pod has its plan, in this session.
    Placed { session: u64, at: Instant },
    /// This session has ended.
    Ended { session: u64 },
}

/// What is known of a cluster since the kill.
#[derive(Default)]
struct Known {
    ended: bool,
    placed: BTreeMap<u64, Instant>,
    sessions: u64,
}

impl Known {
    /// When it had a plan again; none while it has not.
    fn served(&self) -> Option<Instant> {
        let earliest = if self.ended { self.sessions + 1 } else { 0 };
        self.placed.range(earliest..).map(|(_, at)| *at).min()
    }
}

/// Measures.
///
/// # Errors
/// When a part does not start, or clusters stay without plans.
pub async fn measure(args: &FailoverArgs) -> Result<Vec<Quantity>> {
    let mut runs = Vec::new();
    for number in 1..=args.runs {
        tell(&format!("failover: death {number} of {}", args.runs));
        runs.push(Box::pin(run(args)).await?);
    }
    let worst = runs.iter().map(|(seconds, _)| *seconds).fold(0.0, f64::max);
    let all: Vec<f64> = runs.iter().map(|(seconds, _)| *seconds).collect();
    let moved: Vec<String> = runs.iter().map(|(_, moved)| moved.to_string()).collect();
    let name = "from the kill of a scheduler to plans for every cluster, the longest";
    let detail = format!(
        "{} runs, median {:.2} s; clusters that had to move: {}",
        runs.len(),
        median(&all),
        moved.join(", ")
    );
    let moved = runs.iter().all(|(_, moved)| *moved > 0);
    Ok(vec![Quantity::new(name, " s", worst, LIMITS).with(detail, moved)])
}

/// Seconds until all clusters had plans again, and how many had to move.
async fn run(args: &FailoverArgs) -> Result<(f64, usize)> {
    let mut stand = Stand::start(2, args.size.clusters, args.size.each()).await?;
    let addresses: Vec<_> = stand.schedulers.iter().map(|service| service.address).collect();
    let service = CutProxy::before(&addresses).await?;
    let url = format!("http://{}", service.address());
    let (tell, mut news) = mpsc::unbounded_channel();
    let mut watchers = JoinSet::new();
    for (index, cluster) in stand.clusters.iter().cloned().enumerate() {
        watchers.spawn(live(url.clone(), index, cluster, tell.clone()));
    }
    let mut begun: BTreeMap<usize, Known> = BTreeMap::new();
    collect(&mut news, &mut begun, stand.clusters.len(), Instant::now()).await?;
    while news.try_recv().is_ok() {}
    let killed = Instant::now();
    stand.schedulers[0].process.kill()?;
    let mut since: BTreeMap<usize, Known> = BTreeMap::new();
    let noticed = Instant::now() + NOTICED;
    while let Ok(Some(item)) = timeout_at(noticed, news.recv()).await {
        note(&mut since, item, killed);
    }
    collect(&mut news, &mut since, stand.clusters.len(), killed).await?;
    stand.schedulers[1].process.ensure_running()?;
    let last = since.values().filter_map(Known::served).max().context("no cluster")?;
    let moved = since.values().filter(|known| known.ended).count();
    Ok((last.duration_since(killed).as_secs_f64(), moved))
}

/// Listens until every cluster has had a plan.
async fn collect(
    news: &mut mpsc::UnboundedReceiver<(usize, News)>,
    known: &mut BTreeMap<usize, Known>,
    clusters: usize,
    since: Instant,
) -> Result<()> {
    let until = since + LIMIT;
    let served = |known: &BTreeMap<usize, Known>| {
        known.values().filter(|known| known.served().is_some()).count()
    };
    while served(known) < clusters {
        let Ok(item) = timeout_at(until, news.recv()).await else { break };
        note(known, item.context("the watchers have ended")?, since);
    }
    let served = served(known);
    ensure!(served == clusters, "{served} of {clusters} clusters have a plan within {LIMIT:?}");
    Ok(())
}

/// Takes note of news; plans from before do not count, the end of a session always does.
fn note(known: &mut BTreeMap<usize, Known>, (cluster, news): (usize, News), since: Instant) {
    let known = known.entry(cluster).or_default();
    match news {
        News::Placed { session, at } if at >= since => {
            known.placed.entry(session).or_insert(at);
        }
        News::Placed { .. } => {}
        News::Ended { session } => {
            known.ended = true;
            known.sessions = known.sessions.max(session);
        }
    }
}

/// A cluster in which a pod always waits, or the next one soon does.
async fn live(
    url: String,
    index: usize,
    cluster: Cluster,
    tell: mpsc::UnboundedSender<(usize, News)>,
) {
    let mut backoff = Backoff::new(RECONNECT, Entropy::seeded(u64::try_from(index).unwrap_or(0)));
    let mut number = 0;
    for session in 1.. {
        let mut said = false;
        let ended = sit(&url, &cluster, (session, &mut number), |at| {
            said = true;
            drop(tell.send((index, News::Placed { session, at })));
        });
        if let Err(error) = ended.await {
            tracing::debug!(%error, cluster = cluster.name, "session ended");
        }
        if said {
            backoff.reset();
        }
        if tell.send((index, News::Ended { session })).is_err() {
            return;
        }
        backoff.wait().await;
    }
}

/// One session: a pod waits from its first message on, and after each that has its plan comes
/// another.
async fn sit(
    url: &str,
    cluster: &Cluster,
    (session, number): (u64, &mut u64),
    mut placed: impl FnMut(Instant),
) -> Result<()> {
    let mut objects = cluster.objects();
    let mut pod = cluster.waiting(*number);
    objects.push(watcher::object(pod.clone()));
    let mut watcher = Watcher::open(url, cluster, objects, session).await?;
    loop {
        watcher.place_of(&pod.uid).await?;
        placed(Instant::now());
        *number += 1;
        watcher.change(vec![watcher::gone(&pod.uid)]).await?;
        idle(&mut watcher).await?;
        pod = cluster.waiting(*number);
        watcher.change(vec![watcher::pod(pod.clone())]).await?;
    }
}

/// Answers for a while.
async fn idle(watcher: &mut Watcher) -> Result<()> {
    let over = sleep(NOTICED);
    tokio::pin!(over);
    loop {
        tokio::select! {
            () = &mut over => return Ok(()),
            asked = watcher.next() => drop(asked?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_dead_scheduler_said_last_does_not_count() {
        let (mut known, at) = (BTreeMap::new(), Instant::now());
        note(&mut known, (0, News::Placed { session: 1, at }), at + Duration::from_millis(1));
        assert_eq!(known[&0].served(), None, "it was before");
        note(&mut known, (0, News::Placed { session: 1, at }), at);
        assert_eq!(known[&0].served(), Some(at));
        note(&mut known, (0, News::Ended { session: 1 }), at);
        assert_eq!(known[&0].served(), None);
        let later = at + Duration::from_secs(1);
        note(&mut known, (0, News::Placed { session: 2, at: later }), at);
        assert_eq!(known[&0].served(), Some(later));
    }
}
