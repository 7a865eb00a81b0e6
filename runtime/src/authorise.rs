//! Who may call what: one table for all servers.
//!
//! Invariant: a method that is not in the table is nobody's. What the table grants is the kind of
//! caller; whose cluster or region a message is about, its service compares with the identity.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::identity::{Identity, is_plain};
use crate::net::Peer;

/// What a caller may be to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Is the watcher of a cluster.
    Cluster,
    /// Is a scheduler.
    Scheduler,
    /// Is an actuator.
    Actuator,
    /// A client that may have plans computed.
    Plan,
    /// A client that may ask why.
    Explain,
    /// A client that may look on at a region.
    Watch,
}

impl Right {
    const ALL: [Self; 6] =
        [Self::Cluster, Self::Scheduler, Self::Actuator, Self::Plan, Self::Explain, Self::Watch];
    /// Those that a client can be given.
    const GIVEN: [Self; 3] = [Self::Plan, Self::Explain, Self::Watch];
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cluster => "cluster",
            Self::Scheduler => "scheduler",
            Self::Actuator => "actuator",
            Self::Plan => "plan",
            Self::Explain => "explain",
            Self::Watch => "watch",
        })
    }
}

/// Each method, and who may call it.
pub const TABLE: [(&str, &[Right]); 12] = [
    ("/longshore.cluster.v1.ClusterService/Sync", &[Right::Cluster]),
    ("/longshore.planning.v1.PlanningService/ComputePlan", &[Right::Plan]),
    ("/longshore.planning.v1.PlanningService/StreamPlan", &[Right::Plan]),
    ("/longshore.planning.v1.PlanningService/ExplainPod", &[Right::Explain]),
    ("/longshore.planning.v1.PlanningService/ExplainNode", &[Right::Explain]),
    ("/longshore.capacity.v1.CapacityService/PutCluster", &[Right::Scheduler]),
    ("/longshore.capacity.v1.CapacityService/ApplyPlan", &[Right::Scheduler]),
    ("/longshore.capacity.v1.CapacityService/ForgetCluster", &[Right::Scheduler]),
    ("/longshore.capacity.v1.CapacityService/Watch", &[Right::Scheduler, Right::Watch]),
    ("/longshore.capacity.v1.CapacityService/ReadAudit", &[Right::Watch]),
    ("/grpc.health.v1.Health/", &Right::ALL),
    ("/grpc.reflection.v1.ServerReflection/", &Right::ALL),
];

/// Why somebody may not call a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nobody may, or there is no such method.
    #[error("{0} is no method that anybody may call")]
    Method(String),
    /// Nobody knows who calls.
    #[error("{method} needs a certificate with an identity; this caller has shown none")]
    Nobody {
        /// What was called.
        method: String,
    },
    /// Somebody else may.
    #[error("{identity} may not call {method}: it needs the right {needed}")]
    Forbidden {
        /// Who called.
        identity: Identity,
        /// What was called.
        method: String,
        /// What would have let it in.
        needed: String,
    },
}

/// Rights that clients are given, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clients(BTreeMap<String, BTreeSet<Right>>);

impl FromStr for Clients {
    type Err = String;

    /// `NAME=RIGHT+RIGHT,NAME=RIGHT`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut clients = BTreeMap::<String, BTreeSet<Right>>::new();
        for entry in text.split(',').filter(|entry| !entry.is_empty()) {
            let named = entry.split_once('=').filter(|(name, _)| is_plain(name));
            let (name, rights) =
                named.ok_or_else(|| format!("{entry:?} is no client; write NAME=plan+explain"))?;
            for right in rights.split('+') {
                let known = Right::GIVEN.into_iter().find(|known| known.to_string() == right);
                let known = known.ok_or_else(|| {
                    format!("{right:?} is no right; write plan, explain or watch")
                })?;
                clients.entry(name.to_owned()).or_default().insert(known);
            }
        }
        Ok(Self(clients))
    }
}

/// Lets callers in who have proved an identity that may call what they call.
#[derive(Clone, Debug)]
pub struct Guard(Arc<Clients>);

impl Guard {
    /// A guard that knows what clients may do.
    #[must_use]
    pub fn new(clients: Clients) -> Self {
        Self(Arc::new(clients))
    }

    /// Whether a peer may call a method, by its path.
    ///
    /// # Errors
    /// When it may not; the text says who may.
    pub fn admit(&self, peer: &Peer, method: &str) -> Result<(), Refusal> {
        let Some(rights) = rights(method) else { return Err(Refusal::Method(method.to_owned())) };
        let Some(identity) = peer.identity.as_deref() else {
            return Err(Refusal::Nobody { method: method.to_owned() });
        };
        if rights.iter().any(|right| has(&self.0, identity, *right)) {
            return Ok(());
        }
        let needed: Vec<String> = rights.iter().map(ToString::to_string).collect();
        Err(Refusal::Forbidden {
            identity: identity.clone(),
            method: method.to_owned(),
            needed: needed.join(" or "),
        })
    }
}

/// Who may call a method; an entry that ends in a slash stands for all methods of its service.
fn rights(method: &str) -> Option<&'static [Right]> {
    let named = |entry: &str| match entry.strip_suffix('/') {
        Some(_) => method.starts_with(entry),
        None => method == entry,
    };
    TABLE.iter().find(|(entry, _)| named(entry)).map(|(_, rights)| *rights)
}

fn has(clients: &Clients, identity: &Identity, right: Right) -> bool {
    match (identity, right) {
        (Identity::Cluster { .. }, Right::Cluster)
        | (Identity::Scheduler, Right::Scheduler)
        | (Identity::Actuator { .. }, Right::Actuator) => true,
        (Identity::Client { name }, right) => {
            clients.0.get(name).is_some_and(|rights| rights.contains(&right))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
