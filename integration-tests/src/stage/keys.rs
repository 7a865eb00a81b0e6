//! Certificates of the processes of a stage.
//!
//! Invariant: one authority for all of them, and a folder of files for each identity, as
//! `longshore certificates` writes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use longshore_authority::{Authority, RENEWED_LIFE, Signed};
use longshore_runtime::identity::Identity;
use longshore_runtime::platform::Platform;
use longshore_runtime::tls::TlsArgs;

/// What services let clients of tests do.
pub const CLIENT_RIGHTS: &str =
    "test=plan+explain+watch,planner=plan,explainer=explain,onlooker=watch";
/// The client that asks on behalf of tests.
const CLIENT: &str = "longshore://client/test";

/// An authority, and where what it signs goes.
#[derive(Clone)]
pub struct Keys {
    dir: PathBuf,
    authority: Arc<Authority>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Keys {
    /// An authority of its own, with a folder under `dir`.
    ///
    /// # Errors
    /// When nothing can be signed.
    pub fn new(dir: &Path) -> Result<Self> {
        let authority = Arc::new(Authority::new(SystemTime::now())?);
        Ok(Self { dir: dir.join("keys"), authority })
    }

    /// Files of an identity, signed anew: whoever reads them again has another certificate.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn sign(&self, identity: &Identity) -> Result<TlsArgs> {
        let signed = self.sign_at(identity, SystemTime::now(), RENEWED_LIFE)?;
        self.write(&identity.to_string(), &signed)
    }

    /// A certificate of another time.
    ///
    /// # Errors
    /// When nothing can be signed.
    pub fn sign_at(&self, identity: &Identity, at: SystemTime, life: Duration) -> Result<Signed> {
        Ok(self.authority.sign(&identity.clone().into(), at, life)?)
    }

    /// Writes what somebody has signed, to be trusted by whoever this authority trusts.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn write(&self, name: &str, signed: &Signed) -> Result<TlsArgs> {
        let dir = self.dir.join(name.replace([':', '/'], "-"));
        std::fs::create_dir_all(&dir)?;
        let put = |name: &str, text: &str| -> Result<Option<PathBuf>> {
            let path = dir.join(name);
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
            Ok(Some(path))
        };
        Ok(TlsArgs {
            tls_ca: put("ca.crt", &self.authority.own().certificate)?,
            tls_cert: put("tls.crt", &signed.certificate)?,
            tls_key: put("tls.key", &signed.key)?,
            allow_plaintext: false,
        })
    }

    /// Flags of a process with this identity.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn flags(&self, identity: &Identity) -> Result<Vec<String>> {
        let TlsArgs { tls_cert, tls_key, tls_ca, .. } = self.sign(identity)?;
        let files = [("--tls-cert", tls_cert), ("--tls-key", tls_key), ("--tls-ca", tls_ca)];
        let flags = files.into_iter().flat_map(|(flag, path)| {
            [flag.to_owned(), path.unwrap_or_default().display().to_string()]
        });
        Ok(flags.collect())
    }

    /// What a client of the services takes that has this identity.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn platform(&self, identity: &Identity) -> Result<Platform> {
        let credentials = self.sign(identity)?.credentials()?;
        Ok(Platform { credentials, ..Platform::system() })
    }

    /// The same, for the client that services know.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn client(&self) -> Result<Platform> {
        self.platform(&CLIENT.parse()?)
    }
}
