//! A cluster: API server, controllers, kube-scheduler and kubelets, and what its users made in it.
//!
//! Invariant: nobody disturbs its own control plane; faults lie on the ways of our services to it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use longshore_lab::cluster::{ClusterConfig, ClusterHandle};
use longshore_lab::kubelet::{KubeletConfig, Kubelets};
use longshore_watcher::api::crd::Kind;
use serde_json::{Value, json};

use crate::apiserver;
use crate::region::Boots;
use crate::site::Site;
use crate::verdict::Seen;

/// A cluster.
pub struct Cluster {
    /// Name, which need not be its own.
    pub name: String,
    /// Name that is its own, for people.
    pub label: String,
    /// Index of its site.
    pub site: usize,
    /// The control plane.
    pub handle: Arc<ClusterHandle>,
    /// A client that nothing disturbs.
    pub client: kube::Client,
    /// What goes wrong with requests of our services.
    pub weather: apiserver::Weather,
    /// Address of its API server.
    pub address: IpAddr,
    _kubelets: Kubelets,
}

impl Cluster {
    /// What the judge looks at.
    pub fn seen(&self) -> Seen {
        Seen {
            name: self.name.clone(),
            label: self.label.clone(),
            site: self.site,
            handle: Arc::clone(&self.handle),
        }
    }

    /// Starts a cluster with our kinds installed and policies of a plain kind.
    ///
    /// # Errors
    /// When it cannot be furnished, which is a bug.
    pub async fn start(
        seed: u64,
        number: usize,
        (name, label): (&str, &str),
        (site, at): (usize, &Site),
    ) -> Result<Self> {
        let config = ClusterConfig {
            name: name.to_owned(),
            seed: crate::random::mix(seed, label),
            start_time: at.region.clock.now(),
            ..ClusterConfig::default()
        };
        let handle = Arc::new(longshore_lab::cluster::Cluster::in_process(config)?);
        let client = handle.in_process_client();
        let region = at.region.with(|model, _| model.config.name.clone());
        let mut kubelet = KubeletConfig::new(name, &region).realistic();
        kubelet.clock = handle.clock();
        let source = Boots::source(&at.region);
        let kubelets = Kubelets::start(client.clone(), source, kubelet);
        let last = u8::try_from(number).unwrap_or(u8::MAX);
        let cluster = Self {
            name: name.to_owned(),
            label: label.to_owned(),
            site,
            handle,
            client,
            weather: apiserver::Weather::default(),
            address: IpAddr::V4(Ipv4Addr::new(10, 3, last, 1)),
            _kubelets: kubelets,
        };
        cluster.furnish().await?;
        Ok(cluster)
    }

    async fn furnish(&self) -> Result<()> {
        for kind in Kind::ALL {
            self.apply(serde_json::to_value(kind.definition())?).await?;
        }
        self.apply(node_class()).await?;
        self.apply(node_pool()).await?;
        self.make_small_pool().await
    }

    /// Makes the smaller pool.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn make_small_pool(&self) -> Result<()> {
        self.apply(small_pool()).await
    }

    /// Creates an object, or merges it into the one that is there.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn apply(&self, object: Value) -> Result<()> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let (group, version) =
            text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
        let kind = GroupVersionKind::gvk(group, version, text("/kind"));
        let resource = ApiResource::from_gvk(&kind);
        let namespaced = ["Deployment", "PodDisruptionBudget"].contains(&text("/kind"));
        let api: Api<DynamicObject> = if namespaced {
            Api::namespaced_with(self.client.clone(), "default", &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        };
        let name = text("/metadata/name").to_owned();
        let params = PatchParams::apply("user").force();
        let applied = api.patch(&name, &params, &Patch::Apply(&object)).await;
        applied.map(drop).with_context(|| format!("applying {} {name}", kind.kind))
    }
}

impl Cluster {
    /// Objects of one of Karpenter's kinds.
    #[must_use]
    pub fn karpenter(&self, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("karpenter.sh", "v1", kind);
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    /// Merges fields into the pool, as `kubectl patch` does.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn merge_pool(&self, fields: Value) -> Result<()> {
        let api = self.karpenter("NodePool");
        let patched = api.patch("default", &PatchParams::default(), &Patch::Merge(&fields)).await;
        Ok(patched.map(drop)?)
    }
}

fn node_class() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": { "name": "default" },
        "spec": {
            "amiFamily": "AL2023",
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "lab" } }],
            "securityGroupSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "lab" } }],
            "role": longshore_lab::region::NODE_ROLE,
        },
    })
}

/// A pool that is preferred, and full at once: what does not fit goes to the other.
fn small_pool() -> Value {
    let mut pool = node_pool();
    pool["metadata"]["name"] = json!("small");
    pool["spec"]["weight"] = json!(50);
    pool["spec"]["limits"] = json!({ "cpu": "12", "nodes": "3" });
    pool["spec"]["disruption"]["budgets"] = json!([{ "nodes": "50%" }]);
    pool
}

fn node_pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": "default" },
        "spec": {
            "template": { "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default",
                },
                "requirements": [
                    { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"] },
                    { "key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["9"] },
                ],
                "expireAfter": "720h",
                "terminationGracePeriod": "5m",
            } },
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "1m",
                "budgets": [{ "nodes": "20%" }],
            },
            "limits": { "cpu": "400" },
        },
    })
}
