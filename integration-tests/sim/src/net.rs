//! The network between processes: bytes in order, late, held back or cut.
//!
//! Invariant: what one side has written arrives whole and in order or not at all; only the world's
//! seed decides when. Nothing here reads a clock but tokio's.

mod pipe;
mod transport;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_runtime::listener::Listener;
use longshore_runtime::net::Stream;
use tokio::sync::mpsc;

use crate::random::Random;
use pipe::{Half, Pipe};

pub use transport::Endpoint;

/// Connections that wait to be accepted.
const BACKLOG: usize = 128;

#[derive(Default)]
struct State {
    listeners: BTreeMap<SocketAddr, mpsc::Sender<io::Result<Stream>>>,
    pipes: Vec<(IpAddr, IpAddr, Arc<Pipe>)>,
    /// Edges over which nothing passes, from and to.
    blocked: BTreeSet<(IpAddr, IpAddr)>,
    /// Hosts that are stopped: nothing passes to or from them.
    stopped: BTreeSet<IpAddr>,
    /// Addresses that stand for several listeners, as a Service does.
    services: BTreeMap<SocketAddr, Vec<SocketAddr>>,
}

/// The network. Clones are the same one.
#[derive(Clone)]
pub struct Net {
    state: Arc<Mutex<State>>,
    random: Arc<Mutex<Random>>,
    latency_max: Duration,
}

impl Net {
    /// A network whose delays come out of `random`.
    #[must_use]
    pub fn new(random: Random, latency_max: Duration) -> Self {
        Self { state: Arc::default(), random: Arc::new(Mutex::new(random)), latency_max }
    }

    /// Begins to listen. A listener that was there before is gone.
    #[must_use]
    pub fn listen(&self, address: SocketAddr) -> Listener {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        self.lock().listeners.insert(address, sender);
        let incoming = futures::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|stream| (stream, receiver))
        });
        Listener::given(address, Box::pin(incoming))
    }

    /// Makes an address stand for several listeners.
    pub fn serve(&self, service: SocketAddr, behind: Vec<SocketAddr>) {
        self.lock().services.insert(service, behind);
    }

    /// The listener that a new connection to an address goes to: one that listens, by chance.
    fn resolve(&self, address: SocketAddr) -> SocketAddr {
        let state = self.lock();
        let Some(behind) = state.services.get(&address) else { return address };
        let listening = |at: &&SocketAddr| {
            state.listeners.contains_key(*at) && !state.stopped.contains(&at.ip())
        };
        let listening: Vec<SocketAddr> = behind.iter().filter(listening).copied().collect();
        drop(state);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        random.one(&listening).copied().unwrap_or(address)
    }

    /// Blocks or opens one direction between two hosts.
    pub fn block(&self, from: IpAddr, to: IpAddr, blocked: bool) {
        let mut state = self.lock();
        if blocked {
            state.blocked.insert((from, to));
        } else {
            state.blocked.remove(&(from, to));
        }
        state.wake();
    }

    /// True when nothing passes from one host to the other.
    #[must_use]
    pub fn is_blocked(&self, from: IpAddr, to: IpAddr) -> bool {
        self.lock().is_blocked(from, to)
    }

    /// Stops or resumes a host.
    pub fn stop(&self, host: IpAddr, stopped: bool) {
        let mut state = self.lock();
        if stopped {
            state.stopped.insert(host);
        } else {
            state.stopped.remove(&host);
        }
        state.wake();
    }

    /// Cuts all connections between two hosts; new ones can be made at once.
    pub fn cut(&self, one: IpAddr, other: IpAddr) {
        self.reset(|from, to| (from, to) == (one, other) || (to, from) == (one, other));
    }

    /// Ends all connections and listeners of a host that has died.
    pub fn drop_host(&self, host: IpAddr) {
        self.reset(|from, to| from == host || to == host);
        let mut state = self.lock();
        state.listeners.retain(|address, _| address.ip() != host);
        state.stopped.remove(&host);
    }

    /// Hosts that are connected for longer than this, from and to, with the connection's age.
    pub fn older_than(&self, age: Duration) -> Vec<(IpAddr, IpAddr, Duration)> {
        let state = self.lock();
        let old = state.pipes.iter().filter(|(_, _, pipe)| !pipe.is_over() && pipe.age() > age);
        old.map(|(from, to, pipe)| (*from, *to, pipe.age())).collect()
    }

    fn reset(&self, matches: impl Fn(IpAddr, IpAddr) -> bool) {
        let mut state = self.lock();
        let cut: Vec<_> = state.pipes.extract_if(.., |(from, to, _)| matches(*from, *to)).collect();
        drop(state);
        cut.into_iter().for_each(|(_, _, pipe)| pipe.reset());
    }

    /// A delay of one message.
    fn delay(&self) -> Duration {
        let most = u64::try_from(self.latency_max.as_micros()).unwrap_or(u64::MAX);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::from_micros(random.between(50, most))
    }

    fn connected(&self, from: IpAddr, to: SocketAddr) -> io::Result<Stream> {
        let there = Pipe::new(from, to.ip());
        let back = Pipe::new(to.ip(), from);
        let mut state = self.lock();
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let listener = state.listeners.get(&to).ok_or_else(refused)?;
        let theirs = Half::new(self.clone(), Arc::clone(&there), Arc::clone(&back));
        let accepted = listener.try_send(Ok(Stream::new(theirs)));
        if accepted.is_err() {
            state.listeners.remove(&to);
            return Err(refused());
        }
        state.pipes.retain(|(_, _, pipe)| !pipe.is_over());
        state.pipes.push((from, to.ip(), Arc::clone(&there)));
        state.pipes.push((to.ip(), from, Arc::clone(&back)));
        Ok(Stream::new(Half::new(self.clone(), back, there)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_blocked(&self, from: IpAddr, to: IpAddr) -> bool {
        self.blocked.contains(&(from, to))
            || self.stopped.contains(&from)
            || self.stopped.contains(&to)
    }

    fn wake(&self) {
        self.pipes.iter().for_each(|(_, _, pipe)| pipe.wake());
    }
}
