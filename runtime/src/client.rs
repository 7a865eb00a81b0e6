//! gRPC client channels with the settings every hop shares.
//!
//! Invariant: a channel never waits for ever: connecting, idle connections and calls have bounds.

use std::time::Duration;

use anyhow::Context;
use tonic::transport::{Channel, Endpoint};

/// Longest time to connect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How often an idle connection is probed; a dead peer is noticed after this and the timeout.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// How long a probe may stay unanswered.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A channel to `endpoint` (`http://host:port`) that connects on first use and reconnects by itself.
///
/// # Errors
/// When `endpoint` is not a URL.
pub fn channel(endpoint: &str) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::from_shared(endpoint.to_owned())
        .with_context(|| format!("{endpoint:?} is not an address; write http://host:port"))?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .connect_lazy())
}

/// A unary request with its deadline set on both sides: tonic's endpoint timeout alone does not tell
/// the server.
#[must_use]
pub fn with_deadline<T>(message: T, deadline: Duration) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.set_timeout(deadline);
    request
}
