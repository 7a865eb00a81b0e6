//! The way to running services.
//!
//! Invariant: an address beyond this machine is spoken with in plain text only where that is
//! allowed.

use longshore_runtime::client;
use longshore_runtime::platform::Platform;
use longshore_runtime::tls::{Server, TlsArgs};
use tonic::transport::Channel;

/// A channel to a service at the address that a flag names.
///
/// # Errors
/// When the address is no URL, may not be spoken with, or the certificate cannot be read.
pub fn channel(
    server: Server,
    (flag, url): (&'static str, &str),
    tls: &TlsArgs,
) -> anyhow::Result<Channel> {
    tls.check_endpoint(flag, url)?;
    let platform = Platform { credentials: tls.credentials()?, ..Platform::system() };
    client::channel_to(server, url, &platform)
}
