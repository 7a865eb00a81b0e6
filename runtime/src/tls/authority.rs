//! Whether a server is what a client wants to speak with.
//!
//! Invariant: the chain leads to an authority, it has not run out, and the certificate names the
//! kind of service that is wanted. Names of hosts are not looked at: services move between hosts,
//! and an identity says more than a name in a resolver that others may control.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use super::Server;
use crate::identity::Identity;

/// Whom a client believes to be what it wants.
#[derive(Debug)]
pub(super) struct Authority {
    pub(super) roots: Arc<RootCertStore>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
    pub(super) server: Server,
}

/// Somebody else than was wanted.
#[derive(Debug, thiserror::Error)]
#[error("wanted {wanted:?}, and this is {found}")]
struct Another {
    wanted: Server,
    found: Identity,
}

impl ServerCertVerifier for Authority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        let refused = |error: OtherError| Error::from(CertificateError::Other(error));
        let found = Identity::of(end_entity);
        let found = found.map_err(|error| refused(OtherError(Arc::new(error))))?;
        if self.server.is(&found) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(refused(OtherError(Arc::new(Another { wanted: self.server, found }))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
