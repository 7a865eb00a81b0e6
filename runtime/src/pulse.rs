//! Signs of life: what must end or come round in time, and is named when it does not.
//!
//! Invariant: judged by the monotonic clock alone; what ends takes its sign with it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::bail;
use tokio::time::{Instant, sleep};

use crate::planted;

/// Longest time that a task may keep its thread to itself.
const TURN_MAX: Duration = Duration::from_secs(60);
/// How often somebody looks for what has stalled.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Stands for what is at rest.
const AT_REST: u64 = 0;

/// All signs of life of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct Pulses(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    began: Instant,
    signs: Mutex<BTreeMap<u64, Arc<Sign>>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Sign {
    name: &'static str,
    limit: Duration,
    /// Milliseconds since the process began at which it began or came round last; [`AT_REST`] when
    /// nothing is waited for.
    since_ms: AtomicU64,
}

/// Something that has to end, or to come round again, within its limit.
#[derive(Debug)]
pub struct Pulse {
    pulses: Pulses,
    id: u64,
    sign: Arc<Sign>,
}

/// Something that is over its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Its name.
    pub name: &'static str,
    /// How long it has lasted.
    pub lasted: Duration,
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has not come round for {} s", self.name, self.lasted.as_secs())
    }
}

impl Default for Pulses {
    fn default() -> Self {
        let signs = Mutex::default();
        Self(Arc::new(Inner { began: Instant::now(), signs, next: AtomicU64::new(0) }))
    }
}

impl Pulses {
    /// Something that begins now: dropping the pulse ends it, a beat begins it anew.
    #[must_use]
    pub fn begin(&self, name: &'static str, limit: Duration) -> Pulse {
        let pulse = self.register(name, limit);
        pulse.beat();
        pulse
    }

    /// The task, which may not keep its thread to itself for longer than a minute.
    pub async fn watched<F: Future>(&self, name: &'static str, task: F) -> F::Output {
        let (pulse, mut task) = (self.register(name, TURN_MAX), pin!(task));
        std::future::poll_fn(|context| {
            pulse.beat();
            let polled = task.as_mut().poll(context);
            pulse.rest();
            polled
        })
        .await
    }

    /// What is over its limit by most.
    #[must_use]
    pub fn late(&self) -> Option<Late> {
        let now_ms = self.now_ms();
        let signs = self.lock();
        let lasting = signs.values().filter_map(|sign| {
            let since_ms = sign.since_ms.load(Ordering::Relaxed);
            let lasted = Duration::from_millis(now_ms.saturating_sub(since_ms));
            let over = lasted.checked_sub(sign.limit).filter(|_| since_ms != AT_REST)?;
            (!planted::is("S20w")).then_some((over, sign.name, lasted))
        });
        lasting.max().map(|(_, name, lasted)| Late { name, lasted })
    }

    /// Looks for what has stalled until something has.
    ///
    /// # Errors
    /// With the name of what has stalled.
    pub async fn watch(self) -> anyhow::Result<()> {
        loop {
            let before = Instant::now();
            sleep(LOOK_EVERY).await;
            if before.elapsed() > 2 * LOOK_EVERY {
                // The process was stopped, or its machine: nothing could come round.
                self.forgive();
            } else if let Some(late) = self.late() {
                bail!("{late}; the process ends");
            }
        }
    }

    /// Lets everything that lasts begin anew.
    fn forgive(&self) {
        let now_ms = self.now_ms();
        for sign in self.lock().values() {
            let lasts = |since_ms| (since_ms != AT_REST).then_some(now_ms);
            // Err: it has come to rest.
            let _ = sign.since_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lasts);
        }
    }

    fn register(&self, name: &'static str, limit: Duration) -> Pulse {
        let sign = Arc::new(Sign { name, limit, since_ms: AtomicU64::new(AT_REST) });
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(id, Arc::clone(&sign));
        Pulse { pulses: self.clone(), id, sign }
    }

    /// From 1 on.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Sign>>> {
        self.0.signs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pulse {
    /// It has come round.
    pub fn beat(&self) {
        self.sign.since_ms.store(self.pulses.now_ms(), Ordering::Relaxed);
    }

    fn rest(&self) {
        self.sign.since_ms.store(AT_REST, Ordering::Relaxed);
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.pulses.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn what_does_not_come_round_is_named() {
        let pulses = Pulses::default();
        let (one, _two) = (pulses.begin("one", LIMIT), pulses.begin("two", 2 * LIMIT));
        tokio::time::advance(LIMIT + Duration::from_secs(1)).await;
        assert_eq!(pulses.late().unwrap().name, "one");
        one.beat();
        assert_eq!(pulses.late(), None);
        drop(one);
        tokio::time::advance(2 * LIMIT).await;
        let lasted = 3 * LIMIT + Duration::from_secs(1);
        assert_eq!(pulses.late(), Some(Late { name: "two", lasted }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_waits_has_not_stalled_and_one_that_works_has() {
        let pulses = Pulses::default();
        let mut waits = pin!(pulses.watched("waits", sleep(10 * TURN_MAX)));
        assert!(futures::poll!(waits.as_mut()).is_pending());
        let works = pulses.register("works", TURN_MAX);
        works.beat();
        tokio::time::advance(2 * TURN_MAX).await;
        assert_eq!(pulses.late(), Some(Late { name: "works", lasted: 2 * TURN_MAX }));
        works.rest();
        assert_eq!(pulses.late(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_was_stopped_has_not_stalled() {
        let pulses = Pulses::default();
        let _one = pulses.begin("one", LIMIT);
        tokio::time::advance(2 * LIMIT).await;
        pulses.forgive();
        assert_eq!(pulses.late(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_watch_ends_with_the_name_of_what_has_stalled() {
        let pulses = Pulses::default();
        let _stalled = pulses.begin("reconcile", LIMIT);
        let error = pulses.watch().await.unwrap_err().to_string();
        assert!(error.starts_with("reconcile has not come round for 3"), "{error}");
    }
}
