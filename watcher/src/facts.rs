//! Facts about the cluster itself, which nodes need to join it.
//!
//! Invariant: what was configured wins over what is found; what is not found stays empty, and an
//! actuator then asks EKS.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use kube::{Api, Client};
use longshore_proto::types::v1::ClusterFacts;
use longshore_runtime::entropy::Entropy;
use longshore_runtime::planted;
use tokio::sync::Notify;

use crate::args::Config;
use crate::index::{Index, Store};
use crate::names;

/// Longest time between two readings; each is drawn between half of it and the whole.
const ROUND: Duration = Duration::from_secs(10 * 60);
/// The namespace of the system.
const SYSTEM: &str = "kube-system";
/// How long the API server may take for each question.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where the cluster's DNS is, by namespace and Service.
const DNS: (&str, &str) = (SYSTEM, "kube-dns");
/// Where the certificate authority is, by namespace, ConfigMap and key.
const AUTHORITY: (&str, &str, &str) = (SYSTEM, "kube-root-ca.crt", "ca.crt");

/// Reads the facts of a cluster. Clones read the same.
#[derive(Clone)]
pub struct Facts {
    configured: ClusterFacts,
    client: Client,
    store: Store,
    jitter: Entropy,
}

impl Facts {
    /// The facts of the cluster that `client` reaches, for `store`.
    #[must_use]
    pub fn new(config: &Config, client: &Client, store: &Store, jitter: Entropy) -> Self {
        let configured = ClusterFacts {
            name: config.cluster_name.clone(),
            endpoint: config.cluster_endpoint.clone(),
            region: config.region.clone(),
            interruption_queue: config.interruption_queue.clone(),
            default_instance_profile: config.default_instance_profile.clone(),
            account_id: config.account_id.clone(),
            ..ClusterFacts::default()
        };
        Self { configured, client: client.clone(), store: store.clone(), jitter }
    }

    /// Reads them again from time to time and whenever `again` says so: a cluster is upgraded under
    /// a watcher that goes on running.
    ///
    /// # Errors
    /// None; the form suits a supervised task.
    pub async fn keep(&self, again: &Notify) -> anyhow::Result<()> {
        loop {
            let pause = self.jitter.range(ROUND / 2..=ROUND);
            if planted::is("S24") {
                std::future::pending::<()>().await;
            }
            // Whichever comes first.
            let _ = tokio::time::timeout(pause, again.notified()).await;
            self.refresh().await;
        }
    }

    /// Reads them. What is not answered stays as it was.
    pub async fn refresh(&self) {
        let (client, known) = (&self.client, self.store.read(|index| index.cluster().cloned()));
        let known = known.unwrap_or_default();
        let (ca_bundle, dns_ip, kubernetes_version, uid) = tokio::join!(
            answer(ca_bundle(client), &known.ca_bundle),
            answer(dns_ip(client), &known.dns_ip),
            answer(kubernetes_version(client), &known.kubernetes_version),
            answer(uid(client), &known.uid),
        );
        self.store.write(|index| {
            let mut facts = self.configured.clone();
            if facts.region.is_empty() {
                // Learned from nodes, perhaps while this was asked.
                facts.region = index.cluster().map(|it| it.region.clone()).unwrap_or_default();
            }
            if known.uid != uid && !known.uid.is_empty() {
                tracing::warn!(was = known.uid, uid, "another cluster answers under this address");
            }
            index.set_cluster(ClusterFacts { ca_bundle, dns_ip, kubernetes_version, uid, ..facts });
        });
    }
}

/// Completes the region from the nodes, once there are some; returns when it is known.
///
/// # Errors
/// None; the form suits a supervised task.
pub async fn complete(store: Store) -> anyhow::Result<()> {
    let mut changes = store.changes();
    loop {
        changes.mark_unchanged();
        let known =
            store.read(|index| index.cluster().is_none_or(|facts| !facts.region.is_empty()));
        if known {
            return Ok(());
        }
        if let Some(region) = store.read(region_of_nodes) {
            tracing::info!(region, "region taken from the cluster's nodes");
            store.write(|index| {
                let facts = index.cluster().cloned().unwrap_or_default();
                index.set_cluster(ClusterFacts { region, ..facts });
            });
            return Ok(());
        }
        changes.changed().await?;
    }
}

/// The answer, or what is known already.
async fn answer(
    question: impl Future<Output = kube::Result<Option<String>>>,
    known: &str,
) -> String {
    match tokio::time::timeout(PATIENCE, question).await {
        Ok(Ok(Some(found))) => found,
        // Whether it is not there or not served for the moment: what was read once is better.
        Ok(Ok(None)) | Err(_) => known.to_owned(),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a fact about the cluster is not to be had");
            known.to_owned()
        }
    }
}

/// UID of the namespace that every cluster has and none shares.
async fn uid(client: &Client) -> kube::Result<Option<String>> {
    let api: Api<Namespace> = Api::all(client.clone());
    Ok(api.get_opt(SYSTEM).await?.and_then(|namespace| namespace.metadata.uid))
}

async fn ca_bundle(client: &Client) -> kube::Result<Option<String>> {
    let (namespace, name, key) = AUTHORITY;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = api.get_opt(name).await?;
    Ok(map.and_then(|map| Some(STANDARD.encode(map.data?.get(key)?))))
}

async fn dns_ip(client: &Client) -> kube::Result<Option<String>> {
    let (namespace, name) = DNS;
    let api: Api<Service> = Api::namespaced(client.clone(), namespace);
    Ok(api.get_opt(name).await?.and_then(|service| service.spec?.cluster_ip))
}

async fn kubernetes_version(client: &Client) -> kube::Result<Option<String>> {
    let version = client.apiserver_version().await?;
    // Some providers append a plus sign to the minor version.
    let minor = version.minor.trim_end_matches(|c: char| !c.is_ascii_digit());
    Ok(Some(format!("{}.{minor}", version.major)))
}

/// Region by the label of a node, or by that of its zone.
fn region_of_nodes(index: &Index) -> Option<String> {
    let label = |key: &str| index.node_labels(key).next().map(|(_, value)| value.to_owned());
    label(names::REGION).or_else(|| {
        let zone = label(names::ZONE)?;
        let region = zone.trim_end_matches(|c: char| c.is_ascii_lowercase());
        (region.len() + 1 == zone.len()).then(|| region.to_owned())
    })
}

#[cfg(test)]
mod tests;
