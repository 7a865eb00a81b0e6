//! Where plain text may be spoken: on loopback, and where somebody has allowed it.
//!
//! Invariant: checked with the arguments, before anything binds or connects.

use std::net::{IpAddr, SocketAddr};

use http::Uri;

use super::TlsArgs;
use crate::endpoint::check_endpoint;

/// An address at which nobody would prove who they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlainText {
    /// Others can reach it.
    #[error(
        "{flag} {address}: other machines reach this address, and nothing would say who calls; give \
         --tls-cert, --tls-key and --tls-ca, listen on 127.0.0.1, or allow it with --allow-plaintext"
    )]
    Listen {
        /// Argument.
        flag: &'static str,
        /// Its value.
        address: SocketAddr,
    },
    /// It is elsewhere.
    #[error(
        "{flag} {endpoint}: what is said on the way there could be read and changed; write https:// and \
         give --tls-cert, --tls-key and --tls-ca, or allow it with --allow-plaintext"
    )]
    Connect {
        /// Argument.
        flag: &'static str,
        /// Its value.
        endpoint: String,
    },
    /// etcd is elsewhere.
    #[error(
        "--etcd-endpoints {endpoint}: the ledger could be read and changed on the way there; write \
         https:// and give --etcd-ca, or allow it with --allow-plaintext"
    )]
    Etcd {
        /// The address.
        endpoint: String,
    },
    /// Nothing is there to prove who we are.
    #[error(
        "{flag} {endpoint}: https needs a certificate of ours; give --tls-cert, --tls-key and --tls-ca"
    )]
    NoCertificate {
        /// Argument.
        flag: &'static str,
        /// Its value.
        endpoint: String,
    },
}

impl TlsArgs {
    /// Checks an address that is listened on.
    ///
    /// # Errors
    /// When others reach it and need not prove who they are.
    pub fn check_listen(&self, flag: &'static str, address: SocketAddr) -> Result<(), PlainText> {
        if self.tls_cert.is_some() || self.allow_plaintext || address.ip().is_loopback() {
            return Ok(());
        }
        Err(PlainText::Listen { flag, address })
    }

    /// Checks the address of one of our services.
    ///
    /// # Errors
    /// When it is none, or nothing on the way to it would be proven.
    pub fn check_endpoint(&self, flag: &'static str, endpoint: &str) -> anyhow::Result<()> {
        let uri = check_endpoint(endpoint).map_err(|error| error.context(flag))?;
        let is_plain = uri.scheme_str() == Some("http");
        if !is_plain && self.tls_cert.is_none() {
            return Err(PlainText::NoCertificate { flag, endpoint: endpoint.to_owned() }.into());
        }
        if is_plain && !self.allow_plaintext && !is_loopback(&uri) {
            return Err(PlainText::Connect { flag, endpoint: endpoint.to_owned() }.into());
        }
        Ok(())
    }
}

/// True of an address that leads to this machine, whatever a resolver says.
#[must_use]
pub fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(certificate: bool, allow_plaintext: bool) -> TlsArgs {
        let tls_cert = certificate.then(|| "tls.crt".into());
        TlsArgs { tls_cert, allow_plaintext, ..TlsArgs::default() }
    }

    #[test]
    fn others_prove_who_they_are_or_are_not_listened_to() {
        let listens = |args: TlsArgs, address: &str| {
            args.check_listen("--listen", address.parse().unwrap()).is_ok()
        };
        for (address, alone) in [("127.0.0.1:1", true), ("[::1]:1", true), ("0.0.0.0:1", false)] {
            assert_eq!(listens(args(false, false), address), alone, "{address}");
            assert!(listens(args(true, false), address) && listens(args(false, true), address));
        }
    }

    #[test]
    fn the_scheme_says_whether_a_hop_is_proven() {
        let reached = |args: TlsArgs, endpoint: &str| {
            args.check_endpoint("--to", endpoint).map_err(|error| format!("{error:#}"))
        };
        for near in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"] {
            assert_eq!(reached(args(false, false), near), Ok(()), "{near}");
        }
        let far = reached(args(true, false), "http://10.0.0.1:1").unwrap_err();
        assert!(far.starts_with("--to http://10.0.0.1:1: ") && far.contains("https://"), "{far}");
        // A resolver that others control may say that this is near.
        assert!(reached(args(false, false), "http://localhost.example:1").is_err());
        assert_eq!(reached(args(false, true), "http://10.0.0.1:1"), Ok(()));
        assert_eq!(reached(args(true, false), "https://10.0.0.1:1"), Ok(()));
        let bare = reached(args(false, true), "https://10.0.0.1:1").unwrap_err();
        assert!(bare.contains("--tls-cert"), "{bare}");
        assert!(reached(args(true, true), "ftp://10.0.0.1:1").unwrap_err().contains("--to: "));
    }
}
