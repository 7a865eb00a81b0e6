//! Where connections come in, and who is let in.
//!
//! Invariant: each connection has a place of its own before anything is read from it, and no peer
//! takes the places of the others. One that is slow to prove who it is delays nobody.

use std::future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::server::TcpIncoming;

use crate::budget::{Budget, Spent};
use crate::net::{Peer, Stream};
use crate::seldom::Seldom;
use crate::tls::Credentials;

/// Most connections that a server has open at once, of all addresses; one address may have half of
/// those that the others leave. A watcher needs one, a scheduler one for each actuator.
const CONNECTIONS_MAX: usize = 2_048;

/// Where connections come in.
pub struct Listener {
    address: Option<SocketAddr>,
    incoming: BoxStream<'static, io::Result<Stream>>,
    is_secured: bool,
}

impl Listener {
    /// A listener at `address` that is given its connections.
    #[must_use]
    pub fn given(address: SocketAddr, incoming: BoxStream<'static, io::Result<Stream>>) -> Self {
        Self { address: Some(address), incoming, is_secured: false }
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

    /// True where each connection has proved an identity.
    #[must_use]
    pub const fn is_secured(&self) -> bool {
        self.is_secured
    }

    /// Lets in only who proves an identity, where we have one ourselves. A handshake that fails is
    /// said and stops nobody else.
    #[must_use]
    pub fn secured(self, credentials: Option<Arc<Credentials>>) -> Self {
        let Some(credentials) = credentials else { return self };
        let refused = Arc::new(Seldom::default());
        let Self { address, incoming, .. } = self;
        let proven = incoming.map(move |stream| {
            let (credentials, refused) = (Arc::clone(&credentials), Arc::clone(&refused));
            async move { proven(stream, &credentials, &refused).await.transpose() }
        });
        // As many at once as there are connections: a peer that says nothing has a place already,
        // and takes nobody's turn.
        let incoming = proven.buffer_unordered(CONNECTIONS_MAX).filter_map(future::ready);
        Self { address, incoming: incoming.boxed(), is_secured: true }
    }

    /// Closes at once what would be more than `most` connections, or more than one address may
    /// have.
    fn limited(listener: TcpListener, most: usize) -> Self {
        let address = listener.local_addr().ok();
        let (places, refused) = (Budget::new(most), Seldom::default());
        // Set on the listener's connections: the server's own setting does not reach them, and each
        // small answer would wait 40 ms for an acknowledgement.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let incoming = incoming.filter_map(move |stream| {
            future::ready(stream.map(|stream| placed(stream, &places, &refused)).transpose())
        });
        Self { address, incoming: incoming.boxed(), is_secured: false }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "listening");
        }
        Self::limited(listener, CONNECTIONS_MAX)
    }
}

/// A connection that somebody has opened, when there is a place for it.
fn placed(stream: TcpStream, places: &Budget, refused: &Seldom) -> Option<Stream> {
    let address = stream.peer_addr().ok().map(|address| address.ip());
    let peer = Peer { address, identity: None };
    let mut place = places.open(&peer.tenant());
    match place.grow(1) {
        Ok(()) => Some(Stream::accepted(stream, peer, place)),
        Err(spent) => {
            refused.say(|| crowded(&peer, &spent));
            None
        }
    }
}

fn crowded(peer: &Peer, spent: &Spent) {
    let peer = peer.tenant();
    tracing::warn!(peer, %spent, "connections refused; end some, or spread clients over servers");
}

/// A connection over which somebody has proved who it is.
async fn proven(
    stream: io::Result<Stream>,
    credentials: &Credentials,
    refused: &Seldom,
) -> io::Result<Option<Stream>> {
    let stream = stream?;
    let peer = stream.peer().tenant();
    match credentials.accept(stream).await {
        Ok(stream) => Ok(Some(stream)),
        Err(error) => {
            refused.say(|| {
                tracing::warn!(peer, %error, "not let in: it does not prove who it is");
            });
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future;
    use tokio::io::AsyncReadExt as _;

    use futures::StreamExt as _;

    use super::{Listener, TcpListener, TcpStream, io};

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
        let future::Either::Right((end, next)) = future::select(next, closed).await else {
            panic!("the third connection was accepted");
        };
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        drop(first);
        let _fifth = connect().await;
        assert!(next.await.unwrap().is_ok());
    }
}
