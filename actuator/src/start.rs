//! Starting an actuator, as a process or inside one.
//!
//! Invariant: the address is bound before anything else; neither AWS nor etcd has to be there for
//! the service to answer that they are not.

use std::net::SocketAddr;
#[cfg(feature = "aws")]
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use longshore_proto::DESCRIPTOR_SET;
use longshore_proto::capacity::v1::capacity_service_server::CapacityServiceServer;
use longshore_proto::reason::Reason;
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
#[cfg(feature = "aws")]
use longshore_runtime::clock::Clock;
use longshore_runtime::listener::Listener;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::platform::Platform;
#[cfg(feature = "aws")]
use longshore_runtime::process;
#[cfg(feature = "aws")]
use longshore_runtime::server;
use longshore_runtime::server::{GrpcServer, Refusals};
use longshore_runtime::tasks::Supervisor;
use tokio::sync::watch;

use crate::cloud::{Caller, Calls, Cloud, Guarded, Measured, Permit};
#[cfg(feature = "aws")]
use crate::config::Args;
use crate::config::Config;
#[cfg(feature = "aws")]
use crate::ec2::Aws;
use crate::election::{self, Campaign, Standing, Term};
use crate::etcd::Members;
use crate::events::Events;
use crate::leader::RegionContext;
use crate::leadership::{self, Leadership, Seat};
use crate::ledger::{EtcdStore, Journal, JournaledStore, MemoryStore, Store};
use crate::policy::Policies;
use crate::service::{Capacity, Onlookers};

/// Name of the service in logs, traces and messages.
#[cfg(feature = "aws")]
const SERVICE: &str = "longshore-actuator";

/// The process: lives until it is told to end.
#[cfg(feature = "aws")]
#[must_use]
pub fn run(args: Args) -> ExitCode {
    let process = args.process.clone();
    process::run(SERVICE, &process, |supervisor| async move {
        let config = Config::try_from(args)?;
        tracing::info!(?config, "starting");
        let metrics = process::serve_metrics(config.metrics_listen, &supervisor).await?;
        start(config, &metrics, &supervisor).await.map(drop)
    })
}

/// Starts an actuator against AWS; returns the address it serves on.
///
/// # Errors
/// When the address cannot be bound.
#[cfg(feature = "aws")]
pub async fn start(
    config: Config,
    metrics: &Metrics,
    supervisor: &Supervisor,
) -> anyhow::Result<SocketAddr> {
    let listener = Listener::from(server::bind(config.listen).await?);
    let listener = listener.secured(supervisor.platform().credentials.clone());
    let cloud = connect(&config.region, &supervisor.platform().clock).await;
    start_with(config, listener, cloud, metrics, supervisor)
}

/// The clients of AWS in a region; nothing is asked of it yet.
#[cfg(feature = "aws")]
pub async fn connect(region: &str, clock: &Clock) -> Arc<dyn Cloud> {
    Arc::new(Aws::connect(region, clock).await)
}

/// Starts an actuator on a listener and a cloud that are there already; returns its address.
///
/// # Errors
/// When the listener has no address.
pub fn start_with(
    config: Config,
    listener: impl Into<Listener>,
    cloud: Arc<dyn Cloud>,
    metrics: &Metrics,
    supervisor: &Supervisor,
) -> anyhow::Result<SocketAddr> {
    let backing = Backing { cloud, journal: None };
    Ok(begin(config, listener.into(), backing, metrics, supervisor)?.address)
}

/// What the only actuator there is works with.
pub struct Sole {
    /// The cloud.
    pub cloud: Arc<dyn Cloud>,
    /// Asked before each effect.
    pub permit: Permit,
    /// What its shared calls came to.
    pub journal: Arc<dyn Journal>,
}

/// What the only actuator there is has started.
pub struct Started {
    /// Its address.
    pub address: SocketAddr,
    /// What others may look at, wherever that is served.
    pub onlookers: CapacityServiceServer<Onlookers>,
}

/// Starts the only actuator there is.
///
/// # Errors
/// When the listener has no address.
pub fn start_permitted(
    config: Config,
    listener: impl Into<Listener>,
    sole: Sole,
    metrics: &Metrics,
    supervisor: &Supervisor,
) -> anyhow::Result<Started> {
    let cloud = Arc::new(Guarded::new(sole.cloud, sole.permit));
    let backing = Backing { cloud, journal: Some(sole.journal) };
    begin(config, listener.into(), backing, metrics, supervisor)
}

struct Backing {
    cloud: Arc<dyn Cloud>,
    journal: Option<Arc<dyn Journal>>,
}

fn begin(
    config: Config,
    listener: Listener,
    backing: Backing,
    metrics: &Metrics,
    supervisor: &Supervisor,
) -> anyhow::Result<Started> {
    let address = listener.address().context("the listener has no address")?;
    let (policies, keeping) = config.policy.read()?;
    let token = supervisor.token().clone();
    supervisor.spawn_once("policy", async move {
        token.run_until_cancelled(keeping).await;
        Ok(())
    });
    let starting = Leadership::Closed {
        reason: Reason::NotLeader,
        why: "starting: neither AWS nor the election has answered yet".to_owned(),
    };
    let (leadership, answers) = watch::channel(starting);
    let capacity = Capacity::new(answers.clone());
    let onlookers = CapacityServiceServer::new(Onlookers(capacity.clone()));
    let grpc = GrpcServer::new(DESCRIPTOR_SET, config.access.clone())?
        .refusing(Refusals {
            overloaded: |message| Reason::Overloaded.status(message),
            forbidden: |message| Reason::Forbidden.status(message),
        })
        .with_service(CapacityServiceServer::new(capacity));
    let token = supervisor.token().clone();
    supervisor.spawn_once("grpc", grpc.serve(listener, token));
    let ready = report_readiness(answers, metrics.clone());
    supervisor.spawn("readiness", longshore_runtime::tasks::OnError::Shutdown, ready);
    let events = Events::new(metrics);
    let cloud = Arc::new(Measured::new(backing.cloud, Calls::registered(metrics)));
    let backing = Backing { cloud, ..backing };
    let body = Body { config, backing, address, events, leadership, policies };
    let owner = supervisor.clone();
    supervisor.spawn_once("actuator", async move { body.live(&owner).await });
    Ok(Started { address, onlookers })
}

struct Body {
    config: Config,
    backing: Backing,
    address: SocketAddr,
    events: Events,
    leadership: watch::Sender<Leadership>,
    policies: Policies,
}

impl Body {
    async fn live(self, supervisor: &Supervisor) -> anyhow::Result<()> {
        let token = supervisor.token().clone();
        let caller = tokio::select! {
            caller = self.caller(supervisor.platform()) => caller,
            () = token.cancelled() => return Ok(()),
        };
        let account = caller.account_id.clone();
        let placed = self.policies.now().check_place(&account, &self.config.region);
        placed.map_err(|wrong| anyhow::anyhow!("--policy: {wrong}"))?;
        let context = RegionContext {
            region: self.config.region.clone(),
            caller,
            cloud: self.backing.cloud,
            tuning: self.config.tuning.clone(),
            events: self.events,
            policies: self.policies,
            platform: supervisor.platform().clone(),
        };
        let prefix = format!("/longshore/v1/{account}/{}/", self.config.region);
        let (store, seat) = if self.config.etcd.is_given() {
            elect(&self.config, self.address, prefix, supervisor)
        } else {
            alone(self.backing.journal, supervisor.platform())
        };
        leadership::run(context, store, seat, self.leadership, supervisor).await;
        Ok(())
    }

    /// Who we are; asked for until AWS answers.
    async fn caller(&self, platform: &Platform) -> Caller {
        let mut backoff = Backoff::new(BackoffPolicy::NETWORK, platform.entropy.clone());
        loop {
            match self.backing.cloud.caller().await {
                Ok(caller) => {
                    tracing::info!(account = caller.account_id, arn = caller.arn, "AWS answers");
                    return caller;
                }
                Err(error) => {
                    let why = format!("AWS does not say who we are: {error}");
                    tracing::warn!(%why, "trying again");
                    self.leadership
                        .send_replace(Leadership::Closed { reason: Reason::NotLeader, why });
                    backoff.wait().await;
                }
            }
        }
    }
}

/// The only actuator: leads from the start, with a ledger in memory.
fn alone(journal: Option<Arc<dyn Journal>>, platform: &Platform) -> (Store, Seat) {
    let store = MemoryStore::default();
    let term = Term { key: Vec::new(), revision: platform.clock.now_ms() };
    store.crown(term.revision);
    let (_, standing) = watch::channel(Standing::Leading(term));
    let (resigned, _) = watch::channel(0);
    let store = match journal {
        Some(journal) => Store::Journaled(JournaledStore::new(store, journal)),
        None => Store::Memory(store),
    };
    (store, Seat { standing, resigned })
}

/// One of several: campaigns in etcd.
fn elect(
    config: &Config,
    address: SocketAddr,
    prefix: String,
    supervisor: &Supervisor,
) -> (Store, Seat) {
    let members = Members::new(config.etcd.clone(), &supervisor.platform().network);
    let (resigned, given_up) = watch::channel(0);
    let scheme = if supervisor.platform().credentials.is_some() { "https" } else { "http" };
    let own = format!("{scheme}://{address}");
    let campaign = Campaign {
        members: members.clone(),
        name: format!("{prefix}leader"),
        advertise: config.advertise.clone().unwrap_or(own),
        lease_seconds: config.lease_seconds,
        resigned: given_up,
    };
    let why = "no answer from etcd yet".to_owned();
    let (sender, standing) = watch::channel(Standing::Cut { why });
    let owner = supervisor.clone();
    supervisor.spawn_once("election", async move {
        election::run(campaign, sender, &owner).await;
        Ok(())
    });
    (Store::Etcd(EtcdStore::new(members, prefix)), Seat { standing, resigned })
}

/// Keeps `/readyz` at what the service would answer. A standby is ready: it answers who leads.
fn report_readiness(
    leadership: watch::Receiver<Leadership>,
    metrics: Metrics,
) -> impl FnMut() -> std::pin::Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>> + Send {
    move || {
        let (mut leadership, metrics) = (leadership.clone(), metrics.clone());
        Box::pin(async move {
            loop {
                let unready = match &*leadership.borrow_and_update() {
                    Leadership::Held(_) | Leadership::Elsewhere { .. } => None,
                    Leadership::Closed { why, .. } => Some(why.clone()),
                };
                metrics.set_unready(unready);
                if leadership.changed().await.is_err() {
                    return Ok(());
                }
            }
        })
    }
}
