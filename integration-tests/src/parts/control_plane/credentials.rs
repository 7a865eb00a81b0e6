//! Keys, certificates, tokens and kubeconfigs of a control plane, made new for each.
//!
//! Invariant: clients verify the server against an authority that exists for this control plane
//! only; the administrator's token is random.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::json;

/// Where pods reach the API server: the first address of the range that Services get theirs from.
const SERVICE_ADDRESS: &str = "10.96.0.1";

/// The files that prove who is who, in one folder.
pub(super) struct Credentials {
    dir: PathBuf,
    address: SocketAddr,
    admin_token: String,
}

impl Credentials {
    /// Makes and writes everything a control plane needs whose API server listens at `address`.
    pub(super) fn write(dir: &Path, address: SocketAddr) -> Result<Self> {
        let made = Self { dir: dir.to_owned(), address, admin_token: random_token()? };
        made.write_certificates()?;
        let accounts = KeyPair::generate()?;
        fs::write(made.account_key(), accounts.serialize_pem())?;
        fs::write(made.account_public_key(), accounts.public_key_pem())?;
        fs::write(made.tokens(), format!("{},admin,admin,system:masters\n", made.admin_token))?;
        made.write_kubeconfig("admin", made.address(), &made.admin_token)?;
        Ok(made)
    }

    /// Adds a user with every right and returns its kubeconfig; for before the API server starts,
    /// which reads tokens once.
    pub(super) fn add_user(&self, name: &str) -> Result<PathBuf> {
        let token = random_token()?;
        let known = fs::read_to_string(self.tokens())?;
        fs::write(self.tokens(), format!("{known}{token},{name},{name},system:masters\n"))?;
        self.write_kubeconfig(name, self.address(), &token)
    }

    /// Where the API server listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The API server's address for clients.
    pub(super) fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    pub(super) fn admin_token(&self) -> &str {
        &self.admin_token
    }

    pub(super) fn admin_kubeconfig(&self) -> PathBuf {
        self.kubeconfig("admin")
    }

    pub(super) fn server_cert(&self) -> PathBuf {
        self.dir.join("server.crt")
    }

    pub(super) fn server_key(&self) -> PathBuf {
        self.dir.join("server.key")
    }

    pub(super) fn account_key(&self) -> PathBuf {
        self.dir.join("service-accounts.key")
    }

    pub(super) fn account_public_key(&self) -> PathBuf {
        self.dir.join("service-accounts.pub")
    }

    pub(super) fn tokens(&self) -> PathBuf {
        self.dir.join("tokens.csv")
    }

    pub(super) fn authority(&self) -> PathBuf {
        self.dir.join("authority.crt")
    }

    fn kubeconfig(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.kubeconfig"))
    }

    /// Writes a kubeconfig (as JSON, which is YAML too) for the bearer of `token`, who connects to
    /// `address`; returns its path.
    pub(super) fn write_kubeconfig(
        &self,
        name: &str,
        address: SocketAddr,
        token: &str,
    ) -> Result<PathBuf> {
        let server = format!("https://{address}");
        let content = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{
                "name": "test",
                "cluster": { "server": server, "certificate-authority": self.authority() },
            }],
            "users": [{ "name": name, "user": { "token": token } }],
            "contexts": [{ "name": name, "context": { "cluster": "test", "user": name } }],
        });
        let path = self.kubeconfig(name);
        fs::write(&path, serde_json::to_vec_pretty(&content)?)?;
        Ok(path)
    }

    fn write_certificates(&self) -> Result<()> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Longshore test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate()?;
        fs::write(self.authority(), params.self_signed(&authority_key)?.pem())?;

        let issuer = Issuer::new(params, authority_key);
        let own = self.address.ip().to_string();
        let names = [&own, "localhost", SERVICE_ADDRESS, "kubernetes.default.svc"];
        let server_key = KeyPair::generate()?;
        let server =
            CertificateParams::new(names.map(str::to_owned))?.signed_by(&server_key, &issuer)?;
        fs::write(self.server_cert(), server.pem())?;
        Ok(fs::write(self.server_key(), server_key.serialize_pem())?)
    }
}

/// 32 random bytes in hexadecimal: a key's public half is as random as the key.
fn random_token() -> Result<String> {
    let key = KeyPair::generate()?;
    Ok(key.public_key_raw().iter().skip(1).take(32).map(|byte| format!("{byte:02x}")).collect())
}
