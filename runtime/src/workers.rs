//! Processors for work that computes: a bounded pool with fair turns.
//!
//! Invariant: nobody starves anybody. Urgent work has threads of its own, and goes before the rest
//! where processors are short; within each of the two, tenants take turns, one job each, however
//! many one of them has queued. A job that nobody waits for any more is dropped unstarted, and a
//! panic in a job is its own failure.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::oneshot;

use crate::pulse::Pulses;

/// Most jobs of one tenant that may wait; more are refused.
pub const QUEUE_PER_TENANT: usize = 64;

/// Niceness of the threads that compute questions: the least urgent there is, a seventieth of the
/// share of a thread that computes plans.
const QUESTION_NICENESS: i32 = 19;

/// Longest time that a plan of a running cluster may take: the largest takes seconds.
const PLAN_MAX: Duration = Duration::from_secs(10 * 60);
/// The same of a question, which may ask for the best plan there is.
const QUESTION_MAX: Duration = Duration::from_secs(60 * 60);

/// What goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Running clusters wait for it.
    Live,
    /// Somebody asks what would be.
    WhatIf,
}

/// Why a job has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobError {
    /// The tenant has too many jobs waiting.
    #[error(
        "{QUEUE_PER_TENANT} questions of this caller wait already; ask again when one is answered"
    )]
    Full,
    /// The job panicked.
    #[error("the computation failed: {0}")]
    Panicked(String),
    /// The pool is gone.
    #[error("the process is ending")]
    Ended,
}

type Job = Box<dyn FnOnce() + Send>;

struct Waiting {
    abandoned: Box<dyn Fn() -> bool + Send>,
    run: Job,
}

/// Jobs of one urgency by tenant, and whose turn it is.
#[derive(Default)]
struct Lane {
    jobs: BTreeMap<String, VecDeque<Waiting>>,
    turns: VecDeque<String>,
}

impl Lane {
    fn push(&mut self, tenant: &str, job: Waiting) -> Result<(), JobError> {
        let queue = self.jobs.entry(tenant.to_owned()).or_default();
        if queue.len() >= QUEUE_PER_TENANT {
            return Err(JobError::Full);
        }
        if queue.is_empty() {
            self.turns.push_back(tenant.to_owned());
        }
        queue.push_back(job);
        Ok(())
    }

    fn pop(&mut self) -> Option<Waiting> {
        let tenant = self.turns.pop_front()?;
        let queue = self.jobs.get_mut(&tenant)?;
        let job = queue.pop_front();
        if queue.is_empty() {
            self.jobs.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        job
    }
}

#[derive(Default)]
struct Queue {
    live: Lane,
    what_if: Lane,
    closed: bool,
}

impl Queue {
    const fn lane(&mut self, urgency: Urgency) -> &mut Lane {
        match urgency {
            Urgency::Live => &mut self.live,
            Urgency::WhatIf => &mut self.what_if,
        }
    }
}

#[derive(Default)]
struct Pool {
    queue: Mutex<Queue>,
    /// Something that clusters wait for has come.
    live: Condvar,
    /// A question has come.
    asked: Condvar,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn ready(&self, urgency: Urgency) -> &Condvar {
        match urgency {
            Urgency::Live => &self.live,
            Urgency::WhatIf => &self.asked,
        }
    }

    fn work(&self, urgency: Urgency, pulses: &Pulses) {
        let (name, limit) = match urgency {
            Urgency::Live => ("plan", PLAN_MAX),
            Urgency::WhatIf => {
                give_way();
                ("question", QUESTION_MAX)
            }
        };
        loop {
            let mut queue = self.lock();
            let job = loop {
                if let Some(job) = queue.lane(urgency).pop() {
                    break job;
                }
                if queue.closed {
                    return;
                }
                queue = self.ready(urgency).wait(queue).unwrap_or_else(PoisonError::into_inner);
            };
            drop(queue);
            if !(job.abandoned)() {
                let _lasts = pulses.begin(name, limit);
                (job.run)();
            }
        }
    }
}

/// Lets the operating system run every other thread of the process before this one, where they
/// compete.
fn give_way() {
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), QUESTION_NICENESS) {
        tracing::warn!(%error, "questions are computed as urgently as plans");
    }
}

/// Ends the threads with the last clone of the pool.
struct Owner(Arc<Pool>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.live.notify_all();
        self.0.asked.notify_all();
    }
}

#[derive(Clone)]
enum Kind {
    Threads(Arc<Owner>),
    Inline(Duration, Before),
}

/// Called before each job, as a part of it.
type Before = Arc<dyn Fn() + Send + Sync>;

/// Where work that computes is done. Clones share the pool.
#[derive(Clone)]
pub struct Workers(Kind);

impl fmt::Debug for Workers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Workers")
    }
}

impl Workers {
    /// One thread for each processor, and as many for questions. They end with the last clone.
    #[must_use]
    pub fn threads(pulses: &Pulses) -> Self {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self::threads_of(count, pulses)
    }

    /// This many threads for each urgency: a question that is begun cannot be put aside, and would
    /// keep a running cluster waiting.
    #[must_use]
    pub fn threads_of(count: usize, pulses: &Pulses) -> Self {
        let pool = Arc::new(Pool::default());
        for (urgency, name) in [(Urgency::Live, "worker"), (Urgency::WhatIf, "asker")] {
            for index in 0..count {
                let (pool, pulses) = (Arc::clone(&pool), pulses.clone());
                let thread = std::thread::Builder::new().name(format!("{name}-{index}"));
                if let Err(error) = thread.spawn(move || pool.work(urgency, &pulses)) {
                    tracing::error!(%error, "cannot start a worker thread");
                }
            }
        }
        Self(Kind::Threads(Arc::new(Owner(pool))))
    }

    /// Work done where it is asked for, answered `after` a time: for simulations, which have one
    /// thread. Each job begins with `before`; when that panics, the job has.
    #[must_use]
    pub fn inline(after: Duration, before: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Kind::Inline(after, Arc::new(before)))
    }

    /// Runs `job` for `tenant`. Dropping the future takes a job back that has not begun.
    ///
    /// # Errors
    /// When the tenant's queue is full, the job panics or the process ends.
    pub fn run<T: Send + 'static>(
        &self,
        tenant: &str,
        urgency: Urgency,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, JobError>> + Send + 'static {
        let guarded =
            move || catch_unwind(AssertUnwindSafe(job)).map_err(|panic| panicked(&*panic));
        let (answer, answered) = oneshot::channel();
        let answer = Arc::new(Mutex::new(Some(answer)));
        let mut delay = None;
        let mut refused = None;
        match &self.0 {
            Kind::Inline(after, before) => {
                delay = Some(*after);
                let ready = catch_unwind(AssertUnwindSafe(|| before()));
                send(&answer, ready.map_err(|panic| panicked(&*panic)).and_then(|()| guarded()));
            }
            Kind::Threads(owner) => {
                let watched = Arc::clone(&answer);
                let abandoned = Box::new(move || {
                    let answer = watched.lock().unwrap_or_else(PoisonError::into_inner);
                    answer.as_ref().is_none_or(oneshot::Sender::is_closed)
                });
                let waiting =
                    Waiting { abandoned, run: Box::new(move || send(&answer, guarded())) };
                let mut queue = owner.0.lock();
                refused = queue.lane(urgency).push(tenant, waiting).err();
                drop(queue);
                owner.0.ready(urgency).notify_one();
            }
        }
        async move {
            if let Some(refused) = refused {
                return Err(refused);
            }
            if let Some(delay) = delay {
                tokio::time::sleep(delay).await;
            }
            answered.await.unwrap_or(Err(JobError::Ended))
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> JobError {
    JobError::Panicked(crate::panics::panic_text(panic))
}

type Answer<T> = Arc<Mutex<Option<oneshot::Sender<Result<T, JobError>>>>>;

fn send<T>(answer: &Answer<T>, result: Result<T, JobError>) {
    let sender = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(sender) = sender {
        // Whoever asked may have gone.
        let _ = sender.send(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn tenants_take_turns() {
        let workers = Workers::threads_of(1, &Pulses::default());
        let (open, gate) = mpsc::channel::<()>();
        let blocker = workers.run("x", Urgency::Live, move || gate.recv().is_ok());
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |tenant: &'static str, urgency| {
            let order = Arc::clone(&order);
            workers.run(tenant, urgency, move || order.lock().unwrap().push(tenant))
        };
        let flood: Vec<_> = (0..3).map(|_| note("flood", Urgency::Live)).collect();
        let modest = note("modest", Urgency::Live);
        drop(note("abandoned", Urgency::Live));
        open.send(()).unwrap();
        assert_eq!(blocker.await, Ok(true));
        for job in flood.into_iter() {
            job.await.unwrap();
        }
        modest.await.unwrap();
        let order = order.lock().unwrap().clone();
        assert_eq!(order, ["flood", "modest", "flood", "flood"]);
    }

    #[tokio::test]
    async fn questions_never_take_the_threads_of_running_clusters() {
        let workers = Workers::threads_of(2, &Pulses::default());
        let (open, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let long = || {
            let gate = Arc::clone(&gate);
            workers.run("asker", Urgency::WhatIf, move || gate.lock().unwrap().recv().is_ok())
        };
        let questions = [long(), long()];
        let live = workers.run("cluster", Urgency::Live, || 7);
        let live = tokio::time::timeout(Duration::from_secs(20), live).await;
        assert_eq!(live.expect("both threads answer questions"), Ok(7));
        questions.iter().for_each(|_| open.send(()).unwrap());
        for question in questions {
            assert_eq!(question.await, Ok(true), "and no question is forgotten");
        }
    }

    #[tokio::test]
    async fn a_full_queue_is_refused_and_a_panic_is_the_jobs_own() {
        let workers = Workers::threads_of(1, &Pulses::default());
        let (open, gate) = mpsc::channel::<()>();
        let blocker = workers.run("x", Urgency::WhatIf, move || gate.recv().is_ok());
        let mut waiting: Vec<_> =
            (0..=QUEUE_PER_TENANT).map(|_| workers.run("a", Urgency::WhatIf, || ())).collect();
        // The blocker came first, so that the one thread for questions runs it, or will next.
        assert_eq!(waiting.pop().unwrap().await, Err(JobError::Full));
        open.send(()).unwrap();
        assert_eq!(blocker.await, Ok(true));
        let failed = workers.run("a", Urgency::Live, || -> u32 { panic!("no such shelf") }).await;
        assert_eq!(failed, Err(JobError::Panicked("no such shelf".to_owned())));
        assert_eq!(workers.run("a", Urgency::Live, || 7).await, Ok(7));
    }
}
