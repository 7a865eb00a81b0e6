//! The journal of shared calls, in a ConfigMap beside the cluster's Lease.
//!
//! Invariant: only the holder of the Lease opens or writes it, and each write names the version
//! that it changes. Both are asked again at each request: a process that was stopped for a while
//! writes nothing over what another has written since. Pages are compressed: launches of one call
//! are alike.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use longshore_actuator::ledger::{Journal, Key, StoreError};
use longshore_watcher::bounded;
use longshore_watcher::lease::Tenure;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Its name.
pub const NAME: &str = "longshore-launches";
/// Annotation that says how often it was opened: each time is a change, which ends the writer
/// before.
const OPENED: &str = "longshore.dev/opened";
/// How long the API server may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How well pages are compressed; the fastest levels do, for what repeats is near.
const LEVEL: i32 = 1;
/// Most bytes of all pages together; the API server takes 1 MiB, and base64 makes four of three.
const BYTES_MAX: usize = 700 * 1024;
/// Most bytes of one page when it is unpacked: two hundred launches take about one MiB.
const PAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How often opening is tried against another writer.
const ATTEMPTS_MAX: u32 = 5;

/// The ConfigMap.
pub struct ConfigMapJournal {
    api: Api<ConfigMap>,
    tenure: Tenure,
    held: Mutex<Held>,
}

/// What this process knows of it.
#[derive(Default)]
struct Held {
    /// Version that the next write changes.
    version: String,
    /// Bytes of each page.
    sizes: BTreeMap<String, usize>,
}

impl ConfigMapJournal {
    /// The journal in a namespace, for as long as the Lease is held.
    #[must_use]
    pub fn new(client: &Client, namespace: &str, tenure: Tenure) -> Self {
        let client = bounded::client(client, Some(tenure.clone()));
        Self { api: Api::namespaced(client, namespace), tenure, held: Mutex::default() }
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.tenure.holds() {
            return Ok(());
        }
        Err(StoreError::Unavailable("the Lease is not held".to_owned()))
    }

    /// The ConfigMap, marked as opened.
    async fn take(&self) -> Result<ConfigMap, StoreError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let taken = match patiently(self.api.get_opt(NAME)).await? {
                None => patiently(self.api.create(&PostParams::default(), &blank())).await,
                Some(found) => {
                    let next = opened(&found) + 1;
                    let mark = json!({ "metadata": {
                        "resourceVersion": found.metadata.resource_version,
                        "annotations": { OPENED: next.to_string() },
                    } });
                    patiently(self.patch(&mark)).await
                }
            };
            match taken {
                Err(Refused::Conflict) if attempts < ATTEMPTS_MAX => {}
                taken => return Ok(taken?),
            }
        }
    }

    async fn patch(&self, change: &Value) -> kube::Result<ConfigMap> {
        self.api.patch(NAME, &PatchParams::default(), &Patch::Merge(change)).await
    }
}

#[async_trait]
impl Journal for ConfigMapJournal {
    async fn open(&self) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        self.check()?;
        let mut held = self.held.lock().await;
        let found = self.take().await?;
        held.version = found.metadata.resource_version.clone().unwrap_or_default();
        let kept = found.binary_data.iter().flatten();
        held.sizes = kept.map(|(name, page)| (name.clone(), page.0.len())).collect();
        Ok(unpacked(found))
    }

    async fn write(&self, pages: BTreeMap<String, Option<Vec<u8>>>) -> Result<(), StoreError> {
        self.check()?;
        let mut held = self.held.lock().await;
        let mut sizes = held.sizes.clone();
        let mut data = serde_json::Map::new();
        for (name, page) in pages {
            let Some(page) = page else {
                sizes.remove(&name);
                data.insert(name, Value::Null);
                continue;
            };
            let packed = pack(&page)?;
            sizes.insert(name.clone(), packed.len());
            data.insert(name, json!(ByteString(packed)));
        }
        let bytes: usize = sizes.values().sum();
        if bytes > BYTES_MAX {
            let text = format!("ConfigMap {NAME} would hold {bytes} bytes, and {BYTES_MAX} fit");
            return Err(StoreError::Refused(text));
        }
        let change = json!({ "metadata": { "resourceVersion": held.version }, "binaryData": data });
        let written = patiently(self.patch(&change)).await?;
        held.version = written.metadata.resource_version.unwrap_or_default();
        held.sizes = sizes;
        Ok(())
    }
}

/// What is noted in the ConfigMap, as whoever takes over reads it: for those who look on.
#[must_use]
pub fn entries(found: ConfigMap) -> Vec<(Key, Vec<u8>)> {
    longshore_actuator::ledger::entries(unpacked(found))
}

/// Its pages by name. One that cannot be unpacked is handed on as it is, and set apart like any
/// that cannot be read.
fn unpacked(found: ConfigMap) -> BTreeMap<String, Vec<u8>> {
    let unpack =
        |page: ByteString| zstd::bulk::decompress(&page.0, PAGE_BYTES_MAX).unwrap_or(page.0);
    let kept = found.binary_data.unwrap_or_default();
    kept.into_iter().map(|(name, page)| (name, unpack(page))).collect()
}

/// Why the API server did not do it.
enum Refused {
    /// Somebody else wrote in between.
    Conflict,
    /// Anything else. It may or may not have happened.
    Other(String),
}

impl From<Refused> for StoreError {
    fn from(refused: Refused) -> Self {
        let needs = "get, create and patch on configmaps in its own namespace are needed";
        Self::Unavailable(match refused {
            Refused::Conflict => format!("ConfigMap {NAME} was written by somebody else"),
            Refused::Other(why) => format!("ConfigMap {NAME}: {why}; {needs}"),
        })
    }
}

async fn patiently<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, Refused> {
    match timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(Refused::Conflict),
        Ok(Err(error)) => Err(Refused::Other(error.to_string())),
        Err(_) => Err(Refused::Other(format!("no answer within {PATIENCE:?}"))),
    }
}

fn pack(page: &[u8]) -> Result<Vec<u8>, StoreError> {
    if page.len() > PAGE_BYTES_MAX {
        let text = format!("a page is {} bytes, and {PAGE_BYTES_MAX} are allowed", page.len());
        return Err(StoreError::Refused(text));
    }
    zstd::bulk::compress(page, LEVEL).map_err(|error| StoreError::Refused(error.to_string()))
}

fn blank() -> ConfigMap {
    let annotations = Some(BTreeMap::from([(OPENED.to_owned(), "1".to_owned())]));
    let name = Some(NAME.to_owned());
    ConfigMap {
        metadata: ObjectMeta { name, annotations, ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

fn opened(found: &ConfigMap) -> u64 {
    let annotations = found.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(OPENED)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
