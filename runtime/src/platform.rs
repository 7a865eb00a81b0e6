//! What a process has of the world outside: time, randomness, a network, a name, processors.
//!
//! Invariant: handed down from `main` with the [`Supervisor`](crate::tasks::Supervisor). No service
//! takes any of it from thin air, so that a simulation can stand in for all of it.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::net::Network;
use crate::pulse::Pulses;
use crate::tls::Credentials;
use crate::workers::Workers;

/// Work of a task, once.
pub type Work<'a> = BoxFuture<'a, anyhow::Result<()>>;

/// Wraps each task of a process. A simulation stops, resumes and kills processes through it, and
/// tests let their loops panic.
pub trait Confine: Send + Sync + 'static {
    /// The task as it is to be run.
    fn confine(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        task
    }

    /// What a task of this name does, each time it starts. A panic of it is one of the task.
    fn work<'a>(&self, task: &'static str, work: Work<'a>) -> Work<'a>;
}

/// What a process has of the world outside. Clones share it.
#[derive(Clone)]
pub struct Platform {
    /// Time of day.
    pub clock: Clock,
    /// Randomness.
    pub entropy: Entropy,
    /// The way to other processes.
    pub network: Network,
    /// Who it is to others; none where no hop is proven.
    pub credentials: Option<Arc<Credentials>>,
    /// Threads for work that computes.
    pub workers: Workers,
    /// Signs of life of loops and jobs.
    pub pulses: Pulses,
    /// Wraps each task; nothing does in a process of its own.
    pub confinement: Option<Arc<dyn Confine>>,
}

impl Platform {
    /// The machine this process runs on.
    #[must_use]
    pub fn system() -> Self {
        let pulses = Pulses::default();
        Self {
            clock: Clock::system(),
            entropy: Entropy::system(),
            network: Network::System,
            credentials: None,
            workers: Workers::threads(&pulses),
            pulses,
            confinement: None,
        }
    }
}

impl fmt::Debug for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Platform").field("network", &self.network).finish_non_exhaustive()
    }
}
