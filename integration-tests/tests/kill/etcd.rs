//! One of three etcd members dies during launches, the one that leads the others.

use anyhow::Result;

use super::crowd::Crowd;

#[tokio::test]
async fn kill_etcd_member() -> Result<()> {
    let mut crowd = Crowd::start("etcd", 40, |config| config.actuators = 2).await?;
    crowd.arrive().await?;
    crowd.launching(1).await?;
    let member = crowd.fleet.etcd.leader().await?;
    crowd.fleet.etcd.kill(member)?;
    crowd.settled().await?;
    crowd.fleet.etcd.restart(member).await?;
    crowd.settled().await
}
