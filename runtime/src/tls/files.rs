//! The three files of an identity.
//!
//! Invariant: an error names the file, what is wrong with it and what it should hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::authority::Authority;
use super::{Current, PROTOCOL, Server};
use crate::identity::Identity;

/// Where they are.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
    pub(super) ca: PathBuf,
}

/// What they hold.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Content {
    cert: Vec<u8>,
    key: Vec<u8>,
    ca: Vec<u8>,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Content")
    }
}

impl Files {
    pub(super) fn content(&self) -> Result<Content> {
        let read = |path: &Path, what: &str| {
            std::fs::read(path)
                .with_context(|| format!("{}: the {what} cannot be read", path.display()))
        };
        Ok(Content {
            cert: read(&self.cert, "certificate")?,
            key: read(&self.key, "private key")?,
            ca: read(&self.ca, "authority")?,
        })
    }
}

impl Current {
    /// What connections are made with.
    pub(super) fn of(files: &Files, content: Content) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = certificates(&files.cert, &content.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&content.key)
            .with_context(|| format!("{}: holds no private key in PEM", files.key.display()))?;
        let mut roots = RootCertStore::empty();
        for root in certificates(&files.ca, &content.ca)? {
            let why = || format!("{}: a certificate of no authority", files.ca.display());
            roots.add(root).with_context(why)?;
        }
        let name = || format!("{}", files.cert.display());
        let identity = chain.first().map(Identity::of).context("no certificate")?;
        let identity = identity.with_context(name)?;
        let own = Own { provider, chain, key, roots: Arc::new(roots) };
        let pair = || format!("{} and {}", files.cert.display(), files.key.display());
        Ok(Self {
            identity,
            server: Arc::new(own.server().with_context(pair)?),
            to_scheduler: Arc::new(own.client(Server::Scheduler).with_context(pair)?),
            to_actuator: Arc::new(own.client(Server::Actuator).with_context(pair)?),
            content,
        })
    }
}

fn certificates(path: &Path, content: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(content).collect();
    let all = all.with_context(|| format!("{}: not PEM", path.display()))?;
    ensure!(!all.is_empty(), "{}: holds no certificate in PEM", path.display());
    Ok(all)
}

struct Own {
    provider: Arc<CryptoProvider>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Arc<RootCertStore>,
}

impl Own {
    /// Whoever is let in proves an identity each time: sessions are not resumed.
    fn server(&self) -> Result<ServerConfig> {
        let verifier = WebPkiClientVerifier::builder_with_provider(
            Arc::clone(&self.roots),
            Arc::clone(&self.provider),
        );
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier.build()?)
            .with_single_cert(self.chain.clone(), self.key.clone_key())?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    fn client(&self, server: Server) -> Result<ClientConfig> {
        let authority = Authority {
            roots: Arc::clone(&self.roots),
            algorithms: self.provider.signature_verification_algorithms,
            server,
        };
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(authority))
            .with_client_auth_cert(self.chain.clone(), self.key.clone_key())?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = rustls::client::Resumption::disabled();
        Ok(config)
    }
}
