//! Tasks with an owner: every task has a name and a policy for its failure.
//!
//! Invariant: no result is dropped. A task that fails is restarted with back-off or ends the
//! process, as its policy says; a task that is late at shutdown is named.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backoff::{Backoff, BackoffPolicy};

/// What happens when a task returns an error.
#[derive(Clone, Copy, Debug)]
pub enum OnError {
    /// The whole process shuts down: the task is essential and cannot help itself.
    Shutdown,
    /// The task starts again after a delay.
    Restart(BackoffPolicy),
}

/// A task that ran longer than this before failing counts as healthy: its back-off starts over.
const HEALTHY_AFTER: Duration = Duration::from_secs(30);

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
}

impl Supervisor {
    /// An owner whose tasks end when `token` is cancelled.
    #[must_use]
    pub fn new(token: CancellationToken) -> Self {
        Self { token, tracker: TaskTracker::new(), state: Arc::default() }
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
                    outcome = task() => outcome,
                    () = token.cancelled() => return,
                };
                let Err(error) = outcome else { return };
                let OnError::Restart(policy) = on_error else {
                    this.fail(name, error);
                    return;
                };
                let backoff = backoff.get_or_insert_with(|| Backoff::new(policy));
                if started.elapsed() > HEALTHY_AFTER {
                    backoff.reset();
                    said = None;
                }
                let error = format!("{error:#}");
                // Said once, not at every attempt.
                if said.as_ref() == Some(&error) {
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

    /// Runs `task` once; an error shuts the process down. The future must watch the token itself
    /// when it wants to end in order; it is not dropped on cancellation.
    pub fn spawn_once<Fut>(&self, name: &'static str, task: Fut)
    where
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let this = self.clone();
        self.track(name, async move {
            if let Err(error) = task.await {
                this.fail(name, error);
            }
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
        self.tracker.spawn(async move {
            task.await;
            this.lock().running.remove(&id);
        });
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

    #[tokio::test(start_paused = true)]
    async fn a_failing_task_restarts_until_it_succeeds() {
        let supervisor = Supervisor::new(CancellationToken::new());
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
        let supervisor = Supervisor::new(CancellationToken::new());
        supervisor.spawn("essential", OnError::Shutdown, || async { anyhow::bail!("broken") });
        let error = supervisor.join(GRACE).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "task essential: broken");
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_task_is_named() {
        let supervisor = Supervisor::new(CancellationToken::new());
        supervisor.spawn_once("stubborn", std::future::pending());
        supervisor.token().cancel();
        let error = supervisor.join(GRACE).await.unwrap_err();
        assert!(error.to_string().contains("stubborn"));
    }
}
