//! The watcher as a whole: what runs always, and what only the holder of the Lease does.
//!
//! Invariant: every replica observes, so that a standby is warm; only the holder of the Lease has a
//! session and writes, and that not beside Karpenter.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anyhow::Context as _;
use longshore_runtime::backoff::BackoffPolicy;
use longshore_runtime::endpoint::check_endpoint;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::process;
use longshore_runtime::tasks::{OnError, Supervisor};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::args::{Args, Config};
use crate::counters::Counters;
use crate::directives::Directives;
use crate::events::{self, Events};
use crate::index::{Index, Store};
use crate::karpenter::{self, Karpenter, Look};
use crate::lease::{Lease, Tenure};
use crate::session::Sessions;
use crate::{bounded, buffers, facts, foresight, lifecycle, observe};

/// How long giving up the Lease may take at the end.
const RELEASE_PATIENCE: Duration = Duration::from_secs(2);

/// What a watcher is there for at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duty {
    /// Not known: the Lease has not been read yet, or not since it was lost.
    #[default]
    Unknown,
    /// Another watcher holds the Lease, or Karpenter runs; this one takes over when that ends.
    Standby,
    /// This watcher holds the Lease.
    Working,
}

/// A running watcher.
#[derive(Clone)]
pub struct Watcher {
    /// Whether it works or stands by.
    pub duty: watch::Receiver<Duty>,
    /// What is known of the cluster.
    pub store: Store,
    /// True while a session is open and the scheduler holds the whole view.
    pub connected: watch::Receiver<bool>,
    /// How long the Lease is held for certain: what acts on it must ask before each effect.
    pub tenure: Tenure,
}

impl Watcher {
    /// Starts a watcher under `supervisor`.
    ///
    /// # Errors
    /// When the scheduler's address is not one.
    pub async fn start(
        config: Config,
        client: kube::Client,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Self> {
        Self::start_with(config, client, supervisor, Counters::default()).await
    }

    /// Starts a watcher under `supervisor` that counts in `counters`.
    ///
    /// # Errors
    /// When the scheduler's address is not one.
    pub async fn start_with(
        config: Config,
        client: kube::Client,
        supervisor: &Supervisor,
        counters: Counters,
    ) -> anyhow::Result<Self> {
        tracing::info!(?config, "watcher starts");
        let platform = supervisor.platform();
        let store = Store::new(platform.clock.clone());
        store.update(|index| index.measure(counters.pods.clone()));
        let open = bounded::client(&client, None);
        let (namespace, identity) = (&config.namespace, config.identity.clone());
        let lease = Lease::new(open.clone(), namespace, identity, platform.clock.clone());
        let tenure = lease.tenure();
        let karpenter = Karpenter::new(open.clone(), platform.clock.clone());
        let client = bounded::client(&client, Some(tenure.clone()));
        let publish = |task, client| publish(supervisor, task, client, &config.identity, &counters);
        // What is still to be said of the work is left unsaid by whoever loses the Lease.
        let (events, waiting) = (publish("events", &client), publish("events of a standby", &open));
        check_endpoint(&config.scheduler_endpoint)?;
        let begun = Arc::new(Notify::new());
        let facts = facts::Facts::new(&config, &client, &store, platform.entropy.clone());
        Box::pin(facts.refresh()).await;
        if config.surge {
            store.update(Index::allow_surge);
        }
        observe::spawn(supervisor, &client, &store);
        let retry = OnError::Restart(BackoffPolicy::NETWORK);
        let (reader, resolved) = (client.clone(), store.clone());
        supervisor.spawn("resolve capacity buffers", retry, move || {
            buffers::run(reader.clone(), resolved.clone())
        });
        let (known, again) = (store.clone(), Arc::clone(&begun));
        supervisor.spawn("region", retry, move || facts::complete(known.clone()));
        supervisor.spawn("facts", retry, move || {
            let (facts, again) = (facts.clone(), Arc::clone(&again));
            async move { facts.keep(&again).await }
        });
        let (sender, connected) = watch::channel(false);
        let directives = Directives::new(client, store.clone(), events, counters, platform.clone());
        let sessions = Sessions {
            cluster_id: config.cluster_name,
            endpoint: config.scheduler_endpoint,
            account_id: config.account_id,
            begun,
            store: store.clone(),
            directives: directives.with(config.placement).noting(lease.losses()),
            connected: sender,
        };
        let (on_duty, duty) = watch::channel(Duty::Unknown);
        let leading = Leading { sessions, lease, karpenter, waiting, duty: on_duty };
        let leading = leading.run(supervisor.token().clone());
        supervisor.spawn_once("lead", leading);
        Ok(Self { duty, store, connected, tenure })
    }
}

/// Where Events are handed in that a task publishes through `client`.
fn publish(
    supervisor: &Supervisor,
    task: &'static str,
    client: &kube::Client,
    identity: &str,
    counters: &Counters,
) -> Events {
    let (events, publisher) =
        events::events(client.clone(), identity, counters.clone(), supervisor.platform());
    let token = supervisor.token().clone();
    supervisor.spawn_once(task, async move {
        token.run_until_cancelled(publisher.run()).await.unwrap_or(Ok(()))
    });
    events
}

/// What the holder of the Lease does, and what it waits for.
struct Leading {
    sessions: Sessions,
    lease: Lease,
    karpenter: Karpenter,
    /// Where it is said why nothing is done: without the Lease, too.
    waiting: Events,
    duty: watch::Sender<Duty>,
}

impl Leading {
    /// Works whenever the Lease is held and Karpenter does not run, until the token is cancelled;
    /// then gives the Lease up.
    async fn run(self, token: CancellationToken) -> anyhow::Result<()> {
        while token.run_until_cancelled(self.begin()).await.is_some() {
            tracing::info!("the Lease is held: this watcher works");
            self.duty.send_replace(Duty::Working);
            let work = while_held(self.lease.tenure(), self.work());
            self.sessions.directives.counters.pods.works(true);
            let Some(why) = token.run_until_cancelled(Box::pin(work)).await else { break };
            self.sessions.directives.counters.pods.works(false);
            self.lease.tenure().end_now();
            self.sessions.connected.send_replace(false);
            self.duty.send_replace(Duty::Unknown);
            tracing::warn!("this watcher no longer works: {why}");
        }
        // Whoever waits for the Lease finds it over soon in any case.
        let _ = tokio::time::timeout(RELEASE_PATIENCE, self.lease.release()).await;
        Ok(())
    }

    /// Waits until this is the watcher that works.
    async fn begin(&self) {
        loop {
            self.karpenter.until_gone(|look| self.wait(&look)).await;
            let stand_by = || {
                self.duty.send_replace(Duty::Standby);
            };
            self.lease.acquire(stand_by).await;
            // Waiting for the Lease may have taken long.
            if matches!(self.karpenter.look().await, Ok(None)) {
                return;
            }
            self.lease.tenure().end_now();
        }
    }

    /// Says that nothing is done, and why.
    fn wait(&self, look: &Look<'_>) {
        let duty = match look {
            Look::Held(alive) => {
                let store = &self.sessions.directives.store;
                store.read(|index| karpenter::announce(&self.waiting, index, alive));
                Duty::Standby
            }
            Look::Blind => Duty::Unknown,
        };
        self.duty.send_replace(duty);
    }

    /// Works until something ends that; says what.
    async fn work(&self) -> String {
        let directives = &self.sessions.directives;
        tokio::select! {
            biased;
            lost = self.lease.keep() => lost.to_string(),
            back = self.karpenter.until_back() => back.to_string(),
            ended = self.sessions.run(&self.lease) => {
                ended.err().map(|e| e.to_string()).unwrap_or_default()
            }
            () = lifecycle::run(directives) => String::new(),
            () = lifecycle::report::run(directives) => String::new(),
            () = lifecycle::buffers::run(directives) => String::new(),
            () = foresight::run(&directives.client, &directives.store) => String::new(),
        }
    }
}

/// Runs `work` for as long as the Lease is held, which is asked each time before it goes on: a
/// process that was stopped wakes up to timers and messages in any order.
async fn while_held(tenure: Tenure, work: impl Future<Output = String>) -> String {
    let mut work = std::pin::pin!(work);
    poll_fn(|context| {
        if tenure.holds() {
            work.as_mut().poll(context)
        } else {
            Poll::Ready("the Lease was not renewed in time".to_owned())
        }
    })
    .await
}

/// Starts what the program does.
///
/// # Errors
/// When an argument makes no sense, or it cannot start.
pub async fn start(args: Args, supervisor: &Supervisor) -> anyhow::Result<()> {
    let config = args.config()?;
    let client = args.kube_client().await?;
    let metrics = process::serve_metrics(args.metrics_listen, supervisor).await;
    let metrics = metrics.context("--metrics-listen")?;
    let counters = Counters::registered(&metrics, &config.cluster_name);
    let watcher = Watcher::start_with(config, client, supervisor, counters).await?;
    supervisor.spawn("readiness", OnError::Shutdown, move || {
        readiness(watcher.duty.clone(), watcher.connected.clone(), metrics.clone())
    });
    Ok(())
}

/// Keeps `/readyz` at what this watcher can do. A standby is ready: it takes over at once.
async fn readiness(
    mut duty: watch::Receiver<Duty>,
    mut connected: watch::Receiver<bool>,
    metrics: Metrics,
) -> anyhow::Result<()> {
    loop {
        let standing_by = *duty.borrow_and_update() == Duty::Standby;
        let ready = *connected.borrow_and_update() || standing_by;
        let why = "no session: the Lease or the scheduler cannot be reached";
        metrics.set_unready((!ready).then(|| why.to_owned()));
        tokio::select! {
            biased;
            changed = duty.changed() => changed?,
            changed = connected.changed() => changed?,
        }
    }
}
