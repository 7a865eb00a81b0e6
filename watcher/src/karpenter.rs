//! Karpenter beside us: two autoscalers must not own the same nodes, so while its Lease is alive
//! this watcher writes nothing, holds no session, and says why.
//!
//! Invariant: whether it is alive is judged by this process's own monotonic clock: a Lease with a
//! holder is until it has not changed here for as long as it lasts. What could not be read is never
//! taken for its absence: who does not work yet goes on waiting, who works already goes on working.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use longshore_runtime::clock::Clock;

use crate::api::{NodePool, Provisioner};
use crate::events::{Events, Happening};
use crate::index::Index;
use crate::lease::{Seen, held_by_other};
use crate::observe::reference;

/// Name of its Lease, in whatever namespace it runs.
pub const LEASE: &str = "karpenter-leader-election";
/// How often its Leases are looked at. It renews them every 2 s.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// How long a look may take.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);
/// Leases of that name that are looked at: one for each namespace that it was ever installed in.
const LEASES_MAX: u32 = 50;
/// Reason of the Events that say so.
const REASON: &str = "KarpenterRuns";

/// Why its Leases could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// They could not be listed.
    #[error(
        "Leases called {LEASE} cannot be listed: {0}; the watcher needs list on leases of that name in \
         all namespaces (deploy/chart/templates/rbac.yaml)"
    )]
    Api(#[from] kube::Error),
    /// The API server took too long.
    #[error("the API server did not list Leases within {LOOK_PATIENCE:?}")]
    Slow,
}

/// A Karpenter that leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alive {
    /// Its Lease, as namespace/name.
    pub lease: String,
    /// Who holds it.
    pub holder: String,
}

impl std::fmt::Display for Alive {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { lease, holder } = self;
        write!(
            out,
            "Karpenter runs in this cluster: its Lease {lease} is held by {holder}. Longshore does \
             nothing until that is given up, or not renewed for as long as it lasts. To take the \
             cluster over: helm uninstall karpenter, or scale its Deployment to 0"
        )
    }
}

/// What is told meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look<'a> {
    /// Karpenter leads.
    Held(&'a Alive),
    /// It is not known.
    Blind,
}

/// Its Leases as they were last seen.
#[derive(Clone)]
pub struct Karpenter {
    leases: Api<Lease>,
    clock: Clock,
    seen: Arc<Mutex<BTreeMap<String, Option<Seen>>>>,
}

impl Karpenter {
    /// The Leases that `client` reads.
    #[must_use]
    pub fn new(client: Client, clock: Clock) -> Self {
        Self { leases: Api::all(client), clock, seen: Arc::default() }
    }

    /// Waits until no Karpenter leads; `meanwhile` is called at each look until then.
    pub async fn until_gone(&self, meanwhile: impl Fn(Look<'_>)) {
        let mut said = String::new();
        loop {
            let text = match self.look().await {
                Ok(None) => return,
                Ok(Some(alive)) => {
                    meanwhile(Look::Held(&alive));
                    alive.to_string()
                }
                Err(error) => {
                    meanwhile(Look::Blind);
                    error.to_string()
                }
            };
            if text != said {
                tracing::warn!("this watcher does not work: {text}");
                said = text;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns once a Karpenter leads.
    pub async fn until_back(&self) -> Alive {
        loop {
            match self.look().await {
                Ok(Some(alive)) => return alive,
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "whether Karpenter is back is not known"),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// A Karpenter that leads, if one does.
    ///
    /// # Errors
    /// When it cannot be told.
    pub async fn look(&self) -> Result<Option<Alive>, LookError> {
        let field = format!("metadata.name={LEASE}");
        let params = ListParams::default().fields(&field).limit(LEASES_MAX);
        let listed = tokio::time::timeout(LOOK_PATIENCE, self.leases.list(&params));
        let listed = listed.await.map_err(|_| LookError::Slow)??.items;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |lease: &Lease| format!("{}/{LEASE}", lease.namespace().unwrap_or_default());
        seen.retain(|known, _| listed.iter().any(|lease| name(lease) == *known));
        let now_ms = self.clock.now_ms();
        let mut alive = None;
        // Each is looked at, so that each has been seen for as long.
        for lease in &listed {
            let of = name(lease);
            let before = seen.entry(of.clone()).or_default();
            if let Some(holder) = held_by_other(lease, before, now_ms) {
                alive = Some(Alive { lease: of, holder });
            }
        }
        Ok(alive)
    }
}

/// Says on every pool that nothing is done, and why.
pub fn announce(events: &Events, index: &Index, alive: &Alive) {
    let pools = index.pools();
    let of_pools = pools.all().map(|pool| reference::<NodePool>(&pool.metadata));
    let legacy = pools.all_provisioners().map(|it| reference::<Provisioner>(&it.metadata));
    let about: Vec<ObjectReference> = of_pools.chain(legacy).collect();
    for about in about {
        let note = alive.to_string();
        events.publish(Happening { about, warning: true, reason: REASON.to_owned(), note });
    }
}

#[cfg(test)]
mod tests;
