//! `longshore up`: watcher, scheduler and actuator in one process, elected by the cluster's Lease.
//!
//! Invariant: no copy is told its region, and what a copy did is read from the region's own record
//! of calls.

use std::time::Duration;

use anyhow::{Result, ensure};
use longshore_it::parts::poll;
use longshore_it::stage::together::Together;
use longshore_it::stage::{eyes, hands};
use longshore_lab::instance::InstanceSource as _;
use longshore_lab::region::{Fault, RegionConfig};
use serde_json::Value;

use crate::kill::crowd::{CREATE_FLEET, asked_for, supply, workload};

/// Most time for anything on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);
/// How late the region's answer to a launch is: time enough to kill somebody in between.
const ANSWER_DELAY_MS: u32 = 700;
/// Pods before and after the scale-out; each needs a node of its own.
const FEW: u32 = 3;
const MANY: u32 = 12;

/// A stage with node class, pool and a crowd of pods that each need a node.
async fn start(name: &str, copies: usize) -> Result<Together> {
    let dir = crate::kept_dir(&format!("up-{name}-"))?;
    let config = RegionConfig::simple("eu-west-1")?;
    let together = Box::pin(Together::start(config, copies, &dir)).await?;
    let mut supply = supply();
    supply[1]["spec"]["disruption"]["consolidateAfter"] = Value::from("1s");
    hands::apply(&together.client, &supply).await?;
    hands::apply(&together.client, &[workload(FEW)]).await?;
    Ok(together)
}

/// Waits until this many pods run and all books agree, with no node too many.
async fn settled(together: &Together, pods: u32) -> Result<()> {
    let pods = usize::try_from(pods)?;
    let what = format!("{pods} pods run and the books agree");
    let settled = poll::until(&what, LIMIT, || async {
        let sight = eyes::look(&together.client, "default", "app=crowd").await?;
        ensure!(sight.running == pods && sight.pending == 0, "{sight:?}");
        ensure!(sight.all_nodes == pods, "{} nodes for {pods} pods", sight.all_nodes);
        together.reconciled().await
    });
    let logs = together.dir.display();
    settled.await.map_err(|error| error.context(format!("logs in {logs}")))
}

// Region, cluster and kubelets live in this process: on one thread they would hold up the clock.
#[tokio::test(flavor = "multi_thread")]
async fn up_makes_nodes_for_pods_and_takes_them_away() -> Result<()> {
    let together = start("one", 1).await?;
    settled(&together, FEW).await?;
    let copy = together.copy(0)?;
    let log = copy.process.log()?;
    ensure!(log.contains("eu-west-1"), "the region is not that of the nodes");
    for path in ["/healthz", "/readyz"] {
        copy.page(path).await?;
    }
    let metrics = copy.page("/metrics").await?;
    for metric in ["longshore_watcher_directives_total", "longshore_actuator_launches_total"] {
        ensure!(metrics.contains(metric), "{metric} is not among the metrics:\n{metrics}");
    }
    hands::scale(&together.client, "default", "crowd", 0).await?;
    settled(&together, 0).await?;
    let launched = together.region.instances().len();
    ensure!(launched == usize::try_from(FEW)?, "{launched} instances were made for {FEW} pods");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn up_stands_by_and_takes_over_from_a_copy_killed_in_its_launches() -> Result<()> {
    let mut together = start("two", 2).await?;
    settled(&together, FEW).await?;
    let leader = together.working().await?;
    let standby = 1 - leader;
    together.copy(standby)?.page("/readyz").await?;
    let calls = together.calls_by(standby)?;
    ensure!(calls.is_empty(), "the standby called AWS: {calls:#?}");

    together.region.fail_next_calls(CREATE_FLEET, 2 * MANY, &Fault::Slow(ANSWER_DELAY_MS));
    hands::scale(&together.client, "default", "crowd", MANY).await?;
    poll::until("launches are under way", LIMIT, || async {
        let asked = asked_for(&together.region);
        ensure!(asked > usize::try_from(FEW)?, "{asked} instances asked for");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    together.kill(leader)?;
    let calls = together.calls_by(standby)?;
    ensure!(calls.is_empty(), "the standby called AWS: {calls:#?}");

    settled(&together, MANY).await?;
    ensure!(together.working().await? == standby, "the Lease names a dead copy");
    let launched = together.region.instances().len();
    ensure!(launched == usize::try_from(MANY)?, "{launched} instances were made for {MANY} pods");
    let calls = together.calls_by(standby)?;
    ensure!(!calls.is_empty(), "the standby did nothing for the new pods");
    let calls = together.region.calls_of(CREATE_FLEET);
    ensure!(calls.iter().any(|call| call.instances > 1), "no call is for several: {calls:#?}");
    hands::scale(&together.client, "default", "crowd", 0).await?;
    settled(&together, 0).await
}
