//! The scheduler dies in the middle of a scale-out: it keeps nothing, so nothing is lost.

use anyhow::Result;

use super::crowd::Crowd;

#[tokio::test]
async fn kill_scheduler() -> Result<()> {
    let mut crowd = Crowd::start("scheduler", 40, |_| {}).await?;
    crowd.arrive().await?;
    crowd.launching(1).await?;
    crowd.fleet.scheduler(0)?.kill()?;
    crowd.fleet.restart_scheduler(0).await?;
    crowd.settled().await
}
