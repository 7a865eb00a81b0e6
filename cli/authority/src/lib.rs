//! A private authority: it signs certificates that say who a process is.
//!
//! Invariant: nothing here reads a clock, a file or a network. A certificate carries one identity,
//! serves for connections in and out and for nothing else, and its key is made with it.

mod known;

use std::time::{Duration, SystemTime};

use longshore_runtime::identity::Identity;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

pub use self::known::{Known, bundle};

/// How long an authority lasts: all who trust it have to be told of the next one.
pub const AUTHORITY_LIFE: Duration = days(3_650);
/// How long a certificate lasts that renews itself.
pub const RENEWED_LIFE: Duration = days(90);
/// Certificates are good from a little before they are made: clocks differ.
const BEFORE: Duration = Duration::from_secs(600);
/// Name in subjects, for people, and of servers, for clients of other makes.
const SUBJECT: &str = "longshore";

/// A time in days.
#[must_use]
pub const fn days(count: u64) -> Duration {
    Duration::from_secs(count * 86_400)
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// What was given is no certificate.
    #[error("not a certificate in PEM: {0}")]
    Certificate(String),
    /// What was given is no key.
    #[error("not a private key in PEM: {0}")]
    Key(rcgen::Error),
    /// The certificate belongs to another key, or to nobody who may sign.
    #[error("the certificate is not that of an authority with this key")]
    Mismatch,
    /// It could not be signed.
    #[error("cannot be signed: {0}")]
    Signing(#[from] rcgen::Error),
}

/// A certificate and its private key, both in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Signed {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl std::fmt::Debug for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signed").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Whom a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// What we know it by.
    pub identity: Identity,
    /// Names of hosts that it answers at. We ask for none; clients of other makes do.
    pub hosts: Vec<String>,
}

impl Who {
    /// Its names: those of its hosts, and for a server one that is the same everywhere, for clients
    /// that are told to expect it.
    fn names(&self) -> Vec<String> {
        let serves = matches!(self.identity, Identity::Scheduler | Identity::Actuator { .. });
        let everywhere = serves.then(|| SUBJECT.to_owned());
        everywhere.into_iter().chain(self.hosts.iter().cloned()).collect()
    }
}

impl From<Identity> for Who {
    fn from(identity: Identity) -> Self {
        Self { identity, hosts: Vec::new() }
    }
}

/// Who signs.
pub struct Authority {
    own: Signed,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one, that signs itself.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn new(now: SystemTime) -> Result<Self, AuthorityError> {
        let mut params = lasting(now, AUTHORITY_LIFE);
        params.distinguished_name.push(DnType::CommonName, format!("{SUBJECT} authority"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        let own = Signed { certificate, key: key.serialize_pem() };
        Ok(Self { own, issuer: Issuer::new(params, key) })
    }

    /// One that was made before.
    ///
    /// # Errors
    /// When certificate and key are not those of one authority.
    pub fn read(own: Signed) -> Result<Self, AuthorityError> {
        let key = KeyPair::from_pem(&own.key).map_err(AuthorityError::Key)?;
        if !Known::read(&own.certificate)?.is_authority_of(&key) {
            return Err(AuthorityError::Mismatch);
        }
        let issuer = Issuer::from_ca_cert_pem(&own.certificate, key)?;
        Ok(Self { own, issuer })
    }

    /// Its own certificate and key.
    #[must_use]
    pub const fn own(&self) -> &Signed {
        &self.own
    }

    /// A certificate with a new key.
    ///
    /// # Errors
    /// When a name cannot be one, or there is no randomness.
    pub fn sign(
        &self,
        who: &Who,
        now: SystemTime,
        life: Duration,
    ) -> Result<Signed, AuthorityError> {
        let mut params = lasting(now, life);
        params.distinguished_name.push(DnType::CommonName, SUBJECT);
        params.subject_alt_names.push(SanType::URI(who.identity.to_string().try_into()?));
        for name in who.names() {
            params.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Signed { certificate, key: key.serialize_pem() })
    }
}

/// What a certificate begins as.
fn lasting(now: SystemTime, life: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.not_before = (now - BEFORE).into();
    params.not_after = (now + life).into();
    params
}

#[cfg(test)]
mod tests;
