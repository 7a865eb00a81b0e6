//! A way on which both ends prove who they are.
//!
//! Invariant: nothing is said on a connection before both have.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::BoxFuture;
use http::Uri;

use super::{Credentials, Server};
use crate::identity::Identity;
use crate::net::{Network, Stream, Transport};

/// Who has proved to be at the other end of a way, when it was last connected.
#[derive(Clone, Debug, Default)]
pub struct OtherEnd(Arc<RwLock<Option<Arc<Identity>>>>);

impl OtherEnd {
    /// Its identity; none before the first connection, and none in plain text.
    #[must_use]
    pub fn identity(&self) -> Option<Arc<Identity>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The same way, over which each end proves who it is; connections to what is no `server` fail, and
/// `other_end` says who was found.
#[must_use]
pub fn secured(
    network: Network,
    credentials: Arc<Credentials>,
    server: Server,
    other_end: OtherEnd,
) -> Network {
    Network::Given(Arc::new(Secured { network, credentials, server, other_end }))
}

struct Secured {
    network: Network,
    credentials: Arc<Credentials>,
    server: Server,
    other_end: OtherEnd,
}

impl Transport for Secured {
    fn connect(&self, uri: Uri) -> BoxFuture<'static, io::Result<Stream>> {
        let (opening, server) = (self.network.connect(uri), self.server);
        let (credentials, OtherEnd(found)) =
            (Arc::clone(&self.credentials), self.other_end.clone());
        Box::pin(async move {
            let stream = credentials.connect(opening.await?, server).await?;
            let identity = stream.peer().identity.clone();
            *found.write().unwrap_or_else(PoisonError::into_inner) = identity;
            Ok(stream)
        })
    }
}
