//! What keeps nodes that have to go, in turn: six kinds, one on each node with a pod.
//!
//! Invariant: whatever is placed holds before the next act begins, and all of it is taken away at
//! once, found by what it is and not by memory.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::parts::poll;
use crate::stage::hands;

/// How long it may take to hold.
const LIMIT: Duration = Duration::from_secs(60);
/// Label of pods and nodes with something on them, by its kind.
const LABEL: &str = "bench.longshore.dev/blocker";
/// A finalizer that nobody takes away.
const FINALIZER: &str = "bench.longshore.dev/held";
const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// Where DaemonSets of a cluster's own are, apart from the pods that are counted.
const SYSTEM: &str = "kube-system";
const AGENT: &str = "agent";

/// What keeps a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocker {
    /// A pod that refuses eviction by its annotation.
    Refusing,
    /// A pod whose budget allows no eviction.
    Budget,
    /// A pod with two budgets, which the API server never evicts.
    Twice,
    /// A pod that a finalizer keeps past its end.
    Finalizer,
    /// A volume that stays attached.
    Volume,
    /// A pod of a DaemonSet that does not tolerate the taint.
    Daemon,
}

const KINDS: [Blocker; 6] = [
    Blocker::Refusing,
    Blocker::Budget,
    Blocker::Twice,
    Blocker::Finalizer,
    Blocker::Volume,
    Blocker::Daemon,
];

impl Blocker {
    const fn name(self) -> &'static str {
        match self {
            Self::Refusing => "refusing",
            Self::Budget => "budget",
            Self::Twice => "twice",
            Self::Finalizer => "finalizer",
            Self::Volume => "volume",
            Self::Daemon => "daemon",
        }
    }

    /// What is written to the pod on the node.
    fn patch(self) -> Value {
        let mut metadata = json!({ "labels": { LABEL: self.name() } });
        match self {
            Self::Refusing => metadata["annotations"] = json!({ DO_NOT_DISRUPT: "true" }),
            Self::Finalizer => metadata["finalizers"] = json!([FINALIZER]),
            Self::Budget | Self::Twice | Self::Volume | Self::Daemon => {}
        }
        json!({ "metadata": metadata })
    }
}

/// Puts one on each node with a pod of the namespace `default`, and waits until all hold.
pub async fn place(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    hands::apply(client, &[daemon_set()]).await?;
    let mut daemons = 0;
    let found = pods.list(&ListParams::default()).await?.items;
    for (number, (pod, kind)) in found.iter().zip(KINDS.into_iter().cycle()).enumerate() {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let node = node.with_context(|| format!("{} is not bound", pod.name_any()))?;
        let params = PatchParams::default();
        pods.patch(&pod.name_any(), &params, &Patch::Merge(kind.patch())).await?;
        match kind {
            Blocker::Volume => hands::apply(client, &attached(number, &node)).await?,
            Blocker::Daemon => {
                let labels = json!({ "metadata": { "labels": { LABEL: kind.name() } } });
                nodes.patch(&node, &params, &Patch::Merge(labels)).await?;
                daemons += 1;
            }
            Blocker::Refusing | Blocker::Budget | Blocker::Twice | Blocker::Finalizer => {}
        }
    }
    // kube-controller-manager looks at a second budget of a pod when that is made, not when the pod
    // changes.
    hands::apply(client, &budgets()).await?;
    hold(client, daemons).await
}

/// Waits until kube-controller-manager has taken notice.
async fn hold(client: &Client, daemons: i32) -> Result<()> {
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let daemon_sets: Api<DaemonSet> = Api::namespaced(client.clone(), SYSTEM);
    poll::until("what keeps the nodes holds", LIMIT, || async {
        for budget in budgets.list(&ListParams::default()).await?.items {
            let covers = budget.status.as_ref().is_some_and(|status| status.current_healthy > 0);
            ensure!(covers, "{} covers no pod", budget.name_any());
        }
        let status = daemon_sets.get(AGENT).await?.status.unwrap_or_default();
        ensure!(status.number_ready == daemons, "{status:?}");
        anyhow::Ok(())
    })
    .await
}

/// Takes all of it away.
pub async fn remove(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let free = json!({ "metadata": {
        "annotations": { DO_NOT_DISRUPT: null }, "finalizers": null, "labels": { LABEL: null },
    }});
    for pod in pods.list(&ListParams::default().labels(LABEL)).await?.items {
        let (name, patch) = (pod.name_any(), Patch::Merge(&free));
        accept_missing(pods.patch(&name, &PatchParams::default(), &patch).await)?;
    }
    delete::<PodDisruptionBudget>(Api::default_namespaced(client.clone())).await?;
    delete::<VolumeAttachment>(Api::all(client.clone())).await?;
    delete::<DaemonSet>(Api::namespaced(client.clone(), SYSTEM)).await
}

/// Deletes whatever of a kind has the label.
async fn delete<K>(api: Api<K>) -> Result<()>
where
    K: Clone + Debug + DeserializeOwned + kube::Resource,
{
    for object in api.list(&ListParams::default().labels(LABEL)).await?.items {
        accept_missing(api.delete(&object.name_any(), &DeleteParams::default()).await)?;
    }
    Ok(())
}

/// What has gone meanwhile needs nothing any more.
fn accept_missing<T>(outcome: kube::Result<T>) -> Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// A budget that allows nothing, and two that allow everything and cover the same pods.
fn budgets() -> [Value; 3] {
    let (one, two) = (Blocker::Budget, Blocker::Twice);
    let all =
        [("none", one, json!(0)), ("first", two, json!("100%")), ("second", two, json!("100%"))];
    all.map(|(name, kind, max_unavailable)| {
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {
                "name": name, "namespace": "default", "labels": { LABEL: kind.name() },
            },
            "spec": {
                "maxUnavailable": max_unavailable,
                "selector": { "matchLabels": { LABEL: kind.name() } },
            },
        })
    })
}

/// A DaemonSet on the nodes that are labelled for it.
fn daemon_set() -> Value {
    let labels = json!({ "app": AGENT });
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": AGENT, "namespace": SYSTEM, "labels": { LABEL: Blocker::Daemon.name() },
        },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "nodeSelector": { LABEL: Blocker::Daemon.name() },
                    "containers": [{ "name": "pause", "image": "registry.k8s.io/pause:3.10" }],
                },
            },
        },
    })
}

/// A volume, attached to a node.
fn attached(number: usize, node: &str) -> [Value; 2] {
    let (volume, driver) = (format!("data-{number}"), "ebs.csi.aws.com");
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": { "name": volume, "labels": { LABEL: Blocker::Volume.name() } },
        "spec": {
            "attacher": driver, "nodeName": node, "source": { "persistentVolumeName": volume },
        },
    });
    let volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": volume },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "csi": { "driver": driver, "volumeHandle": format!("vol-{number}") },
        },
    });
    [volume, attachment]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_found_by_its_label_and_two_budgets_cover_one_pod() {
        let all = KINDS.map(|kind| kind.patch()["metadata"]["labels"][LABEL].clone());
        assert_eq!(all, KINDS.map(|kind| json!(kind.name())));
        let of = |kind: Blocker| {
            let covers =
                |budget: &&Value| budget["spec"]["selector"]["matchLabels"][LABEL] == kind.name();
            budgets().iter().filter(covers).count()
        };
        assert_eq!(KINDS.map(of), [0, 1, 2, 0, 0, 0]);
    }
}
