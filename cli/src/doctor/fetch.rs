//! Fetching: what [`Facts`] hold, read from the API server.
//!
//! Invariant: reads only, each kind once; a kind that cannot be read does not stop the others.

use std::time::Duration;

use anyhow::Context as _;
use futures::future::join_all;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use longshore_runtime::clock::Clock;
use serde_json::Value;

use super::facts::{Facts, Fetched, Kind};
use crate::args::DoctorArgs;

/// Longest wait for one kind.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where a kind is found: group, version, plural, and the namespace looked at (empty for all).
struct Source {
    kind: Kind,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    namespace: &'static str,
    selector: &'static str,
    fields: &'static str,
}

const fn all(
    kind: Kind,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
) -> Source {
    Source { kind, group, version, plural, namespace: "", selector: "", fields: "" }
}

const SYSTEM: &str = "kube-system";
/// The chart's own label, and those of the chart it can stand in for.
const OWN_PODS: &str = "app.kubernetes.io/name in (longshore, karpenter)";

/// Karpenter's Lease, wherever it runs.
const LEASE: &str = "metadata.name=karpenter-leader-election";

const SOURCES: [Source; 15] = [
    all(Kind::CustomResourceDefinition, "apiextensions.k8s.io", "v1", "customresourcedefinitions"),
    all(Kind::NodePool, "karpenter.sh", "v1", "nodepools"),
    all(Kind::EC2NodeClass, "karpenter.k8s.aws", "v1", "ec2nodeclasses"),
    all(Kind::NodeClaim, "karpenter.sh", "v1", "nodeclaims"),
    all(Kind::Provisioner, "karpenter.sh", "v1alpha5", "provisioners"),
    all(Kind::AWSNodeTemplate, "karpenter.k8s.aws", "v1alpha1", "awsnodetemplates"),
    Source { namespace: SYSTEM, ..all(Kind::ConfigMap, "", "v1", "configmaps") },
    all(Kind::ServiceAccount, "", "v1", "serviceaccounts"),
    Source { selector: OWN_PODS, ..all(Kind::Pod, "", "v1", "pods") },
    all(Kind::Node, "", "v1", "nodes"),
    all(Kind::Deployment, "apps", "v1", "deployments"),
    all(Kind::HorizontalPodAutoscaler, "autoscaling", "v2", "horizontalpodautoscalers"),
    all(Kind::PodDisruptionBudget, "policy", "v1", "poddisruptionbudgets"),
    Source { fields: LEASE, ..all(Kind::Lease, "coordination.k8s.io", "v1", "leases") },
    all(Kind::Machine, "karpenter.sh", "v1alpha5", "machines"),
];

/// Reads everything that the checks look at.
///
/// # Errors
/// When there is no usable kubeconfig, or the API server cannot be reached.
pub async fn fetch(args: &DoctorArgs) -> anyhow::Result<Facts> {
    let client = args.access.client().await?;
    client
        .apiserver_version()
        .await
        .context("the API server does not answer; check --kubeconfig, --context and the network")?;
    let asked = SOURCES.iter().map(|source| read(&client, source));
    let mut facts = Facts::default();
    for (source, fetched) in SOURCES.iter().zip(join_all(asked).await) {
        facts.put(source.kind, fetched);
    }
    facts.put_now(Clock::system().now());
    Ok(facts)
}

async fn read(client: &Client, source: &Source) -> Fetched {
    let kind = GroupVersionKind::gvk(source.group, source.version, &format!("{:?}", source.kind));
    let resource = ApiResource::from_gvk_with_plural(&kind, source.plural);
    let api: Api<DynamicObject> = match source.namespace {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let params = ListParams::default().labels(source.selector).fields(source.fields);
    let listed = tokio::time::timeout(PATIENCE, api.list(&params)).await;
    match listed {
        Ok(Ok(found)) => {
            let values = found.items.into_iter().map(serde_json::to_value);
            match values.collect::<Result<Vec<Value>, _>>() {
                Ok(objects) => Fetched::Objects(objects),
                Err(error) => Fetched::Unread(error.to_string()),
            }
        }
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Fetched::UnknownKind,
        Ok(Err(error)) => Fetched::Unread(error.to_string()),
        Err(_) => Fetched::Unread(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}
