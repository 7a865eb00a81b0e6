//! What a process is at the moment: running, stopped as by SIGSTOP, or dead.
//!
//! Invariant: a stopped process is not polled and nothing of it is dropped; a dead one is dropped
//! at its next poll, whatever it was waiting for.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::future::BoxFuture;

/// What a process is at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It runs.
    #[default]
    Running,
    /// It is stopped, as by SIGSTOP.
    Stopped,
    /// It is gone.
    Dead,
}

#[derive(Default)]
struct State {
    standing: Standing,
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

/// Holds the tasks of one process back, or lets them go. Clones are the same gate.
#[derive(Clone, Default)]
pub struct Gate(Arc<Mutex<State>>);

impl Gate {
    /// What the process is at the moment.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.lock().standing
    }

    /// Changes it. Death is for ever.
    pub fn set(&self, standing: Standing) {
        let mut state = self.lock();
        if state.standing != Standing::Dead {
            state.standing = standing;
        }
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_values().for_each(Waker::wake);
    }

    fn ticket(&self) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        state.next
    }

    fn poll(&self, id: u64, context: &Context<'_>) -> Standing {
        let mut state = self.lock();
        state.wakers.insert(id, context.waker().clone());
        state.standing
    }

    fn forget(&self, id: u64) {
        self.lock().wakers.remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task as it is to be run within this gate.
    pub fn confine(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        Box::pin(Gated { task: Some(task), gate: self.clone(), id: self.ticket() })
    }
}

struct Gated {
    task: Option<BoxFuture<'static, ()>>,
    gate: Gate,
    id: u64,
}

impl Future for Gated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.gate.poll(self.id, context) {
            Standing::Stopped => return Poll::Pending,
            Standing::Dead => {
                self.task = None;
                return Poll::Ready(());
            }
            Standing::Running => {}
        }
        let Some(task) = &mut self.task else { return Poll::Ready(()) };
        task.as_mut().poll(context)
    }
}

impl Drop for Gated {
    fn drop(&mut self) {
        self.gate.forget(self.id);
    }
}
