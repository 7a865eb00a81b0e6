//! Whether Karpenter runs: while it does, Longshore does nothing.
//!
//! Invariant: one look tells less than the watcher's own, which sees whether the Lease changes: a
//! Lease that was renewed a short while ago by this machine's clock counts as alive, one without a
//! holder never.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::facts::{Facts, Kind, name};
use super::{Finding, Severity};

/// A Lease that was renewed this recently is alive. Karpenter renews every 2 s; the rest is what
/// clocks may differ by.
const RECENT: SignedDuration = SignedDuration::from_secs(60);

/// A Lease of Karpenter's that somebody holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The Lease, as `Lease/namespace/name`.
    pub lease: String,
    /// Its namespace.
    pub namespace: String,
    /// Who holds it.
    pub holder: String,
    /// How long ago it was renewed, in seconds; none when it does not say.
    pub age_seconds: Option<i64>,
    /// True when it was renewed lately.
    pub alive: bool,
}

/// Karpenter's Leases that have a holder.
pub fn held(facts: &Facts) -> Vec<Held> {
    facts.of(Kind::Lease).filter_map(|lease| of_lease(lease, facts.now())).collect()
}

fn of_lease(lease: &Value, now: Timestamp) -> Option<Held> {
    let spec = &lease["spec"];
    let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
    let renewed: Option<Timestamp> = spec["renewTime"].as_str().and_then(|at| at.parse().ok());
    let age = renewed.map(|renewed| now.duration_since(renewed));
    Some(Held {
        lease: name("Lease", lease),
        namespace: lease["metadata"]["namespace"].as_str().unwrap_or_default().to_owned(),
        holder: holder.to_owned(),
        age_seconds: age.map(|age| age.as_secs()),
        // A clock that is behind sees renewals in its future.
        alive: age.is_none_or(|age| age.abs() < RECENT),
    })
}

/// Karpenter at work.
pub fn check(facts: &Facts) -> Vec<Finding> {
    let alive = held(facts).into_iter().filter(|held| held.alive);
    alive.map(|held| finding(&held)).collect()
}

fn finding(held: &Held) -> Finding {
    Finding {
        severity: Severity::Problem,
        object: held.lease.clone(),
        message: "Karpenter runs in this cluster; Longshore does nothing while it does".to_owned(),
        evidence: evidence(held),
        remedy: format!(
            "longshore doctor --takeover   # what would be taken over\n\
             helm uninstall karpenter --namespace {0}\n\
             # or, to be able to go back at once:\n\
             kubectl scale deployment karpenter --namespace {0} --replicas 0",
            held.namespace
        ),
    }
}

/// Who holds a Lease, and how long ago it was renewed.
pub fn evidence(held: &Held) -> String {
    let when = held.age_seconds.map_or_else(
        || "it does not say when it was renewed".to_owned(),
        |age| format!("renewed {age} s ago by this machine's clock"),
    );
    format!("held by {}, {when}", held.holder)
}
