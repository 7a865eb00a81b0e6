//! Keys, certificates, tokens and kubeconfigs of a control plane, made new for each.
//!
//! Invariant: clients verify the server against an authority that exists for this control plane
//! only; the administrator's token is random.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::json;

/// Where the files are that the API server reads.
pub(super) struct Files {
    pub(super) authority: PathBuf,
    pub(super) server_cert: PathBuf,
    pub(super) server_key: PathBuf,
    pub(super) account_key: PathBuf,
    pub(super) account_public_key: PathBuf,
    pub(super) tokens: PathBuf,
}

impl Files {
    /// The files of the control plane that lives in `dir`.
    pub(super) fn at(dir: &Path) -> Self {
        Self {
            authority: dir.join("authority.crt"),
            server_cert: dir.join("server.crt"),
            server_key: dir.join("server.key"),
            account_key: dir.join("service-accounts.key"),
            account_public_key: dir.join("service-accounts.pub"),
            tokens: dir.join("tokens.csv"),
        }
    }
}

/// What was written for a new control plane.
pub(super) struct Credentials {
    /// Kubeconfig with every right.
    pub(super) admin: PathBuf,
}

impl Credentials {
    /// Makes and writes everything a control plane on `port` needs.
    pub(super) fn write(dir: &Path, port: u16) -> Result<Self> {
        let files = Files::at(dir);
        write_certificates(&files)?;
        let accounts = KeyPair::generate()?;
        fs::write(&files.account_key, accounts.serialize_pem())?;
        fs::write(&files.account_public_key, accounts.public_key_pem())?;
        let token = random_token()?;
        fs::write(&files.tokens, format!("{token},admin,admin,system:masters\n"))?;
        let admin = admin_path(dir);
        write_kubeconfig(&admin, dir, port, &token)?;
        Ok(Self { admin })
    }
}

/// The API server's address.
pub(super) fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

/// Where the administrator's kubeconfig is.
pub(super) fn admin_path(dir: &Path) -> PathBuf {
    dir.join("admin.kubeconfig")
}

/// Writes a kubeconfig (as JSON, which is YAML too) for the bearer of `token`.
pub(super) fn write_kubeconfig(path: &Path, dir: &Path, port: u16, token: &str) -> Result<()> {
    let authority = Files::at(dir).authority;
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{
            "name": "test",
            "cluster": { "server": url(port), "certificate-authority": authority },
        }],
        "users": [{ "name": "test", "user": { "token": token } }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
    });
    Ok(fs::write(path, serde_json::to_vec_pretty(&content)?)?)
}

fn write_certificates(files: &Files) -> Result<()> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Longshore test authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    fs::write(&files.authority, params.self_signed(&authority_key)?.pem())?;

    let issuer = Issuer::new(params, authority_key);
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let server_key = KeyPair::generate()?;
    let server = CertificateParams::new(names)?.signed_by(&server_key, &issuer)?;
    fs::write(&files.server_cert, server.pem())?;
    Ok(fs::write(&files.server_key, server_key.serialize_pem())?)
}

/// 32 random bytes in hexadecimal: a key's public half is as random as the key.
fn random_token() -> Result<String> {
    let key = KeyPair::generate()?;
    Ok(key.public_key_raw().iter().skip(1).take(32).map(|byte| format!("{byte:02x}")).collect())
}
