//! `longshore up`: watcher, scheduler and actuator in one process, for one cluster in one region.
//!
//! Invariant: the three are the ones that run apart, joined by the same protocol over loopback; no
//! part reaches into another. Without etcd the cluster's Lease elects: scheduler and actuator exist
//! only while this process holds it, and with the Lease the process ends, since its ledger in memory
//! may not outlive it. Until it has ended it does nothing in EC2 without the Lease either.

mod journal;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use longshore_actuator::cloud::Permit;
use longshore_actuator::ledger::Journal;
use longshore_actuator::{Sharing, Tuning};
use longshore_runtime::metrics::Metrics;
use longshore_runtime::tasks::Supervisor;
use longshore_runtime::{process, server};
use longshore_scheduler::settings::Settings;
use longshore_watcher::api::keys::labels::REGION;
use longshore_watcher::counters::Counters;
use longshore_watcher::lease::Tenure;
use longshore_watcher::{Duty, Watcher};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::args::UpArgs;
use journal::ConfigMapJournal;

/// Loopback, any free port.
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Life of a leader's lease in etcd; there is no etcd here, so it bounds nothing.
const LEASE_SECONDS: u32 = 3;
/// Nodes that are asked for their region: the first will do, unless it is a node of elsewhere.
const NODES_ASKED: u32 = 10;

/// Runs until told to end.
#[must_use]
pub fn run(args: &UpArgs) -> ExitCode {
    let (telemetry, args) = (args.telemetry.clone(), args.clone());
    process::run(
        "longshore-up",
        &telemetry,
        |supervisor| async move { start(&args, &supervisor).await },
    )
}

/// Starts the watcher on a supervisor, and the other two once it holds the Lease.
///
/// # Errors
/// When the cluster cannot be reached, its region is not known, or an address cannot be bound.
pub async fn start(args: &UpArgs, supervisor: &Supervisor) -> anyhow::Result<()> {
    tracing::warn!(
        "cluster and cloud credentials meet in this process; run longshore-watcher, \
         longshore-scheduler and longshore-actuator apart to keep them apart"
    );
    let scheduler = server::bind(LOOPBACK).await?;
    let watcher = watcher_args(args, &format!("http://{}", scheduler.local_addr()?));
    let config = watcher.config()?;
    let client = watcher.kube_client().await?;
    let region = region(args, &client).await?;
    let metrics = process::serve_metrics(args.metrics_listen, supervisor).await?;
    let config = longshore_watcher::Config { region: region.clone(), ..config };
    let (journal, namespace) = (client.clone(), config.namespace.clone());
    let counters = Counters::registered(&metrics);
    let watcher = Watcher::start_with(config, client, supervisor, counters).await?;
    let actuator = actuator_config(args, region);
    let (settings, tenure) = (args.settings.settings(), watcher.tenure);
    let permit = permit(tenure);
    let journal = Arc::new(ConfigMapJournal::new(journal, &namespace, Arc::clone(&permit)));
    let leave = (permit, journal as Arc<dyn Journal>);
    let term = Term { actuator, leave, scheduler, settings, metrics };
    supervisor.spawn_once("term", term.serve(watcher.duty, supervisor.clone()));
    Ok(())
}

/// What is done while the Lease is held.
struct Term {
    actuator: longshore_actuator::Config,
    /// Leave to act in EC2, and where shared calls are noted.
    leave: (Permit, Arc<dyn Journal>),
    scheduler: TcpListener,
    settings: Settings,
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
        let (actuator, leave) = (self.actuator, self.leave);
        let starting =
            longshore_actuator::start_permitted(actuator, leave, &self.metrics, &supervisor);
        let actuator = starting.await?;
        let actuator_endpoints = vec![format!("http://{actuator}")];
        let settings = self.settings;
        let planner = longshore_scheduler::args::Config {
            actuator_endpoints,
            settings,
            memory_mib: longshore_scheduler::memory::MIB_DEFAULT,
        };
        let counters = longshore_scheduler::counters::Counters::registered(&self.metrics);
        longshore_scheduler::start_with(planner, self.scheduler, &supervisor, counters)?;
        let over = duty.wait_for(|duty| *duty != Duty::Working);
        match token.run_until_cancelled(over).await {
            Some(_) if !token.is_cancelled() => anyhow::bail!(
                "the Lease is lost; this process ends, and stands by when it is started again"
            ),
            _ => Ok(()),
        }
    }
}

/// Leave to act in EC2: asked before each effect, since a process that was stopped for a while goes on in the
/// middle of what it did.
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

fn watcher_args(args: &UpArgs, scheduler_endpoint: &str) -> longshore_watcher::Args {
    longshore_watcher::Args {
        cluster_name: args.cluster_name.clone(),
        scheduler_endpoint: scheduler_endpoint.to_owned(),
        cluster: args.cluster.clone(),
        region: args.region.clone(),
        metrics_listen: None,
        telemetry: args.telemetry.clone(),
    }
}

fn actuator_config(args: &UpArgs, region: String) -> longshore_actuator::Config {
    longshore_actuator::Config {
        region,
        listen: LOOPBACK,
        metrics_listen: None,
        etcd_endpoints: Vec::new(),
        advertise: None,
        lease_seconds: LEASE_SECONDS,
        tuning: Tuning {
            inventory_interval: Duration::from(args.inventory_interval),
            // The watcher names it with the cluster's facts.
            interruption_queue: None,
            sharing: Sharing::Fresh,
        },
    }
}

/// The region: as given, else of the process's surroundings, else of the nodes.
async fn region(args: &UpArgs, client: &Client) -> anyhow::Result<String> {
    let given = args.region.clone().or_else(|| args.aws_region.clone());
    if let Some(region) = given.filter(|region| !region.is_empty()) {
        return Ok(region);
    }
    let some = ListParams::default().limit(NODES_ASKED);
    let nodes = Api::<Node>::all(client.clone()).list(&some).await;
    let nodes = nodes.context("nodes cannot be listed to learn the region; give --region")?;
    let mut labels = nodes.items.into_iter().filter_map(|node| node.metadata.labels);
    labels.find_map(|labels| labels.get(REGION).cloned()).with_context(|| {
        format!("--region is missing, and no node has the label {REGION}; give it")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use tokio::time::Instant;

    use super::*;
    use crate::args::{Args, Command};

    #[tokio::test(start_paused = true)]
    async fn leave_to_act_in_ec2_lasts_as_long_as_the_lease() {
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

    #[test]
    fn the_parts_are_told_what_they_need() {
        let line = ["longshore", "up", "--cluster-name", "c", "--interruption-queue", "q"];
        let Command::Up(args) = Args::try_parse_from(line).unwrap().command else { panic!("up") };
        let watcher = watcher_args(&args, "http://127.0.0.1:7").config().unwrap();
        assert_eq!(
            (watcher.interruption_queue.as_str(), watcher.cluster_name.as_str()),
            ("q", "c")
        );
        let actuator = actuator_config(&args, "eu-west-1".to_owned());
        assert!(actuator.etcd_endpoints.is_empty() && actuator.listen.ip().is_loopback());
        assert_eq!(actuator.region, "eu-west-1");
    }
}
