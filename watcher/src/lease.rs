//! The cluster's Lease: which watcher works, and the epoch of its sessions.
//!
//! Invariant: of several watchers only the holder works, and an epoch is written into the Lease
//! before any scheduler hears it; it only ever grows, even when the Lease was deleted, because it is
//! at least the wall clock in milliseconds.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as KubeLease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt as _};
use longshore_runtime::clock::Clock;

use crate::patch::code;

/// How long a Lease lasts without renewal, in seconds.
const DURATION_SECONDS: i32 = 15;
/// How often it is renewed: three times in its life, so that two failures in a row are survived.
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// How often somebody else's Lease is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Its name.
const NAME: &str = "longshore-watcher";
/// Annotation with the epoch of the latest session.
const EPOCH: &str = "longshore.dev/session-epoch";

/// Why there is no Lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another watcher holds it.
    #[error("the Lease is held by {0}")]
    HeldBy(String),
    /// It could not be read or written.
    #[error("{0}; the watcher needs get, create and update on leases in its own namespace")]
    Api(#[from] kube::Error),
    /// It could not be renewed before it ended.
    #[error("the Lease could not be renewed in time: {0}")]
    Late(String),
}

/// The cluster's Lease.
#[derive(Clone)]
pub struct Lease {
    api: Api<KubeLease>,
    name: String,
    identity: String,
    clock: Clock,
}

impl Lease {
    /// The Lease of the cluster, in `namespace`, for a watcher called `identity`. Its name does not
    /// depend on the cluster's, which may hold characters that no object's name can.
    #[must_use]
    pub fn new(client: Client, namespace: &str, identity: String, clock: Clock) -> Self {
        Self { api: Api::namespaced(client, namespace), name: NAME.to_owned(), identity, clock }
    }

    /// Waits until the Lease is held; says each time that somebody else is found to hold it.
    pub async fn acquire(&self, held_by_other: impl Fn()) {
        let mut said = String::new();
        loop {
            let text = match self.write(|_| {}).await {
                Ok(_) => return,
                Err(error) => {
                    if matches!(error, LeaseError::HeldBy(_)) {
                        held_by_other();
                    }
                    error.to_string()
                }
            };
            if text != said {
                tracing::info!(lease = self.name, "standing by: {text}");
                said = text;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Renews the Lease for as long as that works.
    pub async fn keep(&self) -> LeaseError {
        let mut renewed_ms = self.clock.now_ms();
        loop {
            tokio::time::sleep(RENEW_EVERY).await;
            match self.write(|_| {}).await {
                Ok(_) => renewed_ms = self.clock.now_ms(),
                Err(LeaseError::HeldBy(other)) => return LeaseError::HeldBy(other),
                Err(error) => {
                    tracing::warn!(%error, "the Lease could not be renewed; trying again");
                    let limit_ms = i64::from(DURATION_SECONDS - 1) * 1000;
                    if self.clock.now_ms() - renewed_ms + rounded_ms(RENEW_EVERY) > limit_ms {
                        return LeaseError::Late(error.to_string());
                    }
                }
            }
        }
    }

    /// Gives the Lease up, so that another watcher need not wait for its end.
    ///
    /// # Errors
    /// When it is no longer held, or cannot be written.
    pub async fn release(&self) -> Result<(), LeaseError> {
        self.write(|lease| {
            let spec = lease.spec.get_or_insert_default();
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
        })
        .await
        .map(drop)
    }

    /// A new epoch, persisted.
    ///
    /// # Errors
    /// When the Lease is not held any more, or cannot be written.
    pub async fn next_epoch(&self) -> Result<u64, LeaseError> {
        let lease = self
            .write(|lease| {
                let epoch = epoch_after(epoch_of(lease), self.clock.now_ms());
                lease.annotations_mut().insert(EPOCH.to_owned(), epoch.to_string());
            })
            .await?;
        Ok(epoch_of(&lease))
    }

    /// Takes or renews the Lease, with a change. Another writer in between is another holder, or
    /// ourselves: then it is read again.
    async fn write(&self, change: impl Fn(&mut KubeLease)) -> Result<KubeLease, LeaseError> {
        loop {
            let found = self.api.get_opt(&self.name).await?;
            let exists = found.is_some();
            let mut lease = found.unwrap_or_else(|| self.blank());
            let now_ms = self.clock.now_ms();
            if let Some(other) = held_by_other(&lease, &self.identity, now_ms) {
                return Err(LeaseError::HeldBy(other));
            }
            hold(&mut lease, &self.identity, now_ms);
            change(&mut lease);
            let params = PostParams::default();
            let written = if exists {
                self.api.replace(&self.name, &params, &lease).await
            } else {
                self.api.create(&params, &lease).await
            };
            match written {
                Err(error) if code(&error) == Some(409) => {}
                other => return Ok(other?),
            }
        }
    }

    fn blank(&self) -> KubeLease {
        let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
        KubeLease { metadata, spec: None }
    }
}

fn rounded_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn epoch_of(lease: &KubeLease) -> u64 {
    lease.annotations().get(EPOCH).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The epoch after `previous`: greater, and at least the wall clock.
fn epoch_after(previous: u64, now_ms: i64) -> u64 {
    (previous + 1).max(u64::try_from(now_ms).unwrap_or(0))
}

/// Who else holds the Lease now.
fn held_by_other(lease: &KubeLease, identity: &str, now_ms: i64) -> Option<String> {
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.as_ref().filter(|h| !h.is_empty() && *h != identity)?;
    let renewed_ms = spec.renew_time.as_ref()?.0.as_millisecond();
    let duration_ms = i64::from(spec.lease_duration_seconds.unwrap_or(DURATION_SECONDS)) * 1000;
    (now_ms < renewed_ms + duration_ms).then(|| holder.clone())
}

fn hold(lease: &mut KubeLease, identity: &str, now_ms: i64) {
    let now = Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    if spec.holder_identity.as_deref() != Some(identity) {
        spec.acquire_time = Some(MicroTime(now));
        spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |n| n.saturating_add(1)));
    }
    spec.holder_identity = Some(identity.to_owned());
    spec.lease_duration_seconds = Some(DURATION_SECONDS);
    spec.renew_time = Some(MicroTime(now));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_only_grow() {
        assert_eq!(epoch_after(0, 1_000), 1_000);
        assert_eq!(epoch_after(5_000, 1_000), 5_001);
        assert_eq!(epoch_after(7, -1), 8);
    }

    #[test]
    fn a_lease_is_free_when_given_up_or_over() {
        let mut lease = KubeLease::default();
        assert_eq!(held_by_other(&lease, "a", 0), None);
        hold(&mut lease, "a", 1_000);
        assert_eq!(held_by_other(&lease, "a", 1_001), None);
        assert_eq!(held_by_other(&lease, "b", 15_999), Some("a".to_owned()));
        assert_eq!(held_by_other(&lease, "b", 16_000), None);
        hold(&mut lease, "b", 16_000);
        assert_eq!(lease.spec.and_then(|spec| spec.lease_transitions), Some(1));
    }
}
