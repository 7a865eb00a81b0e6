//! Tasks that panic when they are told to: how a test brings about a panic in any loop of a service
//! that runs as it is, also in one that sleeps, and sees what becomes of it.
//!
//! Invariant: each trip makes one work of that name panic, in its own place, where the service
//! would meet a panic of it. All others do as if nothing were there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use tokio::sync::Notify;

use crate::trap::Trap;

/// The tasks of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tripwire(Arc<Mutex<BTreeMap<&'static str, Wire>>>);

/// All works of one name.
#[derive(Debug, Default)]
struct Wire {
    begun: u64,
    running: u64,
    trip: Arc<Notify>,
}

/// A work under way, until this is dropped.
struct Running {
    tripwire: Tripwire,
    task: &'static str,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tripwire.wires().entry(self.task).or_default().running -= 1;
    }
}

impl Tripwire {
    /// Names of the tasks that are at work.
    #[must_use]
    pub fn running(&self) -> Vec<&'static str> {
        let wires = self.wires();
        wires.iter().filter(|(_, wire)| wire.running > 0).map(|(task, _)| *task).collect()
    }

    /// How often tasks of this name have begun their work.
    #[must_use]
    pub fn begun(&self, task: &str) -> u64 {
        self.wires().get(task).map_or(0, |wire| wire.begun)
    }

    /// Lets one task of this name panic; false when none is at work.
    #[must_use]
    pub fn trip(&self, task: &str) -> bool {
        let wires = self.wires();
        let wire = wires.get(task).filter(|wire| wire.running > 0);
        wire.inspect(|wire| wire.trip.notify_one()).is_some()
    }

    /// Lets the task of this number panic, counting those that are at work in turn.
    pub fn trip_one(&self, number: usize) {
        let running = self.running();
        let task = number.checked_rem(running.len()).and_then(|at| running.get(at));
        // Nobody has ended in between: it is asked for by name.
        let _ = task.is_some_and(|task| self.trip(task));
    }

    /// What a task of this name does, once, with the wire across it.
    pub fn work<'a, T: 'a>(&self, task: &'static str, work: BoxFuture<'a, T>) -> BoxFuture<'a, T> {
        let (running, trip) = self.begin(task);
        Box::pin(async move {
            let _running = running;
            tokio::select! {
                biased;
                () = trip.notified() => panic!("{}", Trap::cry(task)),
                outcome = work => outcome,
            }
        })
    }

    fn begin(&self, task: &'static str) -> (Running, Arc<Notify>) {
        let mut wires = self.wires();
        let wire = wires.entry(task).or_default();
        wire.begun += 1;
        wire.running += 1;
        (Running { tripwire: self.clone(), task }, Arc::clone(&wire.trip))
    }

    fn wires(&self) -> MutexGuard<'_, BTreeMap<&'static str, Wire>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_task_that_sleeps_panics_and_is_seen_to_begin_again() {
        let tripwire = Tripwire::default();
        assert!(!tripwire.trip("sleeps"), "it has not begun");
        let sleep = || tripwire.work("sleeps", std::future::pending::<()>().boxed());
        let (mut first, other) =
            (sleep(), tripwire.work("other", std::future::pending::<()>().boxed()));
        assert_eq!((tripwire.running(), tripwire.begun("sleeps")), (vec!["other", "sleeps"], 1));
        assert!((&mut first).now_or_never().is_none());
        tripwire.trip_one(1);
        let panicked = std::panic::AssertUnwindSafe(first).catch_unwind().await;
        let said = panicked.expect_err("it goes on").downcast::<String>();
        assert_eq!(said.ok().as_deref().map(String::as_str), Some("a trap in sleeps"));
        assert_eq!(tripwire.running(), ["other"]);
        let second = sleep();
        assert_eq!((second.now_or_never(), tripwire.begun("sleeps")), (None, 2), "once");
        assert!(other.now_or_never().is_none(), "only that one");
    }
}
