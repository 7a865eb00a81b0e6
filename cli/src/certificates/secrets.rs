//! Certificates in Secrets of a namespace.
//!
//! Invariant: a Secret is written over only what it was decided from: whoever comes second decides
//! anew.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::{ByteString, DeepMerge as _};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use super::renewal::{Change, Next, Pair};

/// Type of a Secret with a certificate.
const TYPE: &str = "kubernetes.io/tls";
/// Label of what Longshore made.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "longshore");
/// How often a change is decided anew when another came first.
const ATTEMPTS: u32 = 5;

/// Secrets of a namespace.
pub(super) struct Secrets {
    api: Api<Secret>,
    namespace: String,
}

impl Secrets {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned() }
    }

    /// What a Secret holds.
    pub(super) async fn read(&self, name: &str) -> anyhow::Result<Option<Pair>> {
        self.get(name).await?.as_ref().map(pair).transpose().with_context(|| self.named(name))
    }

    /// Brings a Secret to what is decided from what it holds.
    pub(super) async fn change(
        &self,
        name: &str,
        decide: impl Fn(Option<Pair>) -> anyhow::Result<(Pair, Change)>,
    ) -> anyhow::Result<(Pair, Change)> {
        for _ in 0..ATTEMPTS {
            let found = self.get(name).await?;
            let held = found.as_ref().map(pair).transpose().with_context(|| self.named(name))?;
            let (wanted, change) = decide(held).with_context(|| self.named(name))?;
            if change == Change::Kept || self.put(name, found, &wanted).await? {
                return Ok((wanted, change));
            }
        }
        bail!("{}: somebody else writes it all the time", self.named(name))
    }

    async fn get(&self, name: &str) -> anyhow::Result<Option<Secret>> {
        self.api.get_opt(name).await.with_context(|| format!("cannot read {}", self.named(name)))
    }

    /// Writes a Secret; false when another came first.
    async fn put(&self, name: &str, found: Option<Secret>, pair: &Pair) -> anyhow::Result<bool> {
        let params = PostParams::default();
        let wanted = secret(name, pair);
        let written = match found {
            None => self.api.create(&params, &wanted).await,
            Some(mut found) => {
                found.data = None;
                found.merge_from(wanted);
                self.api.replace(name, &params, &found).await
            }
        };
        match written {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error).with_context(|| format!("cannot write {}", self.named(name))),
        }
    }

    fn named(&self, name: &str) -> String {
        format!("Secret {}/{name}", self.namespace)
    }
}

/// A Secret to be applied elsewhere, in YAML.
pub(super) fn manifest(name: &str, pair: &Pair) -> anyhow::Result<String> {
    let mut secret = secret(name, pair);
    // For people to read: plain text, and no word of a version that does not fit elsewhere.
    let data = secret.data.take().unwrap_or_default();
    let text =
        |(key, value): (String, ByteString)| (key, String::from_utf8_lossy(&value.0).into_owned());
    secret.string_data = Some(data.into_iter().map(text).collect());
    Ok(serde_saphyr::to_string(&secret)?)
}

fn secret(name: &str, pair: &Pair) -> Secret {
    let labels = BTreeMap::from([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())]);
    let next = pair
        .next
        .iter()
        .flat_map(|next| [("next.crt", &next.certificate), ("next.key", &next.key)]);
    let own = [("tls.crt", &pair.certificate), ("tls.key", &pair.key), ("ca.crt", &pair.trusted)];
    let bytes =
        |(key, value): (&str, &String)| (key.to_owned(), ByteString(value.clone().into_bytes()));
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        type_: Some(TYPE.to_owned()),
        data: Some(own.into_iter().chain(next).map(bytes).collect()),
        ..Secret::default()
    }
}

fn pair(secret: &Secret) -> anyhow::Result<Pair> {
    let data = secret.data.clone().unwrap_or_default();
    let text = |key: &str| {
        let value = data.get(key).map(|value| String::from_utf8(value.0.clone()));
        value.transpose().with_context(|| format!("{key} is not text"))
    };
    let next = text("next.crt")?.zip(text("next.key")?);
    Ok(Pair {
        certificate: text("tls.crt")?.unwrap_or_default(),
        key: text("tls.key")?.unwrap_or_default(),
        trusted: text("ca.crt")?.unwrap_or_default(),
        next: next.map(|(certificate, key)| Next { certificate, key }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_holds_what_was_put_into_it() {
        let [certificate, key, trusted] = ["c", "k", "t"].map(str::to_owned);
        let next = Some(Next { certificate: "nc".to_owned(), key: "nk".to_owned() });
        for next in [next, None] {
            let whole = Pair {
                certificate: certificate.clone(),
                key: key.clone(),
                trusted: trusted.clone(),
                next,
            };
            assert_eq!(pair(&secret("s", &whole)).unwrap(), whole);
        }
    }

    #[test]
    fn a_manifest_is_what_kubectl_applies() {
        let own = Pair { certificate: "c\nd\n".to_owned(), ..Pair::default() };
        let read: Secret = serde_saphyr::from_str(&manifest("s", &own).unwrap()).unwrap();
        assert_eq!(read.type_.as_deref(), Some(TYPE));
        let data = read.string_data.unwrap_or_default();
        assert_eq!(data.get("tls.crt").map(String::as_str), Some("c\nd\n"));
    }
}
