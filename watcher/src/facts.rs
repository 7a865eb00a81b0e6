//! Facts about the cluster itself, which nodes need to join it.
//!
//! Invariant: what was configured wins over what is found; what is not found stays empty, and an
//! actuator then asks EKS.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::{Api, Client, ResourceExt as _};
use longshore_proto::types::v1::ClusterFacts;

use crate::args::Config;
use crate::index::{Index, Store};
use crate::names;

/// How long the API server may take for each question.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where the cluster's DNS is, by namespace and Service.
const DNS: (&str, &str) = ("kube-system", "kube-dns");
/// Where the certificate authority is, by namespace, ConfigMap and key.
const AUTHORITY: (&str, &str, &str) = ("kube-system", "kube-root-ca.crt", "ca.crt");

/// The facts that are known before any node is.
pub async fn gather(config: &Config, client: &Client) -> ClusterFacts {
    ClusterFacts {
        name: config.cluster_name.clone(),
        endpoint: config.cluster_endpoint.clone(),
        ca_bundle: answer(ca_bundle(client)).await,
        dns_ip: answer(dns_ip(client)).await,
        service_cidr: String::new(),
        kubernetes_version: answer(kubernetes_version(client)).await,
        region: config.region.clone(),
        interruption_queue: config.interruption_queue.clone(),
        default_instance_profile: config.default_instance_profile.clone(),
        ..ClusterFacts::default()
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

async fn answer(question: impl Future<Output = kube::Result<Option<String>>>) -> String {
    match tokio::time::timeout(PATIENCE, question).await {
        Ok(Ok(found)) => found.unwrap_or_default(),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a fact about the cluster is not to be had");
            String::new()
        }
        Err(_) => String::new(),
    }
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
    let label = |key: &str| index.nodes().find_map(|node| node.labels().get(key).cloned());
    label(names::REGION).or_else(|| {
        let zone = label(names::ZONE)?;
        let region = zone.trim_end_matches(|c: char| c.is_ascii_lowercase());
        (region.len() + 1 == zone.len()).then(|| region.to_owned())
    })
}
