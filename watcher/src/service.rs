//! The watcher as a whole: what runs always, and what only the holder of the Lease does.
//!
//! Invariant: every replica observes, so that a standby is warm; only the holder of the Lease has a
//! session and writes.

use std::time::Duration;

use anyhow::Context as _;
use longshore_runtime::backoff::BackoffPolicy;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::tasks::{OnError, Supervisor};
use longshore_runtime::{client, server, shutdown, telemetry};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::args::{Args, Config};
use crate::counters::Counters;
use crate::directives::Directives;
use crate::events;
use crate::index::Store;
use crate::lease::Lease;
use crate::session::Sessions;
use crate::{facts, lifecycle, observe};

/// How long tasks may take to end.
const GRACE: Duration = Duration::from_secs(10);
/// How long giving up the Lease may take at the end.
const RELEASE_PATIENCE: Duration = Duration::from_secs(2);

/// A running watcher.
#[derive(Clone)]
pub struct Watcher {
    /// What is known of the cluster.
    pub store: Store,
    /// True while a session is open and the scheduler holds the whole view.
    pub connected: watch::Receiver<bool>,
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
        let store = Store::default();
        let (events, publisher) =
            events::events(client.clone(), &config.identity, counters.clone());
        supervisor.spawn_once("events", {
            let token = supervisor.token().clone();
            async move { token.run_until_cancelled(publisher.run()).await.unwrap_or(Ok(())) }
        });
        let cluster = facts::gather(&config, &client).await;
        store.write(|index| index.set_cluster(cluster));
        observe::spawn(supervisor, &client, &store);
        let known = store.clone();
        let retry = OnError::Restart(BackoffPolicy::NETWORK);
        supervisor.spawn("region", retry, move || facts::complete(known.clone()));
        let (sender, connected) = watch::channel(false);
        let lease = Lease::new(client.clone(), &config.namespace, config.identity);
        let sessions = Sessions {
            cluster_id: config.cluster_name,
            channel: client::channel(&config.scheduler_endpoint)?,
            store: store.clone(),
            directives: Directives::new(client, store.clone(), events, counters),
            connected: sender,
        };
        supervisor.spawn_once("lead", lead(sessions, lease, supervisor.token().clone()));
        Ok(Self { store, connected })
    }
}

/// Works whenever the Lease is held, until the token is cancelled; then gives the Lease up.
async fn lead(sessions: Sessions, lease: Lease, token: CancellationToken) -> anyhow::Result<()> {
    while token.run_until_cancelled(lease.acquire()).await.is_some() {
        tracing::info!("the Lease is held: this watcher works");
        let work = async {
            tokio::select! {
                lost = lease.keep() => lost.to_string(),
                ended = sessions.run(&lease) => ended.err().map(|e| e.to_string()).unwrap_or_default(),
                () = lifecycle::run(&sessions.directives) => String::new(),
                () = lifecycle::report::run(&sessions.directives) => String::new(),
            }
        };
        let Some(why) = token.run_until_cancelled(Box::pin(work)).await else { break };
        sessions.connected.send_replace(false);
        tracing::warn!("this watcher no longer works: {why}");
    }
    // Whoever waits for the Lease finds it over soon in any case.
    let _ = tokio::time::timeout(RELEASE_PATIENCE, lease.release()).await;
    Ok(())
}

/// The program: arguments in, until it is told to end.
///
/// # Errors
/// When it cannot start, or an essential part of it fails.
pub async fn main(args: Args) -> anyhow::Result<()> {
    let guard = telemetry::init("longshore-watcher", &args.telemetry)?;
    let outcome = run(args, shutdown::on_signals()?).await;
    guard.flush();
    outcome
}

/// Runs a watcher until `token` is cancelled.
///
/// # Errors
/// When it cannot start, or an essential part of it fails.
pub async fn run(args: Args, token: CancellationToken) -> anyhow::Result<()> {
    let config = args.config()?;
    let client = args.kube_client().await?;
    let supervisor = Supervisor::new(token);
    let metrics = Metrics::new();
    if let Some(address) = args.metrics_listen {
        let listener = server::bind(address).await.context("--metrics-listen")?;
        let serve = metrics.clone().serve(listener, supervisor.token().clone());
        supervisor.spawn_once("metrics", serve);
    }
    let counters = Counters::registered(&metrics);
    let watcher = Watcher::start_with(config, client, &supervisor, counters).await?;
    supervisor.spawn("readiness", OnError::Shutdown, move || {
        readiness(watcher.connected.clone(), metrics.clone())
    });
    supervisor.join(GRACE).await
}

async fn readiness(mut connected: watch::Receiver<bool>, metrics: Metrics) -> anyhow::Result<()> {
    loop {
        let why = (!*connected.borrow_and_update()).then(|| {
            "no session: this watcher stands by, or its scheduler cannot be reached".to_owned()
        });
        metrics.set_unready(why);
        connected.changed().await?;
    }
}
