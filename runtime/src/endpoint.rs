//! Addresses of services.
//!
//! Invariant: one that is taken has a scheme that we know and a host.

use anyhow::Context as _;
use http::Uri;
use tonic::transport::Endpoint;

/// Checks an address that a channel will be made of later, and returns it.
///
/// # Errors
/// When `endpoint` is not a URL with scheme and host; the message says what one looks like.
pub fn check_endpoint(endpoint: &str) -> anyhow::Result<Uri> {
    parse(endpoint).map(|endpoint| endpoint.uri().clone())
}

/// The address as tonic takes it.
///
/// # Errors
/// As for [`check_endpoint`].
pub fn parse(endpoint: &str) -> anyhow::Result<Endpoint> {
    let parsed = Endpoint::from_shared(endpoint.to_owned())
        .with_context(|| format!("{endpoint:?} is not an address; write https://host:port"))?;
    let known = matches!(parsed.uri().scheme_str(), Some("http" | "https"));
    let complete = known && parsed.uri().host().is_some();
    anyhow::ensure!(complete, "{endpoint:?} lacks scheme or host; write https://host:port");
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_need_scheme_and_host() {
        assert!(check_endpoint("http://127.0.0.1:7400").is_ok());
        for wrong in ["", "127.0.0.1", "not an address", "/path", "ftp://host:1"] {
            assert!(check_endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
