//! A process's own way into the network.
//!
//! Invariant: a connection takes a round trip; one to a host that cannot be reached never comes,
//! and the caller's own time-out ends the wait.

use std::io;
use std::net::{IpAddr, SocketAddr};

use futures::future::BoxFuture;
use http::Uri;
use longshore_runtime::net::{Stream, Transport};

use super::Net;

/// Where a process stands in the network.
pub struct Endpoint {
    /// The network.
    pub net: Net,
    /// Its own address.
    pub host: IpAddr,
}

impl Transport for Endpoint {
    fn connect(&self, uri: Uri) -> BoxFuture<'static, io::Result<Stream>> {
        let (net, from) = (self.net.clone(), self.host);
        Box::pin(async move {
            let address = uri.authority().and_then(|at| at.as_str().parse::<SocketAddr>().ok());
            let unknown = || io::Error::other(format!("{uri} is no address of the simulation"));
            let to = net.resolve(address.ok_or_else(unknown)?);
            tokio::time::sleep(net.delay() + net.delay()).await;
            while net.is_blocked(from, to.ip()) || net.is_blocked(to.ip(), from) {
                tokio::time::sleep(net.latency_max.max(std::time::Duration::from_millis(100)))
                    .await;
            }
            net.connected(from, to)
        })
    }
}
