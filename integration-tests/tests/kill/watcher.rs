//! The watcher dies in the middle of a scale-out: the next one goes on from the cluster's objects.

use anyhow::{Result, ensure};
use longshore_it::parts::poll;

use super::crowd::{Crowd, LIMIT};

#[tokio::test]
async fn kill_watcher() -> Result<()> {
    let mut crowd = Crowd::start("watcher", 40, |config| config.real = true).await?;
    crowd.arrive().await?;
    crowd.launching(1).await?;
    crowd.fleet.watcher(0)?.kill()?;
    crowd.fleet.restart_watcher(0)?;
    crowd.settled().await
}

#[tokio::test]
async fn kill_watcher_with_a_standby() -> Result<()> {
    let mut crowd = Crowd::start("watchers", 40, |config| config.watchers = 2).await?;
    crowd.arrive().await?;
    crowd.launching(1).await?;
    let first = poll::until("a watcher works", LIMIT, || crowd.fleet.working_watcher()).await?;
    crowd.fleet.watcher(first)?.kill()?;
    poll::until("the standby works", LIMIT, || async {
        let works = crowd.fleet.working_watcher().await?;
        ensure!(works != first, "the Lease still names the dead one");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    crowd.settled().await
}
