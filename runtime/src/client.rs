//! gRPC client channels with the settings every hop shares.
//!
//! Invariant: a channel never waits for ever: connecting, idle connections and calls have bounds.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use http::Uri;
use hyper_util::rt::TokioIo;
use tonic::transport::Channel;
use tower::service_fn;

use crate::endpoint::parse;
use crate::net::{CONNECT_TIMEOUT, Network};
use crate::platform::Platform;
use crate::tls::{OtherEnd, Server, secured};

/// How often an idle connection is probed; a dead peer is noticed after this and the timeout.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// How long a probe may stay unanswered.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A channel to a service of ours that connects on first use and reconnects by itself. At an
/// `https` address each end proves who it is, and nobody is spoken with who is no `server`.
///
/// # Errors
/// When `endpoint` is not a URL with scheme and host, or is `https` and this process has no
/// certificate.
pub fn channel_to(server: Server, endpoint: &str, platform: &Platform) -> anyhow::Result<Channel> {
    identified(server, endpoint, platform).map(|(channel, _)| channel)
}

/// The same, and who is found there.
///
/// # Errors
/// As for [`channel_to`].
pub fn identified(
    server: Server,
    endpoint: &str,
    platform: &Platform,
) -> anyhow::Result<(Channel, OtherEnd)> {
    let other_end = OtherEnd::default();
    let Some(authority) = endpoint.strip_prefix("https://") else {
        return Ok((channel(endpoint, &platform.network)?, other_end));
    };
    let credentials = platform.credentials.clone();
    let credentials = credentials.with_context(|| {
        format!("{endpoint}: https needs a certificate of this process, and it has none")
    })?;
    // The connection is TLS already when tonic gets it.
    let network = secured(platform.network.clone(), credentials, server, other_end.clone());
    Ok((channel(&format!("http://{authority}"), &network)?, other_end))
}

/// A channel over plain text, or over a network that secures it by itself.
///
/// # Errors
/// When `endpoint` is not a URL with scheme and host.
pub fn channel(endpoint: &str, network: &Network) -> anyhow::Result<Channel> {
    let endpoint = parse(endpoint)?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    Ok(match network {
        Network::System => endpoint.connect_lazy(),
        Network::Given(transport) => {
            let transport = Arc::clone(transport);
            endpoint.connect_with_connector_lazy(service_fn(move |uri: Uri| {
                let connecting = transport.connect(uri);
                async move { connecting.await.map(TokioIo::new) }
            }))
        }
    })
}

/// A unary request with its deadline set on both sides: tonic's endpoint timeout alone does not
/// tell the server.
#[must_use]
pub fn with_deadline<T>(message: T, deadline: Duration) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.set_timeout(deadline);
    request
}
