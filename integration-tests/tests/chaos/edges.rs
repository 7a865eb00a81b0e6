//! Two parties that no longer hear each other: on each road of a fleet everything waits, and then
//! everything is refused, until that has been noticed; pods come meanwhile.

use anyhow::{Result, ensure};
use longshore_it::parts::poll;
use longshore_it::stage::edges::{Edge, Edges};
use longshore_it::stage::eyes;

use super::{succeeded, told, unharmed};
use crate::kill::crowd::{Crowd, LIMIT};

/// Pods at the start, and those that come while a road is cut.
const PODS: u32 = 4;
const MORE: u32 = 2;
/// What a watcher says that does not reach its Lease any more.
const NO_LEASE: &str = "this watcher no longer works";

/// The two ways in which a road can be cut.
const CUTS: [fn(&Edges, Edge); 2] = [Edges::stall, Edges::close];

async fn start(name: &str, actuators: bool) -> Result<Crowd> {
    let crowd = if actuators {
        Box::pin(Crowd::start(name, PODS, |config| config.actuators = 2)).await?
    } else {
        Box::pin(Crowd::start(name, PODS, |_| {})).await?
    };
    crowd.arrive().await?;
    unharmed(&crowd).await?;
    Ok(crowd)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_roads_from_and_to_the_scheduler_are_cut() -> Result<()> {
    let mut crowd = start("cut-scheduler", false).await?;
    for edge in [Edge::WatcherScheduler, Edge::SchedulerActuator] {
        for cut in CUTS {
            redialled(&mut crowd, edge, cut).await?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_road_to_ec2_is_cut() -> Result<()> {
    let mut crowd = start("cut-ec2", false).await?;
    for cut in CUTS {
        redialled(&mut crowd, Edge::ActuatorEc2, cut).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_roads_to_the_api_server_and_to_etcd_are_cut() -> Result<()> {
    let mut crowd = start("cut-stores", true).await?;
    for cut in CUTS {
        without_lease(&mut crowd, cut).await?;
    }
    for cut in CUTS {
        without_etcd(&mut crowd, cut).await?;
    }
    Ok(())
}

/// Cuts a road until somebody gives a connection up and dials anew; nothing is served meanwhile.
async fn redialled(crowd: &mut Crowd, edge: Edge, cut: fn(&Edges, Edge)) -> Result<()> {
    let running = running(crowd).await?;
    let before = crowd.fleet.edges.connections(edge);
    cut(&crowd.fleet.edges, edge);
    crowd.grow(MORE).await?;
    poll::until(&format!("{edge:?} is dialled anew"), LIMIT, || async {
        let dialled = crowd.fleet.edges.connections(edge) - before;
        ensure!(dialled >= 2, "{dialled} connections");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    unserved(crowd, running).await?;
    crowd.fleet.edges.heal(edge);
    unharmed(crowd).await
}

/// Cuts the road to the API server until the watcher has given its Lease up for lost.
async fn without_lease(crowd: &mut Crowd, cut: fn(&Edges, Edge)) -> Result<()> {
    let running = running(crowd).await?;
    let before = told(crowd.fleet.watcher(0)?, NO_LEASE)?;
    cut(&crowd.fleet.edges, Edge::WatcherApiServer);
    crowd.grow(MORE).await?;
    poll::until("the watcher has no Lease", LIMIT, || {
        let given_up = crowd.fleet.watcher(0).and_then(|process| told(process, NO_LEASE));
        async move {
            ensure!(given_up? > before, "it still works");
            Ok::<_, anyhow::Error>(())
        }
    })
    .await?;
    unserved(crowd, running).await?;
    crowd.fleet.edges.heal(Edge::WatcherApiServer);
    unharmed(crowd).await
}

/// Cuts the leading actuator alone off from etcd: another one leads, and serves.
async fn without_etcd(crowd: &mut Crowd, cut: fn(&Edges, Edge)) -> Result<()> {
    let leader = crowd.fleet.leader().await?.actuator;
    cut(&crowd.fleet.edges, Edge::ActuatorEtcd(leader));
    crowd.grow(MORE).await?;
    succeeded(crowd, leader).await?;
    unharmed(crowd).await?;
    crowd.fleet.edges.heal(Edge::ActuatorEtcd(leader));
    crowd.grow(MORE).await?;
    unharmed(crowd).await
}

async fn running(crowd: &Crowd) -> Result<usize> {
    Ok(eyes::look(&crowd.fleet.client, "default", "app=crowd").await?.running)
}

/// What came while a road is cut waits, and what ran before runs.
async fn unserved(crowd: &Crowd, before: usize) -> Result<()> {
    let now = running(crowd).await?;
    ensure!(now == before, "{now} pods run after {before}: the road is not cut, or pods were lost");
    Ok(())
}
