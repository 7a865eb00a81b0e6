//! The leading actuator dies, or loses an answer of EC2, in the middle of launches.

use anyhow::{Result, ensure};
use longshore_it::parts::poll;
use longshore_lab::region::Fault;
use tokio::time::Instant;

use super::crowd::{CREATE_FLEET, Crowd, LIMIT, TAKEOVER_LIMIT};

// Region, cluster and kubelets live in this process: on one thread they would hold up the clock.
#[tokio::test(flavor = "multi_thread")]
async fn kill_leading_actuator_in_200_launches() -> Result<()> {
    let mut crowd = Crowd::start("leader", 200, |config| config.actuators = 3).await?;
    let first = poll::until("somebody leads", LIMIT, || crowd.fleet.leader()).await?;
    crowd.arrive().await?;
    crowd.launching(40).await?;
    crowd.fleet.actuator(first.actuator)?.kill()?;
    let killed = Instant::now();
    let next = poll::until("a standby leads", LIMIT, || crowd.fleet.leader()).await?;
    let took = killed.elapsed();
    ensure!(next.term > first.term, "{next:?} after {first:?}");
    ensure!(took <= TAKEOVER_LIMIT, "a standby leads only after {took:?}");
    crowd.settled().await
}

#[tokio::test]
async fn kill_connection_between_create_fleet_and_reply() -> Result<()> {
    let crowd = Crowd::start("reply", 10, |_| {}).await?;
    crowd.fleet.region.clear_faults();
    crowd.fleet.region.fail_next_calls(CREATE_FLEET, 5, &Fault::DropAfter);
    crowd.arrive().await?;
    crowd.settled().await
}
