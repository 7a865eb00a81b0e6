//! gRPC client channels with the settings every hop shares.
//!
//! Invariant: a channel never waits for ever: connecting, idle connections and calls have bounds.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use http::Uri;
use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::net::Network;

/// Longest time to connect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How often an idle connection is probed; a dead peer is noticed after this and the timeout.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// How long a probe may stay unanswered.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A channel to `endpoint` (`http://host:port`) that connects on first use and reconnects by
/// itself.
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

/// Checks an address that [`channel`] will be given later.
///
/// # Errors
/// When `endpoint` is not a URL with scheme and host; the message says what one looks like.
pub fn check_endpoint(endpoint: &str) -> anyhow::Result<()> {
    parse(endpoint).map(drop)
}

fn parse(endpoint: &str) -> anyhow::Result<Endpoint> {
    let parsed = Endpoint::from_shared(endpoint.to_owned())
        .with_context(|| format!("{endpoint:?} is not an address; write http://host:port"))?;
    let complete = parsed.uri().scheme().is_some() && parsed.uri().host().is_some();
    anyhow::ensure!(complete, "{endpoint:?} lacks scheme or host; write http://host:port");
    Ok(parsed)
}

/// A unary request with its deadline set on both sides: tonic's endpoint timeout alone does not
/// tell the server.
#[must_use]
pub fn with_deadline<T>(message: T, deadline: Duration) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.set_timeout(deadline);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_need_scheme_and_host() {
        assert!(check_endpoint("http://127.0.0.1:7400").is_ok());
        for wrong in ["", "127.0.0.1", "not an address", "/path"] {
            assert!(check_endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
