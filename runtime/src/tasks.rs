//! Tasks with an owner: every task has a name and a policy for its failure.
//!
//! Invariant: no result is dropped. A task that fails or panics is restarted with back-off or ends
//! the process, as its policy says; a task that is late at shutdown is named.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backoff::{Backoff, BackoffPolicy};
use crate::panics::panic_text;
use crate::planted;
use crate::platform::Platform;

/// What happens when a task returns an error.
#[derive(Clone, Copy, Debug)]
pub enum OnError {
    /// The whole process shuts down: the task is essential and cannot help itself.
    Shutdown,
    /// The task starts again after a delay.
    Restart(BackoffPolicy),
    /// The same, but a panic ends what the supervisor owns: it would come again, and the others
    /// would go on without this task.
    RestartUnlessPanicked(BackoffPolicy),
}

impl OnError {
    /// How long the task waits until it starts again after this error; nothing when it does not.
    fn restart(self, error: &anyhow::Error) -> Option<BackoffPolicy> {
        match self {
            Self::Shutdown => None,
            Self::Restart(policy) => Some(policy),
            Self::RestartUnlessPanicked(policy) => {
                (!error.is::<Panicked>() || planted::is("S20a")).then_some(policy)
            }
        }
    }
}

/// A task has panicked, and said this.
#[derive(Debug, thiserror::Error)]
#[error("panicked: {0}")]
struct Panicked(String);

/// Context of an error that is part of the work, such as the answer of a standby: the task tries
/// again, and nobody is warned.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("not yet")]
pub struct NotYet;

#[derive(Default)]
struct State {
    running: BTreeMap<u64, &'static str>,
    next: u64,
    failure: Option<anyhow::Error>,
}

/// Owner of a process's tasks. Clones share one set of tasks.
#[derive(Clone)]
pub struct Supervisor {
    token: CancellationToken,
    tracker: TaskTracker,
    state: Arc<Mutex<State>>,
    platform: Platform,
}

impl Supervisor {
    /// An owner whose tasks end when `token` is cancelled, and have the world outside as
    /// `platform`.
    #[must_use]
    pub fn new(token: CancellationToken, platform: Platform) -> Self {
        Self { token, tracker: TaskTracker::new(), state: Arc::default(), platform }
    }

    /// An owner of further tasks of the same process: they end with this one's, or before.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::new(self.token.child_token(), self.platform.clone())
    }

    /// The same owner, whose further tasks have the world outside as `platform`.
    #[must_use]
    pub fn on(&self, platform: Platform) -> Self {
        Self { platform, ..self.clone() }
    }

    /// What the process has of the world outside.
    #[must_use]
    pub const fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Cancelled when the tasks should end.
    #[must_use]
    pub const fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Runs `task` until it returns `Ok`, the token is cancelled, or its policy gives up.
    /// Cancellation drops the running future at its next await.
    pub fn spawn<F, Fut>(&self, name: &'static str, on_error: OnError, mut task: F)
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send,
    {
        let this = self.clone();
        let token = self.token.clone();
        self.track(name, async move {
            let (mut backoff, mut said) = (None, None);
            loop {
                let started = Instant::now();
                let outcome = tokio::select! {
                    outcome = this.caught(name, task()) => outcome,
                    () = token.cancelled() => return,
                };
                let Err(error) = outcome else { return };
                let Some(policy) = on_error.restart(&error) else {
                    this.fail(name, error);
                    return;
                };
                let jitter = || this.platform.entropy.clone();
                let backoff = backoff.get_or_insert_with(|| Backoff::new(policy, jitter()));
                if backoff.reset_if_healthy(started.elapsed()) {
                    said = None;
                }
                let expected = error.is::<NotYet>();
                let error = format!("{error:#}");
                // Said once, not at every attempt.
                if expected {
                    tracing::debug!(task = name, error, "task waits; trying again");
                } else if said.as_ref() == Some(&error) {
                    tracing::debug!(task = name, error, "task failed again; restarting");
                } else {
                    tracing::warn!(task = name, error, "task failed; restarting");
                    said = Some(error);
                }
                tokio::select! {
                    () = backoff.wait() => {}
                    () = token.cancelled() => return,
                }
            }
        });
    }

    /// Runs `task` once; an error or a panic shuts the process down. The future must watch the
    /// token itself when it wants to end in order; it is not dropped on cancellation.
    pub fn spawn_once<Fut>(&self, name: &'static str, task: Fut)
    where
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let this = self.clone();
        self.track(name, async move {
            if let Err(error) = this.caught(name, task).await {
                this.fail(name, error);
            }
        });
    }

    /// Runs `task` once on behalf of one of many; an error or a panic is its own. It is logged, and
    /// handed to `ended`, which makes sure that the one is not forgotten.
    pub fn spawn_contained<Fut>(
        &self,
        name: &'static str,
        task: Fut,
        ended: impl FnOnce(anyhow::Result<()>) + Send + 'static,
    ) where
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let this = self.clone();
        self.track(name, async move {
            let outcome = this.caught(name, task).await;
            if let Err(error) = &outcome {
                tracing::error!(task = name, error = format!("{error:#}"), "task failed");
            }
            ended(outcome);
        });
    }

    /// Waits for cancellation and then, at most `grace`, for the tasks to end.
    ///
    /// # Errors
    /// The first task failure, or the names of tasks that did not end in time.
    pub async fn join(self, grace: Duration) -> anyhow::Result<()> {
        self.token.cancelled().await;
        self.tracker.close();
        let late = tokio::time::timeout(grace, self.tracker.wait()).await.is_err();
        let mut state = self.lock();
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        if late {
            let names: Vec<_> = state.running.values().copied().collect();
            anyhow::bail!("tasks did not end within {grace:?}: {}", names.join(", "));
        }
        Ok(())
    }

    fn fail(&self, name: &'static str, error: anyhow::Error) {
        tracing::error!(task = name, error = format!("{error:#}"), "task failed; shutting down");
        let error = error.context(format!("task {name}"));
        self.lock().failure.get_or_insert(error);
        self.token.cancel();
    }

    fn track(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let id = {
            let mut state = self.lock();
            state.next += 1;
            let id = state.next;
            state.running.insert(id, name);
            id
        };
        let this = self.clone();
        let whole = async move {
            task.await;
            this.lock().running.remove(&id);
        };
        match &self.platform.confinement {
            None => drop(self.tracker.spawn(whole)),
            Some(confinement) => drop(self.tracker.spawn(confinement.confine(Box::pin(whole)))),
        }
    }

    /// The outcome of a task, a panic among its errors.
    async fn caught(
        &self,
        name: &'static str,
        task: impl Future<Output = anyhow::Result<()>> + Send,
    ) -> anyhow::Result<()> {
        let outcome = match &self.platform.confinement {
            None => AssertUnwindSafe(self.platform.pulses.watched(name, task)).catch_unwind().await,
            Some(confinement) => {
                AssertUnwindSafe(confinement.work(name, Box::pin(task))).catch_unwind().await
            }
        };
        outcome.unwrap_or_else(|panic| Err(Panicked(panic_text(&*panic)).into()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    const GRACE: Duration = Duration::from_secs(5);

    fn supervisor() -> Supervisor {
        Supervisor::new(CancellationToken::new(), Platform::system())
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_task_restarts_until_it_succeeds() {
        let supervisor = supervisor();
        let runs = Arc::new(AtomicU32::new(0));
        let (counter, token) = (Arc::clone(&runs), supervisor.token().clone());
        supervisor.spawn("flaky", OnError::Restart(BackoffPolicy::NETWORK), move || {
            let run = counter.fetch_add(1, Ordering::SeqCst);
            let token = token.clone();
            async move {
                anyhow::ensure!(run >= 3, "not yet");
                token.cancel();
                Ok(())
            }
        });
        supervisor.join(GRACE).await.unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn an_essential_task_ends_the_process_with_its_error() {
        let supervisor = supervisor();
        supervisor.spawn("essential", OnError::Shutdown, || async { anyhow::bail!("broken") });
        let error = supervisor.join(GRACE).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "task essential: broken");
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_not_started_anew_where_the_others_need_the_task() {
        let supervisor = supervisor();
        let runs = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&runs);
        let policy = OnError::RestartUnlessPanicked(BackoffPolicy::NETWORK);
        supervisor.spawn("reconcile", policy, move || {
            let run = counter.fetch_add(1, Ordering::SeqCst);
            async move {
                anyhow::ensure!(run > 0, "not yet");
                panic!("no such launch")
            }
        });
        let ending = tokio::time::timeout(Duration::from_secs(60), supervisor.join(GRACE));
        let error = ending.await.expect("the others go on").unwrap_err();
        assert_eq!(format!("{error:#}"), "task reconcile: panicked: no such launch");
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_task_is_named() {
        let supervisor = supervisor();
        supervisor.spawn_once("stubborn", std::future::pending());
        supervisor.token().cancel();
        let error = supervisor.join(GRACE).await.unwrap_err();
        assert!(error.to_string().contains("stubborn"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_an_error_of_its_task() {
        let supervisor = supervisor();
        let (ended, outcome) = tokio::sync::oneshot::channel();
        supervisor.spawn_contained("one of many", async { panic!("no such node") }, |outcome| {
            drop(ended.send(outcome))
        });
        let error = outcome.await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "panicked: no such node");
        assert!(!supervisor.token().is_cancelled(), "the others go on");
        supervisor.spawn_once("essential", async { panic!("no ledger") });
        let error = supervisor.join(GRACE).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "task essential: panicked: no ledger");
    }
}
