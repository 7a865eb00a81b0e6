//! Certificates that change all the time while a workload comes and goes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use kube::Client;
use longshore_it::parts::poll;
use longshore_it::stage::world::{ROOT, World, WorldConfig};
use longshore_it::stage::{eyes, hands};
use longshore_lab::region::{ACCOUNT, CLUSTER, RegionConfig};
use longshore_runtime::identity::Identity;

use super::REGION;

/// How often each of the three gets another certificate.
const ROTATIONS: usize = 50;
/// Each so many of them, the workload has another size.
const EACH: usize = 10;
const LIMIT: Duration = Duration::from_secs(60);
/// What a process logs that has read its first certificate.
const READ: &str = "certificate read";
/// What one logs that has taken over another.
const CHANGED: &str = "certificate changed";

#[tokio::test(flavor = "multi_thread")]
async fn pods_come_and_go_while_certificates_change() -> Result<()> {
    let dir = crate::kept_dir("rotation-")?;
    let config = WorldConfig::new(RegionConfig::simple(REGION)?, CLUSTER, &dir);
    let world = World::start(config).await?;
    let demo = hands::manifests(&Path::new(ROOT).join("integration-tests/demo"))?;
    hands::apply(&world.client, &demo).await?;
    // One that has yet to start would read the second one first.
    have_logged(&world, READ, 1).await?;
    let sizes = [4, 40, 4].into_iter().cycle();
    for (turn, size) in (0..ROTATIONS / EACH).zip(sizes) {
        hands::scale(&world.client, "default", "web", size).await?;
        for number in 1..=EACH {
            rotate(&world, turn * EACH + number).await?;
        }
        running(&world.client, size).await?;
    }
    ensure!(restarts(&world)? == 0, "a session was lost for want of a certificate");
    Ok(())
}

/// Signs anew for all three, and waits until they have it.
async fn rotate(world: &World, count: usize) -> Result<()> {
    let [account, region, name] = [ACCOUNT, REGION, CLUSTER].map(str::to_owned);
    let actuator = Identity::Actuator { account: account.clone(), region: region.clone() };
    for identity in [Identity::Scheduler, actuator, Identity::Cluster { account, region, name }] {
        world.keys.sign(&identity)?;
    }
    have_logged(world, CHANGED, count).await
}

/// Waits until each of the three has logged something so often.
async fn have_logged(world: &World, text: &str, count: usize) -> Result<()> {
    let processes = [&world.watcher, &world.scheduler.process, &world.actuator.process];
    poll::until("all have their certificates", LIMIT, || async {
        for process in processes {
            let seen = process.log()?.matches(text).count();
            ensure!(seen >= count, "{seen} of {count}: {text}");
        }
        Ok::<_, anyhow::Error>(())
    })
    .await
}

async fn running(client: &Client, size: u32) -> Result<()> {
    poll::until("the pods run", LIMIT, || async {
        let sight = eyes::look(client, "default", "app=web").await?;
        ensure!(sight.running == usize::try_from(size)?, "{sight:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Sessions that ended.
fn restarts(world: &World) -> Result<usize> {
    Ok(world.watcher.log()?.matches("session ended").count())
}
