//! A process of the simulation: what it runs on, and its lives.
//!
//! Invariant: each life has a gate, randomness and tasks of its own; address and clock stay.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use longshore_lab::trap::Trap;
use longshore_lab::tripwire::Tripwire;
use longshore_runtime::clock::Clock;
use longshore_runtime::entropy::Entropy;
use longshore_runtime::net::Network;
use longshore_runtime::platform::{Confine, Platform, Work};
use longshore_runtime::pulse::Pulses;
use longshore_runtime::tasks::Supervisor;
use longshore_runtime::workers::Workers;
use tokio_util::sync::CancellationToken;

use crate::clock::WallClock;
use crate::gate::{Gate, Standing};
use crate::net::{Endpoint, Net};
use crate::random::mix;

/// Port that every service listens on.
const PORT: u16 = 7400;
/// Port of a second one in the same process.
const INNER_PORT: u16 = 7401;
/// Time that a plan takes.
const PLAN_TIME: Duration = Duration::from_millis(5);
/// Path of the function that each computation of a process begins with.
pub const COMPUTES: &str = "longshore_sim::process::computes";
/// How long a process may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// What a process runs on.
#[derive(Clone)]
pub struct Machine {
    /// Name, for people.
    pub name: String,
    /// Address.
    pub host: IpAddr,
    /// Clock.
    pub clock: WallClock,
    /// Lets a loop of its process panic where it asks for the time.
    pub trap: Trap,
    /// Lets a task of its process panic.
    pub tripwire: Tripwire,
    /// The network.
    pub net: Net,
    seed: u64,
    lives: u64,
}

/// One life of a process.
pub struct Process {
    /// Stops and ends it.
    pub gate: Gate,
    /// Owner of its tasks.
    pub supervisor: Supervisor,
    ended: CancellationToken,
}

/// What the tasks of a life run within.
struct Confined {
    gate: Gate,
    tripwire: Tripwire,
}

impl Confine for Confined {
    fn confine(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        self.gate.confine(task)
    }

    fn work<'a>(&self, task: &'static str, work: Work<'a>) -> Work<'a> {
        self.tripwire.work(task, work)
    }
}

impl Machine {
    /// The machine of this number.
    #[must_use]
    pub fn new(name: &str, number: u8, seed: u64, clock: &WallClock, net: &Net) -> Self {
        Self {
            name: name.to_owned(),
            host: IpAddr::V4(Ipv4Addr::new(10, 1, number, 1)),
            clock: clock.another(),
            trap: Trap::default(),
            tripwire: Tripwire::default(),
            net: net.clone(),
            seed,
            lives: 0,
        }
    }

    /// Where its service listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host, PORT)
    }

    /// Where the second of two services in its process listens.
    #[must_use]
    pub const fn inner_address(&self) -> SocketAddr {
        SocketAddr::new(self.host, INNER_PORT)
    }

    /// Where its service listens, as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Begins a life.
    pub fn boot(&mut self) -> Process {
        self.lives += 1;
        let gate = Gate::default();
        self.tripwire = Tripwire::default();
        let confined = Confined { gate: gate.clone(), tripwire: self.tripwire.clone() };
        let endpoint = Endpoint { net: self.net.clone(), host: self.host };
        let stream = format!("{}/{}", self.name, self.lives);
        let (watched, clock) = (self.trap.clone(), self.clock.clone());
        let told = move || {
            watched.tread();
            clock.now_ms()
        };
        let trap = self.trap.clone();
        let platform = Platform {
            clock: Clock::reading(told),
            entropy: Entropy::seeded(mix(self.seed, &stream)),
            network: Network::Given(Arc::new(endpoint)),
            credentials: None,
            workers: Workers::inline(PLAN_TIME, move || computes(&trap)),
            pulses: Pulses::default(),
            confinement: Some(Arc::new(confined)),
        };
        let supervisor = Supervisor::new(CancellationToken::new(), platform);
        let ended = CancellationToken::new();
        let (owner, end, name) = (supervisor.clone(), ended.clone(), self.name.clone());
        spawn(&gate, async move {
            if let Err(error) = owner.join(GRACE).await {
                tracing::error!(process = name, "ended: {error:#}");
            }
            end.cancel();
        });
        Process { gate, supervisor, ended }
    }

    /// Ends a life at once, as SIGKILL does.
    pub fn kill(&self, process: &Process) {
        process.gate.set(Standing::Dead);
        self.net.drop_host(self.host);
    }

    /// Stops a life, as SIGSTOP does, or lets it go on.
    pub fn stop(&self, process: &Process, stopped: bool) {
        self.net.stop(self.host, stopped);
        process.gate.set(if stopped { Standing::Stopped } else { Standing::Running });
    }
}

impl Process {
    /// True once it has ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }
}

/// A computation begins; [`COMPUTES`] names this.
#[inline(never)]
fn computes(trap: &Trap) {
    trap.tread();
}

/// Runs a task as part of a process.
pub fn spawn(gate: &Gate, task: impl Future<Output = ()> + Send + 'static) {
    start(gate.confine(Box::pin(task)));
}

/// Runs a task of the world itself.
#[allow(
    clippy::disallowed_methods,
    reason = "the world's own tasks end with the simulation's runtime"
)]
pub fn start(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}
