//! The cluster's Lease: which watcher works, and the epoch of its sessions.
//!
//! Invariant: of several watchers only the holder works. Whether a Lease has ended is judged by
//! this process's own monotonic clock: somebody else's when it has not changed here for as long as
//! it lasts, the own one some time before anybody can think so. An epoch is written into the Lease
//! before any scheduler hears it; it only ever grows, even when the Lease was deleted, because it
//! is at least the wall clock in milliseconds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as KubeLease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt as _};
use longshore_runtime::clock::Clock;
use longshore_runtime::planted;
use tokio::time::{Instant, timeout_at};

use crate::losses::Losses;
use crate::patch::code;

/// How long a Lease lasts without renewal, in seconds.
const DURATION_SECONDS: i32 = 15;
/// How long its holder works without renewal: it has stopped well before another may take over.
const WORK: Duration = Duration::from_secs(10);
/// How often it is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// Pause after a renewal that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long the API server may take to read and write it.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);
/// How often a write is tried against other writers before it fails.
const ATTEMPTS_MAX: u32 = 5;
/// How often somebody else's Lease is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Its name.
const NAME: &str = "longshore-watcher";
/// Annotation with the epoch of the latest session.
const EPOCH: &str = "longshore.dev/session-epoch";

const _: () = assert!(RENEW_EVERY.as_secs() + WRITE_PATIENCE.as_secs() < WORK.as_secs());
const _: () =
    assert!(WORK.as_secs() + RENEW_EVERY.as_secs() < DURATION_SECONDS.unsigned_abs() as u64);

/// Why there is no Lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another watcher holds it.
    #[error("the Lease is held by {0}")]
    HeldBy(String),
    /// It could not be read or written.
    #[error("{0}; the watcher needs get, create and update on leases in its own namespace")]
    Api(#[from] kube::Error),
    /// The API server took too long.
    #[error("the API server did not answer within {WRITE_PATIENCE:?}")]
    Slow,
    /// It was given up by whoever held it, and this watcher no longer did.
    #[error("the Lease is no longer this watcher's")]
    Lost,
    /// It could not be renewed before it ended.
    #[error("the Lease could not be renewed in time: {0}")]
    Late(String),
}

/// How long the Lease is held for certain. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Tenure(Arc<Mutex<Option<Instant>>>);

impl Tenure {
    /// True while nobody else can hold the Lease.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.end().is_some_and(|end| Instant::now() < end)
    }

    /// The Lease is held until `end`.
    pub fn extend(&self, end: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    /// The Lease is no longer held.
    pub fn end_now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn end(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody else's Lease, and since when it has looked like this.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    holder: String,
    renewed: Option<MicroTime>,
    version: Option<String>,
    since: Instant,
}

/// The cluster's Lease.
#[derive(Clone)]
pub struct Lease {
    api: Api<KubeLease>,
    name: String,
    identity: String,
    clock: Clock,
    tenure: Tenure,
    losses: Losses,
    seen: Arc<Mutex<Option<Seen>>>,
    /// As it was last written here.
    written: Arc<Mutex<Option<KubeLease>>>,
}

/// Who may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum As {
    /// Whoever finds it free.
    Candidate,
    /// Its holder alone.
    Holder,
}

impl Lease {
    /// The Lease of the cluster, in `namespace`, for a watcher called `identity`. Its name does not
    /// depend on the cluster's, which may hold characters that no object's name can.
    #[must_use]
    pub fn new(client: Client, namespace: &str, identity: String, clock: Clock) -> Self {
        let (api, name) = (Api::namespaced(client, namespace), NAME.to_owned());
        let (tenure, losses) = (Tenure::default(), Losses::default());
        let (seen, written) = (Arc::default(), Arc::default());
        Self { api, name, identity, clock, tenure, losses, seen, written }
    }

    /// What has been let go on absence alone, which the Lease keeps.
    #[must_use]
    pub fn losses(&self) -> Losses {
        self.losses.clone()
    }

    /// How long it is held for certain.
    #[must_use]
    pub fn tenure(&self) -> Tenure {
        self.tenure.clone()
    }

    /// Waits until the Lease is held; says each time that somebody else is found to hold it.
    pub async fn acquire(&self, held_by_other: impl Fn()) {
        let mut said = String::new();
        loop {
            let text = match self.write(As::Candidate, |_| {}).await {
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

    /// Renews the Lease for as long as that works. Returns while nobody else can hold it yet, but
    /// when this process itself was stopped.
    pub async fn keep(&self) -> LeaseError {
        let mut why = "the process was stopped or starved".to_owned();
        let mut pause = RENEW_EVERY;
        loop {
            let end = self.tenure.end().unwrap_or_else(Instant::now);
            let renewal = async {
                tokio::time::sleep(pause).await;
                self.write(As::Holder, |_| {}).await
            };
            match timeout_at(end, renewal).await {
                _ if Instant::now() >= end => return self.lost(LeaseError::Late(why)),
                Ok(Ok(_)) => pause = RENEW_EVERY,
                Ok(Err(error @ (LeaseError::HeldBy(_) | LeaseError::Lost))) => {
                    return self.lost(error);
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the Lease could not be renewed; trying again");
                    why = error.to_string();
                    pause = RETRY_AFTER;
                }
                Err(_) => return self.lost(LeaseError::Late(why)),
            }
        }
    }

    fn lost(&self, error: LeaseError) -> LeaseError {
        self.tenure.end_now();
        error
    }

    /// Gives the Lease up, so that another watcher need not wait for its end.
    ///
    /// # Errors
    /// When it is no longer held, or cannot be written.
    pub async fn release(&self) -> Result<(), LeaseError> {
        let released = self.write(As::Holder, |lease| {
            let spec = lease.spec.get_or_insert_default();
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
        });
        let released = released.await.map(drop);
        self.tenure.end_now();
        released
    }

    /// A new epoch, persisted.
    ///
    /// # Errors
    /// When the Lease is not held any more, or cannot be written.
    pub async fn next_epoch(&self) -> Result<u64, LeaseError> {
        let lease = self
            .write(As::Holder, |lease| {
                let epoch = epoch_after(epoch_of(lease), self.clock.now_ms());
                lease.annotations_mut().insert(EPOCH.to_owned(), epoch.to_string());
            })
            .await?;
        Ok(epoch_of(&lease))
    }

    /// Takes or renews the Lease, with a change. Whoever holds it knows it and need not read it,
    /// which is one request of an API server that may be slow. Another writer in between is another
    /// holder, or ourselves: then it is read again.
    async fn write(
        &self,
        who: As,
        change: impl Fn(&mut KubeLease) + Send,
    ) -> Result<KubeLease, LeaseError> {
        let writing = self.write_patiently(who, change);
        tokio::time::timeout(WRITE_PATIENCE, writing).await.map_err(|_| LeaseError::Slow)?
    }

    async fn write_patiently(
        &self,
        who: As,
        change: impl Fn(&mut KubeLease) + Send,
    ) -> Result<KubeLease, LeaseError> {
        let mut attempts = 0;
        loop {
            // From before the write: the Lease lasts from when it was written, or longer.
            let end = Instant::now() + WORK;
            let known = self.written().take().filter(|_| self.tenure.holds());
            let found = match known {
                Some(known) => Some(known),
                None => self.api.get_opt(&self.name).await?,
            };
            let exists = found.is_some();
            let mut lease = found.unwrap_or_else(|| self.blank());
            self.check(&lease, who, exists)?;
            if !self.tenure.holds() {
                self.losses.recall(lease.annotations(), self.clock.now_ms());
            }
            hold(&mut lease, &self.identity, self.clock.now());
            self.losses.write(lease.annotations_mut(), self.clock.now_ms());
            change(&mut lease);
            let params = PostParams::default();
            let written = if exists {
                self.api.replace(&self.name, &params, &lease).await
            } else {
                self.api.create(&params, &lease).await
            };
            attempts += 1;
            match written {
                Err(error) if is_outdated(&error) && attempts < ATTEMPTS_MAX => {}
                other => {
                    let lease = other?;
                    self.tenure.extend(end);
                    *self.written() = Some(lease.clone());
                    return Ok(lease);
                }
            }
        }
    }

    fn written(&self) -> MutexGuard<'_, Option<KubeLease>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the Lease may be written as it is.
    fn check(&self, lease: &KubeLease, who: As, exists: bool) -> Result<(), LeaseError> {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        if holder == Some(&self.identity) || (who == As::Holder && !exists) {
            return Ok(());
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match held_by_other(lease, &mut seen, self.clock.now_ms()) {
            Some(other) => Err(LeaseError::HeldBy(other)),
            // It was somebody else's in between, and what they did is not known here.
            None if who == As::Holder => Err(LeaseError::Lost),
            None => Ok(()),
        }
    }

    fn blank(&self) -> KubeLease {
        let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
        KubeLease { metadata, spec: None }
    }
}

/// True when the Lease is another than the one that was to be written, or there is none.
fn is_outdated(error: &kube::Error) -> bool {
    matches!(code(error), Some(409 | 404))
}

fn epoch_of(lease: &KubeLease) -> u64 {
    lease.annotations().get(EPOCH).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The epoch after `previous`: greater, and at least the wall clock.
fn epoch_after(previous: u64, now_ms: i64) -> u64 {
    (previous + 1).max(u64::try_from(now_ms).unwrap_or(0))
}

/// Whoever else holds the Lease: until it has not changed here for as long as it lasts.
pub fn held_by_other(lease: &KubeLease, seen: &mut Option<Seen>, now_ms: i64) -> Option<String> {
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty())?;
    let seconds = spec.lease_duration_seconds.unwrap_or(DURATION_SECONDS);
    let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    if planted::is("S22") {
        let renewed_ms = spec.renew_time.as_ref()?.0.as_millisecond();
        return (now_ms < renewed_ms + i64::from(seconds) * 1000).then_some(holder);
    }
    let version = lease.metadata.resource_version.clone();
    let now = Seen { holder, renewed: spec.renew_time.clone(), version, since: Instant::now() };
    let same = |seen: &&Seen| Seen { since: now.since, ..(*seen).clone() } == now;
    match seen.as_ref().filter(same) {
        Some(seen) => (seen.since.elapsed() < duration).then_some(now.holder),
        None => {
            let holder = now.holder.clone();
            *seen = Some(now);
            Some(holder)
        }
    }
}

fn hold(lease: &mut KubeLease, identity: &str, now: Timestamp) {
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
mod tests;
