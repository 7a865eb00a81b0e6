//! `longshore up`: watcher, scheduler and actuator in one process, for one cluster in one region.
//!
//! Invariant: only what the process takes from outside is found here, and handed to
//! [`longshore_standalone`]: arguments, the region, the cluster's client, AWS, sockets.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use longshore_runtime::inner::inner;
use longshore_runtime::listener::Listener;
use longshore_runtime::platform::Platform;
use longshore_runtime::tasks::Supervisor;
use longshore_runtime::{process, server};
use longshore_standalone::announce::Announcement;
use longshore_standalone::{Ground, Parts};
use longshore_watcher::api::keys::labels::REGION;

use crate::args::UpArgs;

/// Nodes that are asked for their region: the first will do, unless it is a node of elsewhere.
const NODES_ASKED: u32 = 10;

/// Runs until told to end.
#[must_use]
pub fn run(args: &UpArgs) -> ExitCode {
    let (process, args) = (args.process.clone(), args.clone());
    process::run(
        "longshore-up",
        &process,
        |supervisor| async move { start(&args, &supervisor).await },
    )
}

/// Starts all three on a supervisor; two of them wait for the Lease.
///
/// # Errors
/// When the cluster cannot be reached, its region is not known, or an address cannot be bound.
pub async fn start(args: &UpArgs, supervisor: &Supervisor) -> anyhow::Result<()> {
    tracing::warn!(
        "cluster and cloud credentials meet in this process; run longshore-watcher, \
         longshore-scheduler and longshore-actuator apart to keep them apart"
    );
    let (network, [scheduler, actuator]) = inner();
    let inside = Platform { network, ..supervisor.platform().clone() };
    let supervisor = &supervisor.on(inside);
    let planning = planning(args, supervisor).await?;
    let address = scheduler.address().context("the scheduler has no address")?;
    let watcher = watcher_args(args, &format!("http://{address}"));
    let config = watcher.config()?;
    let client = watcher.kube_client().await?;
    let region = region(args, &client).await?;
    let metrics = process::serve_metrics(args.metrics_listen, supervisor).await?;
    let cloud = longshore_actuator::connect(&region, &supervisor.platform().clock).await;
    let parts = Parts {
        watcher: longshore_watcher::Config { region, ..config },
        settings: args.settings.settings(),
        inventory_interval: Duration::from(args.inventory_interval),
        access: args.access.clone(),
    };
    let announcement = announcement(args, planning.as_ref());
    let ground = Ground { cloud, client, scheduler, actuator, planning, announcement, metrics };
    longshore_standalone::start(parts, ground, supervisor).await
}

/// Where others have plans computed and explained.
async fn planning(args: &UpArgs, supervisor: &Supervisor) -> anyhow::Result<Option<Listener>> {
    let Some(address) = args.listen else { return Ok(None) };
    args.process.tls.check_listen("--listen", address)?;
    let listener = Listener::from(server::bind(address).await?);
    Ok(Some(listener.secured(supervisor.platform().credentials.clone())))
}

/// The Service by which others come there.
fn announcement(args: &UpArgs, planning: Option<&Listener>) -> Option<Announcement> {
    let (service, address) = (args.service.clone()?, args.address?);
    let address = SocketAddr::new(address, planning?.address()?.port());
    Some(Announcement { service, namespace: args.cluster.namespace.clone(), address })
}

fn watcher_args(args: &UpArgs, scheduler_endpoint: &str) -> longshore_watcher::Args {
    longshore_watcher::Args {
        cluster_name: args.cluster_name.clone(),
        scheduler_endpoint: scheduler_endpoint.to_owned(),
        cluster: args.cluster.clone(),
        region: args.region.clone(),
        metrics_listen: None,
        process: args.process.clone(),
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

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn the_watcher_is_told_what_it_needs() {
        let line = ["longshore", "up", "--cluster-name", "c", "--interruption-queue", "q"];
        let Command::Up(args) = Args::try_parse_from(line).unwrap().command else { panic!("up") };
        let watcher = watcher_args(&args, "http://127.0.0.1:7").config().unwrap();
        let told =
            [&watcher.interruption_queue, &watcher.cluster_name, &watcher.scheduler_endpoint];
        assert_eq!(told, ["q", "c", "http://127.0.0.1:7"]);
    }
}
