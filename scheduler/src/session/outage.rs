//! Why nothing can be bought for a cluster at present, as far as its region is concerned.
//!
//! Invariant: neither a change of leaders nor the start of the process is an outage: they are over
//! before one is announced.

use std::time::Duration;

use longshore_proto::reason::Reason;
use longshore_proto::types::v1::ClusterFacts;
use tokio::time::Instant;
use tonic::Status;

use crate::region::directory::{Regions, Unfound};

/// How long a region may be without a leading actuator before people are told: longer than a
/// standby takes to follow a dead leader.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(5);
/// Most actuators whose trouble is told.
const TROUBLES_TOLD: usize = 3;

/// Name of the outage that naming an account ends.
const ACCOUNT_REQUIRED: &str = "AccountRequired";

/// An outage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// CamelCase, stable.
    pub reason: &'static str,
    /// What is missing, and the way out.
    pub message: String,
}

impl Outage {
    /// The refusal of a question that needs the region.
    #[must_use]
    pub fn status(&self) -> Status {
        let reason = match self.reason {
            ACCOUNT_REQUIRED => Reason::AccountRequired,
            _ => Reason::RegionUnreachable,
        };
        reason.status(self.message.clone())
    }
}

/// Logs that the outage of a cluster's region is another than before.
pub fn tell(cluster: &str, before: Option<&Outage>, now: Option<&Outage>) {
    if before.map(|outage| outage.reason) == now.map(|outage| outage.reason) {
        return;
    }
    match now {
        Some(Outage { reason, message }) => tracing::warn!(cluster, reason, "{message}"),
        None => tracing::info!(cluster, "the cluster's region is within reach again"),
    }
}

/// The outage of a cluster's region, if there is one.
#[must_use]
pub fn of(facts: Option<&ClusterFacts>, regions: &Regions) -> Option<Outage> {
    let name = facts?.region.as_str();
    if name.is_empty() {
        let message = "the region of the cluster is not known: no node has the label \
                       topology.kubernetes.io/region; start the watcher with --region";
        return Some(Outage { reason: "RegionUnknown", message: message.to_owned() });
    }
    let account = facts.map_or("", |facts| facts.account_id.as_str());
    let region = match regions.find(account, name) {
        Ok(region) => region,
        Err(Unfound::Unserved) => {
            let late = regions.age() >= ANNOUNCED_AFTER;
            return late.then(|| unserved(account, name, regions));
        }
        Err(Unfound::Accounts(accounts)) => return Some(ambiguous(name, &accounts)),
    };
    let since: Instant = region.read(|state| state.lost)?;
    (since.elapsed() >= ANNOUNCED_AFTER).then(|| lost(name, regions))
}

fn ambiguous(name: &str, accounts: &[String]) -> Outage {
    let message = format!(
        "actuators of several accounts serve region {name} ({}), and the cluster does not say which \
         is its own; start the watcher with --account-id",
        accounts.join(", ")
    );
    Outage { reason: ACCOUNT_REQUIRED, message }
}

fn unserved(account: &str, name: &str, regions: &Regions) -> Outage {
    let known = regions.names();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let message = format!(
        "no actuator of region {name}{} is within the scheduler's reach (regions that are: {known}); \
         start one with --region {name} and add it to the scheduler's --actuator-endpoints, or \
         correct the watcher's --region{}",
        if account.is_empty() { String::new() } else { format!(" and account {account}") },
        troubles(name, regions)
    );
    Outage { reason: "NoActuator", message }
}

fn lost(name: &str, regions: &Regions) -> Outage {
    let message = format!(
        "no actuator of region {name} leads at present: nothing is launched or ended there until one \
         does; look at the /readyz page of its actuators, and at etcd{}",
        troubles(name, regions)
    );
    Outage { reason: "ActuatorUnreachable", message }
}

fn troubles(name: &str, regions: &Regions) -> String {
    let told = regions.troubles(name).into_iter().take(TROUBLES_TOLD);
    told.map(|trouble| format!(". {trouble}")).collect()
}
