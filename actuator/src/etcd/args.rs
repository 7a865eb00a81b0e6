//! Where etcd is, and who we are to it.
//!
//! Invariant: files are read anew for each client that is made, so what has changed is used from
//! the next one on.

use std::path::{Path, PathBuf};

use clap::Args;
use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use longshore_runtime::endpoint::check_endpoint;
use longshore_runtime::tls::{PlainText, is_loopback};

/// Arguments about etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "etcd")]
pub struct EtcdArgs {
    /// Addresses of etcd, separated by commas; none means this is the region's only actuator, whose
    /// ledger is rebuilt from EC2's tags.
    #[arg(
        long = "etcd-endpoints",
        env = "LONGSHORE_ETCD_ENDPOINTS",
        value_delimiter = ',',
        value_name = "URL"
    )]
    pub endpoints: Vec<String>,
    /// Authorities that etcd's certificates must be from, in PEM, for https addresses. They must
    /// carry the host that its address names.
    #[arg(long = "etcd-ca", env = "LONGSHORE_ETCD_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Certificate that etcd is shown, in PEM.
    #[arg(
        long = "etcd-cert",
        env = "LONGSHORE_ETCD_CERT",
        value_name = "FILE",
        requires_all = ["key", "ca"]
    )]
    pub cert: Option<PathBuf>,
    /// Its private key, in PEM.
    #[arg(long = "etcd-key", env = "LONGSHORE_ETCD_KEY", value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// User of etcd.
    #[arg(
        long = "etcd-user",
        env = "LONGSHORE_ETCD_USER",
        value_name = "NAME",
        requires = "password_file"
    )]
    pub user: Option<String>,
    /// File with the user's password; white space at its end does not belong to it.
    #[arg(
        long = "etcd-password-file",
        env = "LONGSHORE_ETCD_PASSWORD_FILE",
        value_name = "FILE",
        requires = "user"
    )]
    pub password_file: Option<PathBuf>,
}

impl EtcdArgs {
    /// True when there is an etcd.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        !self.endpoints.is_empty()
    }

    /// Checks the addresses, and that nothing secret goes over plain text.
    ///
    /// # Errors
    /// When one is no URL, is `https` without an authority, or is `http` and not on this machine
    /// where that is not allowed.
    pub fn check(&self, allow_plaintext: bool) -> anyhow::Result<()> {
        const FLAG: &str = "--etcd-endpoints";
        for endpoint in &self.endpoints {
            let uri = check_endpoint(endpoint).map_err(|error| error.context(FLAG))?;
            let is_plain = uri.scheme_str() == Some("http");
            anyhow::ensure!(
                is_plain || self.ca.is_some(),
                "{FLAG} {endpoint}: https needs --etcd-ca, the authority of etcd's certificates"
            );
            if is_plain && !allow_plaintext && !is_loopback(&uri) {
                return Err(PlainText::Etcd { endpoint: endpoint.clone() }.into());
            }
        }
        Ok(())
    }

    /// These, and who we are.
    ///
    /// # Errors
    /// When a file cannot be read; the text names it.
    pub(super) fn identified(&self, options: ConnectOptions) -> Result<ConnectOptions, String> {
        let mut options = options;
        if let Some(ca) = &self.ca {
            let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read(ca)?));
            if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
                tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
            }
            options = options.with_tls(tls);
        }
        if let (Some(user), Some(file)) = (&self.user, &self.password_file) {
            let password = read(file)?;
            let password = String::from_utf8_lossy(password.trim_ascii_end());
            options = options.with_user(user, password);
        }
        Ok(options)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcd_is_near_or_proves_who_it_is() {
        let checked = |endpoint: &str, ca: bool, allowed: bool| {
            let ca = ca.then(|| PathBuf::from("ca.crt"));
            let args = EtcdArgs { endpoints: vec![endpoint.to_owned()], ca, ..Default::default() };
            args.check(allowed).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(checked("http://127.0.0.1:2379", false, false), Ok(()));
        assert_eq!(checked("https://etcd:2379", true, false), Ok(()));
        assert_eq!(checked("http://etcd:2379", false, true), Ok(()));
        for (endpoint, word) in [
            ("http://etcd:2379", "--allow-plaintext"),
            ("https://etcd:2379", "--etcd-ca"),
            ("etcd:2379", "--etcd-endpoints"),
        ] {
            let refused = checked(endpoint, false, false).unwrap_err();
            assert!(refused.contains(word), "{endpoint}: {refused}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let args = EtcdArgs { ca: Some("/nonexistent/ca.crt".into()), ..Default::default() };
        let refused = args.identified(ConnectOptions::new()).err().unwrap_or_default();
        assert!(refused.starts_with("/nonexistent/ca.crt: "), "{refused}");
    }
}
