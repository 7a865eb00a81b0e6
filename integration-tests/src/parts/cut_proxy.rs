//! A TCP proxy that behaves like a bad network: slow, cut at a chosen byte, half-open, refusing.
//! Before several servers it stands for a Service.
//!
//! Invariant: bytes that are passed are passed unchanged and in order; a fault acts on the
//! connections that are open as well as on new ones. Nothing of it outlives the [`CutProxy`].

use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Bytes read at once; also the grain in which latency is added.
const CHUNK_BYTES: usize = 16 * 1024;

/// What is wrong with the network. The default is: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Added to each chunk in each direction.
    pub latency: Duration,
    /// Close the connection after this many bytes to the server, counted from when the fault is
    /// set.
    pub cut_after_request_bytes: Option<usize>,
    /// Close the connection after this many bytes from the server, counted from when the fault is
    /// set. 0 loses the next answer: the server did the work, the client does not hear of it.
    pub cut_after_response_bytes: Option<usize>,
    /// Bytes to the server vanish; the connection stays open.
    pub swallow_requests: bool,
    /// Bytes from the server vanish; the connection stays open.
    pub swallow_responses: bool,
    /// Bytes wait, in both directions, and pass when the fault is gone: what TCP makes of a road
    /// that is cut for a while.
    pub stalled: bool,
    /// New connections are closed at once.
    pub refuse: bool,
}

impl Faults {
    /// Nothing passes for a while, and nothing is lost.
    #[must_use]
    pub fn stalled() -> Self {
        Self { stalled: true, ..Self::default() }
    }

    /// Both directions vanish while the connection stays open: a peer that lost its power.
    #[must_use]
    pub fn half_open() -> Self {
        Self { swallow_requests: true, swallow_responses: true, ..Self::default() }
    }
}

/// A running proxy in front of one server, or of several that are alike.
pub struct CutProxy {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    cuts: watch::Sender<()>,
    accepted: Arc<AtomicUsize>,
    // Owns the task that accepts, which owns those of its connections: dropped, all end.
    _tasks: JoinSet<()>,
}

impl CutProxy {
    /// Starts a proxy without faults in front of `server`.
    ///
    /// # Errors
    /// When no port can be opened on loopback.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        Self::before(&[server]).await
    }

    /// Starts a proxy without faults before several servers. Each connection goes to the next of
    /// them that accepts it.
    ///
    /// # Errors
    /// When no port can be opened on loopback.
    pub async fn before(servers: &[SocketAddr]) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let faults = watch::Sender::new(Faults::default());
        let cuts = watch::Sender::new(());
        let accepted = Arc::new(AtomicUsize::new(0));
        let (faulty, cut) = (faults.subscribe(), cuts.subscribe());
        let link = Link { servers: servers.into(), faults: faulty, cuts: cut };
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, link, Arc::clone(&accepted)));
        Ok(Self { address, faults, cuts, accepted, _tasks: tasks })
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts `faults` in the place of those before, for open and new connections.
    pub fn set(&self, faults: Faults) {
        self.faults.send_replace(faults);
    }

    /// Takes all faults away. Bytes that were swallowed stay lost.
    pub fn heal(&self) {
        self.set(Faults::default());
    }

    /// Closes all open connections now.
    pub fn cut(&self) {
        self.cuts.send_replace(());
    }

    /// How many connections were made so far, refused ones included.
    #[must_use]
    pub fn connections_total(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// What a connection needs to know.
#[derive(Clone)]
struct Link {
    servers: Arc<[SocketAddr]>,
    faults: watch::Receiver<Faults>,
    cuts: watch::Receiver<()>,
}

impl Link {
    /// The server whose turn it is, or the next one that accepts.
    async fn connect(&self, turn: usize) -> Option<TcpStream> {
        let first = turn % self.servers.len().max(1);
        for server in self.servers.iter().cycle().skip(first).take(self.servers.len()) {
            if let Ok(stream) = TcpStream::connect(server).await {
                return Some(stream);
            }
        }
        None
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Request,
    Response,
}

async fn accept(listener: TcpListener, link: Link, accepted: Arc<AtomicUsize>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let turn = accepted.fetch_add(1, Ordering::SeqCst);
        if !link.faults.borrow().refuse {
            connections.spawn(serve(client, link.clone(), turn));
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Carries one connection until both sides have closed it or a fault cuts it.
async fn serve(client: TcpStream, mut link: Link, turn: usize) {
    link.cuts.mark_unchanged();
    let Some(server) = link.connect(turn).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = pump(from_client, to_server, link.faults.clone(), Direction::Request);
    let responses = pump(from_server, to_client, link.faults.clone(), Direction::Response);
    tokio::select! {
        _ = async { tokio::try_join!(requests, responses) } => {}
        _ = link.cuts.changed() => {}
    }
}

/// Carries one direction until its sender closes it.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut faults: watch::Receiver<Faults>,
    direction: Direction,
) -> Result<(), Cut> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut passed_bytes = 0;
    loop {
        let read = from.read(&mut chunk).await?;
        // Through a clone: what has changed is asked below. Fails only when the proxy is gone.
        let _ = faults.clone().wait_for(|now| !now.stalled).await;
        if faults.has_changed().unwrap_or(false) {
            passed_bytes = 0;
        }
        let now = faults.borrow_and_update().clone();
        let swallows = direction.swallows(&now);
        match read {
            // Whoever hears nothing does not hear the end either.
            0 if swallows => return pending().await,
            0 => return Ok(to.shutdown().await?),
            _ => sleep(now.latency).await,
        }
        let room = direction.room(&now, passed_bytes, read);
        if !swallows {
            to.write_all(&chunk[..room]).await?;
        }
        passed_bytes += room;
        if room < read {
            return Err(Cut);
        }
    }
}

/// The connection has to end in both directions.
struct Cut;

impl From<io::Error> for Cut {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl Direction {
    /// How many of `read` bytes may still pass before the connection is cut.
    fn room(self, faults: &Faults, passed_bytes: usize, read: usize) -> usize {
        let limit = match self {
            Self::Request => faults.cut_after_request_bytes,
            Self::Response => faults.cut_after_response_bytes,
        };
        limit.map_or(read, |limit| limit.saturating_sub(passed_bytes).min(read))
    }

    fn swallows(self, faults: &Faults) -> bool {
        match self {
            Self::Request => faults.swallow_requests,
            Self::Response => faults.swallow_responses,
        }
    }
}
