//! What happens to processes besides death: they are stopped for a while and go on, lose each
//! other, wake up deposed, panic, and have clocks that are wrong.
//!
//! Invariant: whatever happens to our own processes, pods get nodes in the end, each launch has one
//! instance, and no instance ends: all pods and nodes of these tests are wanted from their
//! beginning to the test's end.

use anyhow::{Result, ensure};
use longshore_it::parts::{Process, poll};

use crate::kill::crowd::{Crowd, LIMIT};

mod clocks;
mod deposed;
mod edges;
mod freeze;
mod panics;
mod regions;
mod schedulers;

/// Call that ends instances.
const TERMINATE: &str = "ec2:TerminateInstances";

/// How many lines with `text` a process has written.
fn told(process: &Process, text: &str) -> Result<usize> {
    Ok(process.log()?.lines().filter(|line| line.contains(text)).count())
}

/// Waits until the session is with another scheduler than `than`.
async fn moved(crowd: &Crowd, than: usize) -> Result<usize> {
    poll::until("the session is with another scheduler", LIMIT, || async {
        let holder = crowd.fleet.session_holder()?;
        ensure!(holder != than, "scheduler {holder} still has it");
        Ok::<_, anyhow::Error>(holder)
    })
    .await
}

/// Waits until another actuator leads than `than`.
async fn succeeded(crowd: &Crowd, than: usize) -> Result<usize> {
    poll::until("another actuator leads", LIMIT, || async {
        let leader = crowd.fleet.leader().await?;
        ensure!(leader.actuator != than, "actuator {than} still leads");
        Ok::<_, anyhow::Error>(leader.actuator)
    })
    .await
}

/// Everything runs, all books agree, and nobody has asked EC2 to end anything.
async fn unharmed(crowd: &Crowd) -> Result<()> {
    crowd.settled().await?;
    let ended = crowd.fleet.region.calls_of(TERMINATE);
    ensure!(ended.is_empty(), "{ended:#?}; logs in {}", crowd.fleet.log_dir().display());
    Ok(())
}
