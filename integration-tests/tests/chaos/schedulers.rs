//! Two schedulers behind one address, as behind a Service: the one with the session dies; then both
//! are rolled, as a Deployment does it.

use std::time::Duration;

use anyhow::{Result, ensure};
use longshore_it::parts::poll;

use super::{moved, told, unharmed};
use crate::kill::crowd::{Crowd, LIMIT};

/// Pods at the start, and those that come while a scheduler is away.
const PODS: u32 = 12;
const MORE: u32 = 3;
/// How long a scheduler may take to end that was asked to.
const END_LIMIT: Duration = Duration::from_secs(20);
/// What a watcher says that was asked to go elsewhere, and what it says that lost its scheduler.
const MOVING: &str = "moving the session to another scheduler";
const LOST: &str = "session ended:";

#[tokio::test(flavor = "multi_thread")]
async fn the_other_scheduler_takes_over_from_one_that_dies_or_is_rolled() -> Result<()> {
    let start = Crowd::start("schedulers", PODS, |config| config.schedulers = 2);
    let mut crowd = Box::pin(start).await?;
    crowd.arrive().await?;
    crowd.launching(1).await?;
    let first = crowd.fleet.session_holder()?;
    crowd.fleet.scheduler(first)?.kill()?;
    crowd.grow(MORE).await?;
    moved(&crowd, first).await?;
    unharmed(&crowd).await?;
    crowd.fleet.restart_scheduler(first).await?;
    roll(&mut crowd).await?;
    roll(&mut crowd).await
}

/// Ends the scheduler with the session, as a roll-out does, and starts it again.
async fn roll(crowd: &mut Crowd) -> Result<()> {
    let watcher = crowd.fleet.watcher(0)?;
    let (moves, losses) = (told(watcher, MOVING)?, told(watcher, LOST)?);
    let first = crowd.fleet.session_holder()?;
    crowd.fleet.scheduler(first)?.terminate()?;
    crowd.grow(MORE).await?;
    moved(crowd, first).await?;
    let status = crowd.fleet.scheduler(first)?.wait_for_exit(END_LIMIT).await?;
    ensure!(status.success(), "a scheduler that was asked to end: {status}");
    unharmed(crowd).await?;
    let watcher = crowd.fleet.watcher(0)?;
    let (moved, lost) = (told(watcher, MOVING)? - moves, told(watcher, LOST)? - losses);
    ensure!((moved, lost) == (1, 0), "moved {moved} times, lost {lost} times");
    crowd.fleet.restart_scheduler(first).await?;
    poll::until("a session is there", LIMIT, || async { crowd.fleet.session_holder() }).await?;
    Ok(())
}
