//! Processes that stop (SIGSTOP) in the middle of launches for longer than their leases and
//! connections live, and then go on (SIGCONT) as if no time had passed.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, ResourceExt as _};
use longshore_it::parts::poll;

use super::{TERMINATE, moved, succeeded, told, unharmed};
use crate::kill::crowd::{CREATE_FLEET, Crowd, LIMIT};

/// Pods at the start, and those that come while somebody is frozen.
const PODS: u32 = 6;
const MORE: u32 = 2;
/// What a watcher says that wakes up without its Lease.
const NO_LEASE: &str = "this watcher no longer works";
/// What a scheduler says when the connection of a session is gone.
const NO_SESSION: &str = "session ended";

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_watcher_and_each_frozen_scheduler_are_replaced() -> Result<()> {
    let start = Crowd::start("frozen-clients", PODS, |config| {
        (config.watchers, config.schedulers) = (2, 2);
    });
    let mut crowd = Box::pin(start).await?;
    crowd.arrive().await?;
    crowd.launching(1).await?;
    watcher(&mut crowd).await?;
    let first = crowd.fleet.session_holder()?;
    scheduler(&mut crowd, first).await?;
    scheduler(&mut crowd, 1 - first).await
}

async fn watcher(crowd: &mut Crowd) -> Result<()> {
    let first = poll::until("a watcher works", LIMIT, || crowd.fleet.working_watcher()).await?;
    crowd.fleet.watcher(first)?.freeze()?;
    poll::until("the standby works", LIMIT, || async {
        let works = crowd.fleet.working_watcher().await?;
        ensure!(works != first, "the Lease still names the frozen one");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    unharmed(crowd).await?;
    let before = lease(crowd).await?;
    let process = crowd.fleet.watcher(first)?;
    process.thaw()?;
    process.wait_for_line(NO_LEASE, LIMIT).await?;
    crowd.grow(MORE).await?;
    unharmed(crowd).await?;
    let now = lease(crowd).await?;
    ensure!(
        now == before,
        "{now:?} after {before:?}: the frozen one wrote a Lease that is not its"
    );
    Ok(())
}

/// Holder, transitions and epoch: what only a writer that works may change.
async fn lease(crowd: &Crowd) -> Result<(Option<String>, Option<i32>, Option<String>)> {
    let leases: Api<Lease> = Api::namespaced(crowd.fleet.client.clone(), "kube-system");
    let lease = leases.get("longshore-watcher").await?;
    let epoch = lease.annotations().get("longshore.dev/session-epoch").cloned();
    let spec = lease.spec.context("a Lease without a spec")?;
    Ok((spec.holder_identity, spec.lease_transitions, epoch))
}

async fn scheduler(crowd: &mut Crowd, first: usize) -> Result<()> {
    crowd.fleet.scheduler(first)?.freeze()?;
    crowd.grow(MORE).await?;
    moved(crowd, first).await?;
    unharmed(crowd).await?;
    let process = crowd.fleet.scheduler(first)?;
    let before = told(process, NO_SESSION)?;
    process.thaw()?;
    poll::until("the frozen scheduler's session is over", LIMIT, || {
        let ended = crowd.fleet.scheduler(first).and_then(|process| told(process, NO_SESSION));
        async move {
            ensure!(ended? > before, "it goes on");
            Ok::<_, anyhow::Error>(())
        }
    })
    .await?;
    crowd.grow(MORE).await?;
    unharmed(crowd).await?;
    ensure!(crowd.fleet.session_holder()? != first, "the session went back to a frozen one");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_leading_actuator_is_replaced_and_buys_nothing_of_its_own() -> Result<()> {
    let start = Crowd::start("frozen-leader", 4 * PODS, |config| config.actuators = 2);
    let mut crowd = Box::pin(start).await?;
    let first = poll::until("somebody leads", LIMIT, || crowd.fleet.leader()).await?;
    crowd.arrive().await?;
    crowd.launching(3).await?;
    crowd.fleet.actuator(first.actuator)?.freeze()?;
    succeeded(&crowd, first.actuator).await?;
    unharmed(&crowd).await?;
    let calls = crowd.fleet.region.calls();
    let known: BTreeSet<_> = calls.into_iter().filter_map(|call| call.client_token).collect();
    let before = crowd.fleet.calls_by(first.actuator).len();
    let process = crowd.fleet.actuator(first.actuator)?;
    process.thaw()?;
    process.wait_for_line("standing by", LIMIT).await?;
    let stale = crowd.fleet.calls_by(first.actuator).split_off(before);
    let bought = stale.iter().filter(|call| call.api == CREATE_FLEET);
    let new = bought.filter(|call| call.client_token.as_ref().is_none_or(|it| !known.contains(it)));
    let new: Vec<_> = new.chain(stale.iter().filter(|call| call.api == TERMINATE)).collect();
    ensure!(new.is_empty(), "{new:#?}");
    crowd.grow(MORE).await?;
    unharmed(&crowd).await?;
    etcd_member(&mut crowd).await
}

async fn etcd_member(crowd: &mut Crowd) -> Result<()> {
    let member = crowd.fleet.etcd.leader().await?;
    crowd.grow(MORE).await?;
    crowd.fleet.etcd.freeze(member)?;
    poll::until("the other members have a leader", LIMIT, || async {
        let leader = crowd.fleet.etcd.leader().await?;
        ensure!(leader != member, "a frozen member leads");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    unharmed(crowd).await?;
    crowd.fleet.etcd.thaw(member)?;
    crowd.fleet.etcd.ready().await?;
    crowd.grow(MORE).await?;
    unharmed(crowd).await
}
