//! Watcher, scheduler and actuator in one process, for one cluster in one region: what `longshore
//! up` starts, and the simulation with a cloud of its own.
//!
//! Invariant: the three are the ones that run apart, joined by the same protocol over listeners
//! that nobody else reaches; no part reaches into another. Without etcd the cluster's Lease elects:
//! scheduler and actuator exist only while this process holds it, and with the Lease the process
//! ends, since its ledger in memory may not outlive it. Until it has ended it does nothing in the
//! cloud without the Lease either.

pub mod announce;
#[cfg(test)]
mod documented;
pub mod journal;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use longshore_actuator::cloud::{Cloud, Permit};
use longshore_actuator::policy::PolicyArgs;
use longshore_actuator::{EtcdArgs, Sharing, Sole, Tuning};
use longshore_runtime::backoff::BackoffPolicy;
use longshore_runtime::listener::Listener;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::server::{AccessArgs, GrpcServer};
use longshore_runtime::tasks::{OnError, Supervisor};
use longshore_scheduler::settings::Settings;
use longshore_scheduler::{Apart, Doors};
use longshore_watcher::counters::Counters;
use longshore_watcher::lease::Tenure;
use longshore_watcher::{Duty, Watcher, bounded};
use tokio::sync::watch;

use announce::Announcement;
use journal::ConfigMapJournal;

/// Life of a leader's lease in etcd; there is no etcd here, so it bounds nothing.
const LEASE_SECONDS: u32 = 3;

/// What the parts are told.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The watcher; its scheduler is at the address of [`Ground::scheduler`], and its region is the
    /// actuator's.
    pub watcher: longshore_watcher::Config,
    /// How plans are made.
    pub settings: Settings,
    /// Time between two listings of instances while any is starting or ending; longer otherwise.
    pub inventory_interval: Duration,
    /// Whom it answers at [`Ground::planning`].
    pub access: AccessArgs,
}

/// What they stand on.
pub struct Ground {
    /// The cloud of the watcher's region.
    pub cloud: Arc<dyn Cloud>,
    /// A client of the cluster's API server.
    pub client: kube::Client,
    /// Where the watcher finds the scheduler; in this process alone.
    pub scheduler: Listener,
    /// Where the scheduler finds the actuator; in this process alone.
    pub actuator: Listener,
    /// Where others have plans computed and explained, and look on at the region; nowhere when
    /// absent.
    pub planning: Option<Listener>,
    /// The Service by which they come; none when they know the address.
    pub announcement: Option<Announcement>,
    /// What is counted, and whether the process is ready.
    pub metrics: Metrics,
}

/// Starts the watcher on a supervisor, and the other two once it holds the Lease.
///
/// # Errors
/// When the address of the scheduler is not one.
pub async fn start(parts: Parts, ground: Ground, supervisor: &Supervisor) -> anyhow::Result<()> {
    let Parts { watcher: config, settings, inventory_interval, access } = parts;
    let Ground { cloud, client, scheduler, actuator, planning, announcement, metrics } = ground;
    let listening = actuator.address().context("the actuator's listener has no address")?;
    let told = longshore_actuator::Config {
        region: config.region.clone(),
        listen: listening,
        metrics_listen: None,
        etcd: EtcdArgs::default(),
        advertise: None,
        lease_seconds: LEASE_SECONDS,
        access: AccessArgs::default(),
        policy: PolicyArgs::default(),
        tuning: Tuning {
            inventory_interval,
            // The watcher names it with the cluster's facts.
            interruption_queue: None,
            sharing: Sharing::Fresh,
        },
    };
    let (kept, namespace) = (client.clone(), config.namespace.clone());
    let counters = Counters::registered(&metrics, &config.cluster_name);
    let watcher = Watcher::start_with(config, client, supervisor, counters).await?;
    let journal = ConfigMapJournal::new(&kept, &namespace, watcher.tenure.clone());
    let tenure = watcher.tenure;
    let sole = Sole { cloud, permit: permit(tenure.clone()), journal: Arc::new(journal) };
    let actuator = Actuator { config: told, listener: actuator, sole };
    let client = bounded::client(&kept, Some(tenure));
    let announcing = announcement.map(|announcement| Announcing { announcement, client });
    let term = Term { actuator, scheduler, planning, announcing, settings, access, metrics };
    supervisor.spawn_once("term", term.serve(watcher.duty, supervisor.clone()));
    Ok(())
}

/// The actuator before it starts.
struct Actuator {
    config: longshore_actuator::Config,
    listener: Listener,
    sole: Sole,
}

/// What is done while the Lease is held.
struct Term {
    actuator: Actuator,
    scheduler: Listener,
    planning: Option<Listener>,
    announcing: Option<Announcing>,
    settings: Settings,
    access: AccessArgs,
    metrics: Metrics,
}

impl Term {
    /// Waits for the Lease, and then plans and launches until it is lost.
    async fn serve(
        self,
        mut duty: watch::Receiver<Duty>,
        supervisor: Supervisor,
    ) -> anyhow::Result<()> {
        let token = supervisor.token().clone();
        let begun = token.run_until_cancelled(begin(&mut duty, &self.metrics)).await;
        let Some(begun) = begun else { return Ok(()) };
        begun?;
        let Actuator { config, listener, sole } = self.actuator;
        let metrics = &self.metrics;
        let started =
            longshore_actuator::start_permitted(config, listener, sole, metrics, &supervisor)?;
        let (actuator, onlookers) = (started.address, started.onlookers);
        // Those who have plans computed may look on at the region as well.
        let furnish = Box::new(|server: GrpcServer| server.with_service(onlookers));
        let planning = self.planning.map(|listener| Apart { listener, furnish });
        let doors = Doors { all: self.scheduler, planning };
        let planner = longshore_scheduler::args::Config {
            actuator_endpoints: vec![format!("http://{actuator}")],
            settings: self.settings,
            memory_mib: longshore_scheduler::memory::MIB_DEFAULT,
            access: self.access,
        };
        let counters = longshore_scheduler::counters::Counters::registered(metrics);
        longshore_scheduler::start_with(planner, doors, &supervisor, counters)?;
        if let Some(announcing) = self.announcing {
            announcing.spawn(&supervisor);
        }
        let over = duty.wait_for(|duty| *duty != Duty::Working);
        match token.run_until_cancelled(over).await {
            Some(_) if !token.is_cancelled() => anyhow::bail!(
                "the Lease is lost; this process ends, and stands by when it is started again"
            ),
            _ => Ok(()),
        }
    }
}

/// Who says that this copy answers, and through what.
struct Announcing {
    announcement: Announcement,
    client: kube::Client,
}

impl Announcing {
    fn spawn(self, supervisor: &Supervisor) {
        let told = Arc::new(self);
        supervisor.spawn("announce", OnError::Restart(BackoffPolicy::NETWORK), move || {
            let told = Arc::clone(&told);
            async move { told.announcement.publish(&told.client).await }
        });
    }
}

/// Leave to act in the cloud: asked before each effect, since a process that was stopped for a
/// while goes on in the middle of what it did.
fn permit(tenure: Tenure) -> Permit {
    Arc::new(move || tenure.holds())
}

/// Waits until this process is the one to work. A standby is ready: it takes over by itself.
async fn begin(duty: &mut watch::Receiver<Duty>, metrics: &Metrics) -> anyhow::Result<()> {
    loop {
        let now = *duty.borrow_and_update();
        let unready = match now {
            Duty::Working => return Ok(()),
            Duty::Standby => None,
            Duty::Unknown => Some("the Lease has not been read yet".to_owned()),
        };
        metrics.set_unready(unready);
        duty.changed().await?;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn leave_to_act_in_the_cloud_lasts_as_long_as_the_lease() {
        let (tenure, term) = (Tenure::default(), Duration::from_secs(10));
        let permit = permit(tenure.clone());
        assert!(!permit(), "it was never held");
        tenure.extend(Instant::now() + term);
        assert!(permit());
        tokio::time::advance(term).await;
        assert!(!permit(), "it was not renewed");
        tenure.extend(Instant::now() + term);
        tenure.end_now();
        assert!(!permit(), "it was given up");
    }
}
