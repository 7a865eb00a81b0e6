//! One of three etcd members dies during launches, the one that leads the others.

use anyhow::{Result, ensure};
use longshore_it::parts::poll;
use tokio::time::Instant;

use super::crowd::{Crowd, LIMIT, TAKEOVER_LIMIT};

#[tokio::test]
async fn kill_etcd_member() -> Result<()> {
    let mut crowd = Crowd::start("etcd", 40, |config| config.actuators = 2).await?;
    crowd.arrive().await?;
    crowd.launching(1).await?;
    let member = crowd.fleet.etcd.leader().await?;
    crowd.fleet.etcd.kill(member)?;
    let killed = Instant::now();
    poll::until("somebody leads", LIMIT, || crowd.fleet.leader()).await?;
    let took = killed.elapsed();
    ensure!(took <= TAKEOVER_LIMIT, "somebody leads only after {took:?}");
    crowd.settled().await?;
    crowd.fleet.etcd.restart(member).await?;
    crowd.settled().await
}
