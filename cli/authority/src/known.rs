//! What a certificate says.
//!
//! Invariant: of a file with several, the first is the one that it is about.

use std::time::{Duration, SystemTime};

use longshore_runtime::identity::Identity;
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{KeyPair, PublicKeyData as _};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use crate::{AuthorityError, Who};

/// A certificate that somebody has made.
#[derive(Clone, Debug)]
pub struct Known {
    pem: Pem,
    /// From when it is good.
    pub not_before: SystemTime,
    /// Until when.
    pub not_after: SystemTime,
    /// Whom it names; none when it names nobody of ours.
    pub identity: Option<Identity>,
    /// Names of hosts in it.
    names: Vec<String>,
}

impl Known {
    /// Reads the first certificate of a text.
    ///
    /// # Errors
    /// When there is none.
    pub fn read(text: &str) -> Result<Self, AuthorityError> {
        let none = || AuthorityError::Certificate("the text holds none".to_owned());
        all(text)?.into_iter().next().ok_or_else(none)
    }

    fn of(pem: Pem) -> Result<Self, AuthorityError> {
        let (_, certificate) = parse_x509_certificate(pem.contents()).map_err(unreadable)?;
        let validity = certificate.validity();
        let [not_before, not_after] =
            [validity.not_before, validity.not_after].map(|time| at(time.timestamp()));
        let (identity, names) = named(&certificate);
        Ok(Self { not_before, not_after, identity, names, pem })
    }

    /// True once so much of its life is over, in percent.
    #[must_use]
    pub fn is_past(&self, percent: u32, now: SystemTime) -> bool {
        let life = self.not_after.duration_since(self.not_before).unwrap_or_default();
        now >= self.not_before + life / 100 * percent
    }

    /// True when it names just this.
    #[must_use]
    pub fn is_of(&self, who: &Who) -> bool {
        self.identity.as_ref() == Some(&who.identity) && self.names == who.names()
    }

    /// True when `authority` has signed it.
    #[must_use]
    pub fn is_signed_by(&self, authority: &Self) -> bool {
        let parsed = [&self.pem, &authority.pem].map(|pem| parse_x509_certificate(pem.contents()));
        let [Ok((_, own)), Ok((_, theirs))] = &parsed else { return false };
        own.verify_signature(Some(theirs.public_key())).is_ok()
    }

    /// True when it lets whoever has this key sign.
    pub(crate) fn is_authority_of(&self, key: &KeyPair) -> bool {
        parse_x509_certificate(self.pem.contents()).is_ok_and(|(_, certificate)| {
            certificate.is_ca() && certificate.public_key().raw == key.subject_public_key_info()
        })
    }
}

/// The authorities of `texts` that are still good, each once, in the order given: what others trust
/// while one follows another.
///
/// # Errors
/// When a text holds what is no certificate.
pub fn bundle(texts: &[&str], now: SystemTime) -> Result<String, AuthorityError> {
    let mut kept: Vec<Known> = Vec::new();
    for text in texts {
        for known in all(text)? {
            let again = kept.iter().any(|other| other.pem == known.pem);
            if known.not_after > now && !again {
                kept.push(known);
            }
        }
    }
    let plain = EncodeConfig::new().set_line_ending(LineEnding::LF);
    Ok(kept.iter().map(|known| pem::encode_config(&known.pem, plain)).collect())
}

fn all(text: &str) -> Result<Vec<Known>, AuthorityError> {
    pem::parse_many(text).map_err(unreadable)?.into_iter().map(Known::of).collect()
}

fn unreadable(error: impl std::fmt::Display) -> AuthorityError {
    AuthorityError::Certificate(error.to_string())
}

/// A time in seconds since 1970, which lies after that.
fn at(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Whom a certificate names, and the hosts in it.
fn named(certificate: &X509Certificate<'_>) -> (Option<Identity>, Vec<String>) {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
    let uri = |name: &GeneralName<'_>| {
        if let GeneralName::URI(uri) = name { uri.parse().ok() } else { None }
    };
    let host = |name: &GeneralName<'_>| {
        if let GeneralName::DNSName(host) = name { Some((*host).to_owned()) } else { None }
    };
    let (uris, hosts) = (names.iter().filter_map(uri), names.iter().filter_map(host));
    let one = <[Identity; 1]>::try_from(uris.collect::<Vec<_>>());
    (one.ok().map(|[identity]| identity), hosts.collect())
}
