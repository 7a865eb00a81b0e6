//! A way between services of one process.
//!
//! Invariant: it leads over memory. No socket is there that another process could reach.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use http::Uri;
use tokio::sync::mpsc;

use crate::listener::Listener;
use crate::net::{Network, Stream, Transport};

/// Bytes under way in each direction.
const BUFFER_BYTES: usize = 256 * 1024;
/// Connections that have not been taken yet.
const WAITING_MAX: usize = 16;

/// A network with one listener for each of `N` services, and these.
#[must_use]
pub fn inner<const N: usize>() -> (Network, [Listener; N]) {
    let mut doors = BTreeMap::new();
    let listeners = std::array::from_fn(|number| {
        let port = u16::try_from(number + 1).unwrap_or(u16::MAX);
        let (opened, taken) = mpsc::channel(WAITING_MAX);
        doors.insert(port, opened);
        let taken = stream::unfold(taken, async |mut taken| {
            let stream: Stream = taken.recv().await?;
            Some((Ok(stream), taken))
        });
        Listener::given(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), taken.boxed())
    });
    (Network::Given(Arc::new(Inner(doors))), listeners)
}

/// Where each service takes its connections, by its port.
struct Inner(BTreeMap<u16, mpsc::Sender<Stream>>);

impl Transport for Inner {
    fn connect(&self, uri: Uri) -> BoxFuture<'static, io::Result<Stream>> {
        let door = uri.port_u16().and_then(|port| self.0.get(&port)).cloned();
        Box::pin(async move {
            let door = door.ok_or_else(|| refused("no service of this process is there"))?;
            let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
            let opened = door.send(Stream::new(theirs)).await;
            opened.map_err(|_| refused("the service has ended"))?;
            Ok(Stream::new(ours))
        })
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, why)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn each_service_is_reached_at_its_own_address() {
        let (network, [_first, second]) = inner();
        let url = format!("http://{}", second.address().unwrap());
        let mut ours = network.connect(url.parse().unwrap()).await.unwrap();
        let mut theirs = second.into_incoming().next().await.unwrap().unwrap();
        ours.write_all(b"hello").await.unwrap();
        let mut heard = [0; 5];
        theirs.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hello");
    }

    #[tokio::test]
    async fn nobody_is_at_another_address_nor_at_one_that_has_ended() {
        let (network, listeners) = inner::<1>();
        drop(listeners);
        for url in ["http://127.0.0.1:1", "http://127.0.0.1:9"] {
            let refused = network.connect(url.parse().unwrap()).await.err().unwrap();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused, "{url}");
        }
    }
}
