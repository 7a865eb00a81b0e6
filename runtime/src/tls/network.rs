//! A way on which both ends prove who they are.
//!
//! Invariant: nothing is said on a connection before both have.

use std::io;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::Uri;

use super::{Credentials, Server};
use crate::net::{Network, Stream, Transport};

/// The same way, over which each end proves who it is; connections to what is no `server` fail.
#[must_use]
pub fn secured(network: Network, credentials: Arc<Credentials>, server: Server) -> Network {
    Network::Given(Arc::new(Secured { network, credentials, server }))
}

struct Secured {
    network: Network,
    credentials: Arc<Credentials>,
    server: Server,
}

impl Transport for Secured {
    fn connect(&self, uri: Uri) -> BoxFuture<'static, io::Result<Stream>> {
        let (opening, server) = (self.network.connect(uri), self.server);
        let credentials = Arc::clone(&self.credentials);
        Box::pin(async move { credentials.connect(opening.await?, server).await })
    }
}
