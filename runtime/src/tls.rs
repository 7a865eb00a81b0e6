//! TLS on every hop: files in, connections out that know who is at the other end.
//!
//! Invariant: each connection is made with the files as they were read last, so certificates are
//! changed while everything goes on. Nobody is spoken with who shows no certificate, or one that
//! the authority has not signed, that has run out or that names nobody.

mod authority;
mod files;
mod network;
mod plain;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, OtherError, ServerConfig};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use self::files::Files;
use crate::identity::Identity;
use crate::net::Stream;

pub use self::network::{OtherEnd, secured};
pub use self::plain::{PlainText, is_loopback};

/// How long the other end may take to prove who it is.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
/// How often files are looked at for a change; a mounted Secret changes within a minute.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What connections carry: HTTP/2.
const PROTOCOL: &[u8] = b"h2";

/// Arguments of every service about who it is.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Identity")]
pub struct TlsArgs {
    /// Certificate of this process, with what leads from it to the authority, in PEM. It carries
    /// the identity as a URI: longshore://scheduler, longshore://cluster/ACCOUNT/REGION/NAME,
    /// longshore://actuator/ACCOUNT/REGION or longshore://client/NAME. Read again when it changes.
    #[arg(long, env = "LONGSHORE_TLS_CERT", value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, in PEM.
    #[arg(long, env = "LONGSHORE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Authorities that the certificates of others must be from, in PEM.
    #[arg(long, env = "LONGSHORE_TLS_CA", value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,
    /// Allow addresses beyond this machine at which nobody proves who they are: whoever reaches
    /// them may do everything. Each start says so in the log.
    #[arg(long, env = "LONGSHORE_ALLOW_PLAINTEXT", value_parser = clap::builder::FalseyValueParser::new())]
    pub allow_plaintext: bool,
}

impl TlsArgs {
    /// Reads the files; none when none is given. Says when plain text is allowed.
    ///
    /// # Errors
    /// When a file cannot be read or does not hold what it should; the message names it.
    pub fn credentials(&self) -> anyhow::Result<Option<Arc<Credentials>>> {
        if self.allow_plaintext {
            tracing::warn!(
                "--allow-plaintext: what is not https is neither encrypted nor authorised"
            );
        }
        let (Some(cert), Some(key), Some(ca)) = (&self.tls_cert, &self.tls_key, &self.tls_ca)
        else {
            return Ok(None);
        };
        let files = Files { cert: cert.clone(), key: key.clone(), ca: ca.clone() };
        Credentials::read(files).map(|credentials| Some(Arc::new(credentials)))
    }
}

/// Whom a client wants to speak with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// A scheduler.
    Scheduler,
    /// An actuator, of whatever account and region.
    Actuator,
}

impl Server {
    const fn is(self, identity: &Identity) -> bool {
        match self {
            Self::Scheduler => matches!(identity, Identity::Scheduler),
            Self::Actuator => matches!(identity, Identity::Actuator { .. }),
        }
    }
}

/// Who this process is, and whom it believes.
#[derive(Debug)]
pub struct Credentials {
    files: Files,
    current: RwLock<Arc<Current>>,
}

/// What the files hold.
#[derive(Debug)]
struct Current {
    content: files::Content,
    identity: Identity,
    server: Arc<ServerConfig>,
    to_scheduler: Arc<ClientConfig>,
    to_actuator: Arc<ClientConfig>,
}

impl Credentials {
    fn read(files: Files) -> anyhow::Result<Self> {
        let current = Current::of(&files, files.content()?)?;
        tracing::info!(identity = %current.identity, "certificate read");
        Ok(Self { files, current: RwLock::new(Arc::new(current)) })
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who this process is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.current().identity.clone()
    }

    /// Reads the files again whenever they change, for ever. What cannot be used is said, and what
    /// was there before goes on.
    pub async fn keep(&self) {
        let mut refused = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.look(&mut refused);
        }
    }

    /// Takes over the files if they have changed. `refused` is what was there when they last could
    /// not be used: one complaint for each change.
    fn look(&self, refused: &mut Option<files::Content>) {
        let content = match self.files.content() {
            Ok(content) => content,
            Err(error) => {
                tracing::warn!("certificates cannot be read: {error:#}");
                return;
            }
        };
        if content == self.current().content || refused.as_ref() == Some(&content) {
            return;
        }
        match Current::of(&self.files, content.clone()) {
            Ok(current) => {
                tracing::info!(identity = %current.identity, "certificate changed");
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
                *refused = None;
            }
            Err(error) => {
                tracing::warn!(
                    "the certificate before goes on, as the new one is of no use: {error:#}"
                );
                *refused = Some(content);
            }
        }
    }

    /// Lets somebody in who proves an identity.
    ///
    /// # Errors
    /// When it does not, or not in time.
    pub async fn accept(&self, stream: Stream) -> io::Result<Stream> {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.current().server));
        let (io, frame) = stream.opened();
        let secured = in_time(acceptor.accept(io)).await?;
        let identity = proven(secured.get_ref().1.peer_certificates())?;
        Ok(frame.secured(secured, identity))
    }

    /// Proves who we are over a connection, once the other end has proved to be what is wanted.
    ///
    /// # Errors
    /// When it does not, or not in time.
    pub async fn connect(&self, stream: Stream, server: Server) -> io::Result<Stream> {
        let current = self.current();
        let config = match server {
            Server::Scheduler => &current.to_scheduler,
            Server::Actuator => &current.to_actuator,
        };
        let connector = TlsConnector::from(Arc::clone(config));
        // Names of hosts prove nothing here: the identity does.
        let name = ServerName::try_from("longshore").map_err(io::Error::other)?;
        let (io, frame) = stream.opened();
        let secured = in_time(connector.connect(name, io)).await?;
        let identity = proven(secured.get_ref().1.peer_certificates())?;
        Ok(frame.secured(secured, identity))
    }
}

async fn in_time<T>(handshake: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no TLS handshake in time");
    timeout(HANDSHAKE_WITHIN, handshake).await.map_err(late)?.map_err(|error| explained(&error))
}

/// The error of a handshake, for people: what the other end's certificate lacks, in words of ours
/// where rustls has none.
fn explained(error: &io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let text = match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(other)))) => {
            other.to_string()
        }
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => "the other end's certificate is from no authority of --tls-ca".to_owned(),
        Some(rustls::Error::NoCertificatesPresented) => {
            "the other end shows no certificate".to_owned()
        }
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), text)
}

fn proven(chain: Option<&[rustls::pki_types::CertificateDer<'_>]>) -> io::Result<Identity> {
    let first = chain.and_then(<[_]>::first);
    let first = first.ok_or_else(|| io::Error::other("the other end shows no certificate"))?;
    Identity::of(first).map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
