//! Who a process is to others: the name that its certificate carries.
//!
//! Invariant: an identity is what a certificate authority has signed, never what a message says.

use std::fmt;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// Scheme of the URI in a certificate.
const SCHEME: &str = "longshore://";

/// A process, as its certificate names it: one URI among the subject's alternative names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// The watcher of a cluster: `longshore://cluster/ACCOUNT/REGION/NAME`.
    Cluster {
        /// AWS account.
        account: String,
        /// Region.
        region: String,
        /// Name of the cluster.
        name: String,
    },
    /// A scheduler: `longshore://scheduler`.
    Scheduler,
    /// An actuator: `longshore://actuator/ACCOUNT/REGION`.
    Actuator {
        /// AWS account.
        account: String,
        /// Region.
        region: String,
    },
    /// Anybody else who plans, explains or looks on: `longshore://client/NAME`.
    Client {
        /// What people call it.
        name: String,
    },
}

/// Why a certificate names nobody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// Not a certificate of an end entity.
    #[error("not a certificate: {0}")]
    Malformed(String),
    /// Nothing of ours among its names.
    #[error("the certificate carries no URI that begins with {SCHEME}")]
    Absent,
    /// More than one identity.
    #[error("the certificate carries several identities: {0}; one is allowed")]
    Several(String),
    /// A URI of ours that names no kind of process.
    #[error(
        "{0:?} is no identity; write longshore://cluster/ACCOUNT/REGION/NAME, longshore://scheduler, \
         longshore://actuator/ACCOUNT/REGION or longshore://client/NAME"
    )]
    Unknown(String),
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster { account, region, name } => {
                write!(f, "{SCHEME}cluster/{account}/{region}/{name}")
            }
            Self::Scheduler => write!(f, "{SCHEME}scheduler"),
            Self::Actuator { account, region } => write!(f, "{SCHEME}actuator/{account}/{region}"),
            Self::Client { name } => write!(f, "{SCHEME}client/{name}"),
        }
    }
}

impl FromStr for Identity {
    type Err = IdentityError;

    fn from_str(uri: &str) -> Result<Self, Self::Err> {
        let unknown = || IdentityError::Unknown(uri.to_owned());
        let path = uri.strip_prefix(SCHEME).ok_or_else(unknown)?;
        let parts: Vec<&str> = path.split('/').collect();
        if !parts.iter().all(|part| is_plain(part)) {
            return Err(unknown());
        }
        match parts.as_slice() {
            ["cluster", account, region, name] => Ok(Self::Cluster {
                account: (*account).to_owned(),
                region: (*region).to_owned(),
                name: (*name).to_owned(),
            }),
            ["scheduler"] => Ok(Self::Scheduler),
            ["actuator", account, region] => {
                Ok(Self::Actuator { account: (*account).to_owned(), region: (*region).to_owned() })
            }
            ["client", name] => Ok(Self::Client { name: (*name).to_owned() }),
            _ => Err(unknown()),
        }
    }
}

/// True of letters, digits and the marks that names of clusters, accounts and regions have: nothing
/// that a URI would have to escape, so that equal identities are equal strings.
pub(crate) fn is_plain(part: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !part.is_empty() && part.chars().all(plain)
}

impl Identity {
    /// The identity that a certificate carries. Whether somebody trustworthy has signed it is
    /// another question, and comes first.
    ///
    /// # Errors
    /// When it carries none, several, or one of no known kind.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, IdentityError> {
        let malformed = |error: webpki::Error| IdentityError::Malformed(error.to_string());
        let certificate = EndEntityCert::try_from(certificate).map_err(malformed)?;
        let ours: Vec<&str> =
            certificate.valid_uri_names().filter(|uri| uri.starts_with(SCHEME)).collect();
        match ours.as_slice() {
            [] => Err(IdentityError::Absent),
            [uri] => uri.parse(),
            several => Err(IdentityError::Several(several.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_spelled_as_they_are_read() {
        for uri in [
            "longshore://cluster/111122223333/us-east-1/prod",
            "longshore://scheduler",
            "longshore://actuator/111122223333/us-east-1",
            "longshore://client/grafana",
        ] {
            assert_eq!(
                uri.parse::<Identity>().map(|identity| identity.to_string()),
                Ok(uri.into())
            );
        }
    }

    #[test]
    fn what_names_nobody_is_refused() {
        for uri in [
            "",
            "longshore://",
            "longshore://scheduler/",
            "longshore://Scheduler",
            "longshore://cluster/111122223333/us-east-1",
            "longshore://cluster/111122223333/us-east-1/prod/more",
            "longshore://cluster//us-east-1/prod",
            "longshore://client/a%2Fb",
            "longshore://client/a b",
            "spiffe://cluster/client/name",
        ] {
            assert_eq!(uri.parse::<Identity>(), Err(IdentityError::Unknown(uri.into())), "{uri}");
        }
    }
}
