//! Connections as the services see them: bytes in order, from TCP or from a simulation.
//!
//! Invariant: no service opens a socket; it is given a [`Listener`] and a [`Network`].

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{self, BoxFuture};
use futures::stream::{BoxStream, StreamExt as _};
use http::Uri;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tonic::transport::server::{Connected, TcpIncoming};

use crate::budget::{Budget, Grant, Spent};

/// Most connections that a server has open at once, of all addresses; one address may have half of
/// those that the others leave. A watcher needs one, a scheduler one for each actuator.
const CONNECTIONS_MAX: usize = 2_048;
/// Least time between two words about connections that are refused.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// What a connection can do.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

/// A connection of any kind.
pub struct Stream {
    io: Box<dyn Io>,
    peer: Peer,
    /// Its place among the connections of a server.
    _place: Option<Grant>,
}

impl Stream {
    /// Wraps a connection with nobody in particular.
    #[must_use]
    pub fn new(io: impl Io) -> Self {
        Self { io: Box::new(io), peer: Peer::default(), _place: None }
    }

    /// A connection that somebody has opened, when there is a place for it.
    fn accepted(stream: TcpStream, places: &Budget) -> Result<Self, (Peer, Spent)> {
        let peer = Peer(stream.peer_addr().ok().map(|address| address.ip()));
        let mut place = places.open(&peer.tenant());
        place.grow(1).map_err(|spent| (peer, spent))?;
        Ok(Self { peer, _place: Some(place), ..Self::new(stream) })
    }
}

/// Who is at the other end of a connection, as far as that is known. Each request carries it in its
/// extensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer(pub Option<IpAddr>);

impl Peer {
    /// Who has sent a request with these extensions.
    #[must_use]
    pub fn of(extensions: &http::Extensions) -> Self {
        extensions.get().copied().unwrap_or_default()
    }

    /// A name for it where peers share something: its address without the port.
    #[must_use]
    pub fn tenant(self) -> String {
        self.0.map_or_else(|| "unknown".to_owned(), |address| address.to_string())
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Stream")
    }
}

impl Connected for Stream {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

/// Opens connections.
pub trait Transport: Send + Sync + 'static {
    /// A connection to the authority of `uri`.
    fn connect(&self, uri: Uri) -> BoxFuture<'static, io::Result<Stream>>;
}

/// The way to other processes.
#[derive(Clone, Default)]
pub enum Network {
    /// The machine's own.
    #[default]
    System,
    /// Another one.
    Given(Arc<dyn Transport>),
}

impl fmt::Debug for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::System => "Network::System",
            Self::Given(_) => "Network::Given",
        })
    }
}

/// Where connections come in.
pub struct Listener {
    address: Option<SocketAddr>,
    incoming: BoxStream<'static, io::Result<Stream>>,
}

impl Listener {
    /// A listener at `address` that is given its connections.
    #[must_use]
    pub fn given(address: SocketAddr, incoming: BoxStream<'static, io::Result<Stream>>) -> Self {
        Self { address: Some(address), incoming }
    }

    /// Address it listens on, when it has one.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The connections.
    #[must_use]
    pub fn into_incoming(self) -> BoxStream<'static, io::Result<Stream>> {
        self.incoming
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::limited(listener, CONNECTIONS_MAX)
    }
}

impl Listener {
    /// Closes at once what would be more than `most` connections, or more than one address may
    /// have.
    fn limited(listener: TcpListener, most: usize) -> Self {
        let address = listener.local_addr().ok();
        let (places, mut told) = (Budget::new(most), None::<Instant>);
        let mut refuse = move |peer: Peer, spent: Spent| {
            let now = Instant::now();
            if told.is_none_or(|told| now.duration_since(told) >= TOLD_EVERY) {
                told = Some(now);
                let peer = peer.tenant();
                tracing::warn!(peer, %spent, "connections refused; end some, or spread clients over servers");
            }
        };
        // Set on the listener's connections: the server's own setting does not reach them, and each
        // small answer would wait 40 ms for an acknowledgement.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let incoming = incoming.filter_map(move |stream| {
            future::ready(match stream.map(|stream| Stream::accepted(stream, &places)) {
                Ok(Ok(stream)) => Some(Ok(stream)),
                Ok(Err((peer, spent))) => {
                    refuse(peer, spent);
                    None
                }
                Err(error) => Some(Err(error)),
            })
        });
        Self { address, incoming: incoming.boxed() }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn one_connection_too_many_is_closed_and_a_place_is_free_again_when_one_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = Listener::limited(listener, 4);
        let address = listener.address().unwrap();
        let mut incoming = listener.into_incoming();
        let connect = async || TcpStream::connect(address).await.unwrap();
        let (_one, _two, mut third) = (connect().await, connect().await, connect().await);
        let first = incoming.next().await.unwrap().unwrap();
        let _second = incoming.next().await.unwrap().unwrap();
        // Two of four are left for the others, so the third finds no place, whatever comes after
        // it.
        let _fourth = connect().await;
        let next = incoming.next();
        let closed = third.read_u8();
        futures::pin_mut!(next, closed);
        let futures::future::Either::Right((end, next)) = future::select(next, closed).await else {
            panic!("the third connection was accepted");
        };
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        drop(first);
        let _fifth = connect().await;
        assert!(next.await.unwrap().is_ok());
    }
}
