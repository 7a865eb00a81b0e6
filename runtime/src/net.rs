//! Connections as the services see them: bytes in order, from TCP or from a simulation.
//!
//! Invariant: no service opens a socket; it is given a [`Listener`](crate::listener::Listener) and
//! a [`Network`].

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::transport::server::Connected;

use crate::budget::Grant;
use crate::identity::Identity;

/// Longest time to connect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Port of an `https` address that names none.
const HTTPS_PORT: u16 = 443;

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

    /// Who is at the other end.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The bytes of a connection, and the connection without them.
    pub(crate) fn opened(self) -> (Box<dyn Io>, Frame) {
        (self.io, Frame { peer: self.peer, place: self._place })
    }

    /// A connection that somebody has opened, at its place.
    pub(crate) fn accepted(io: impl Io, peer: Peer, place: Grant) -> Self {
        Self { io: Box::new(io), peer, _place: Some(place) }
    }
}

/// What a connection is beside its bytes, while a handshake goes on over them.
pub(crate) struct Frame {
    peer: Peer,
    place: Option<Grant>,
}

impl Frame {
    /// The connection again, inside of what the handshake came to.
    pub(crate) fn secured(self, io: impl Io, identity: Identity) -> Stream {
        let peer = Peer { identity: Some(Arc::new(identity)), ..self.peer };
        Stream { io: Box::new(io), peer, _place: self.place }
    }
}

/// Who is at the other end of a connection, as far as that is known. Each request carries it in its
/// extensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Where it calls from.
    pub address: Option<IpAddr>,
    /// Who it has proved to be.
    pub identity: Option<Arc<Identity>>,
}

impl Peer {
    /// Who has sent a request with these extensions.
    #[must_use]
    pub fn of(extensions: &http::Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// A name for it where peers share something: its identity, else its address without the port.
    #[must_use]
    pub fn tenant(&self) -> String {
        match (&self.identity, self.address) {
            (Some(identity), _) => identity.to_string(),
            (None, Some(address)) => address.to_string(),
            (None, None) => "unknown".to_owned(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.identity, self.address) {
            (Some(identity), Some(address)) => write!(formatter, "{identity} at {address}"),
            _ => formatter.write_str(&self.tenant()),
        }
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
        self.peer.clone()
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

impl Network {
    /// A connection to the authority of `uri`.
    pub(crate) fn connect(&self, uri: Uri) -> BoxFuture<'static, io::Result<Stream>> {
        match self {
            Self::System => Box::pin(dial(uri)),
            Self::Given(transport) => transport.connect(uri),
        }
    }
}

async fn dial(uri: Uri) -> io::Result<Stream> {
    let host = uri.host().ok_or_else(|| io::Error::other("an address without a host"))?;
    // Addresses of version 6 stand in brackets in a URI, and nowhere else.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = uri.port_u16().unwrap_or(HTTPS_PORT);
    let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect((host, port))).await??;
    stream.set_nodelay(true)?;
    Ok(Stream::new(stream))
}

impl fmt::Debug for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::System => "Network::System",
            Self::Given(_) => "Network::Given",
        })
    }
}
