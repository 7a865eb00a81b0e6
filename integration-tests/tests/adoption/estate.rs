//! A cluster and its region without any autoscaler: what one leaves and another finds.
//!
//! Invariant: autoscalers come and go; control plane, region, nodes and pods stay.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt as _};
use longshore_it::parts::{Process, poll};
use longshore_it::stage::home::Home;
use longshore_it::stage::services::{Service, Surroundings};
use longshore_it::stage::world::ROOT;
use longshore_it::stage::{agreement, eyes, hands};
use longshore_lab::instance::{Instance, InstanceSource as _, InstanceState};
use longshore_lab::kubelet::{KubeletConfig, Kubelets};
use longshore_lab::region::{CLUSTER, NODE_ROLE, Region, RegionConfig, RegionHandle};
use serde_json::{Value, json};

/// Most time for anything on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(180);
/// The region.
pub const REGION: &str = "us-east-1";
/// Name of the pool, and of its class.
pub const POOL: &str = "general";
/// Pods that the old autoscaler's nodes carry.
pub const PODS: usize = 200;
/// Pods that fit on a node of the pool.
pub const PODS_PER_NODE: usize = 10;
/// Nodes of the old autoscaler.
pub const NODES: usize = PODS / PODS_PER_NODE;
/// How long a service may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(30);
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Everything but an autoscaler. Fields are in the order in which they have to end.
pub struct Estate {
    /// Ours, while they run.
    ours: Option<Ours>,
    /// A client of the cluster with every right.
    pub client: Client,
    /// How autoscalers find the cluster and its region.
    pub around: Surroundings,
    /// The region.
    pub region: Arc<RegionHandle>,
    starts: usize,
    _kubelets: Kubelets,
    _home: Home,
}

/// Our services.
struct Ours {
    watcher: Process,
    scheduler: Service,
    actuator: Service,
}

impl Estate {
    /// Starts a control plane and a region; our kinds, which are Karpenter's, are installed.
    pub async fn start(name: &str) -> Result<Self> {
        let dir = crate::kept_dir(&format!("adoption-{name}-"))?;
        let region = Arc::new(Region::start(RegionConfig::simple(REGION)?).await?);
        let home = Home::start(true, &dir).await?;
        let client = home.client.clone();
        hands::apply(&client, &hands::manifests(&Path::new(ROOT).join("deploy/crds"))?).await?;
        hands::established(&client).await?;
        let kubelet = KubeletConfig::new(CLUSTER, REGION);
        let kubelets = Kubelets::start(client.clone(), Arc::clone(&region) as _, kubelet);
        let around = Surroundings {
            kubeconfig: home.kubeconfig.clone(),
            queue: CLUSTER.to_owned(),
            ..Surroundings::without_cluster(&dir, REGION, &region.endpoint_url())
        };
        let ours = None;
        Ok(Self { ours, client, around, region, starts: 0, _kubelets: kubelets, _home: home })
    }

    /// Starts our three services.
    pub async fn start_ours(&mut self) -> Result<()> {
        self.starts += 1;
        let mut around = self.around.clone();
        around.dir = around.dir.join(format!("longshore-{}", self.starts));
        std::fs::create_dir_all(&around.dir)?;
        let actuator = around.start_actuator("longshore-actuator", ANY_PORT).await?;
        let scheduler = around.start_scheduler(ANY_PORT, &[actuator.url()]).await?;
        let watcher = around.start_watcher("longshore-watcher", &scheduler.url())?;
        self.ours = Some(Ours { watcher, scheduler, actuator });
        Ok(())
    }

    /// Asks our services to end, and waits for it.
    pub async fn stop_ours(&mut self) -> Result<()> {
        let mut ours = self.ours.take().context("our services do not run")?;
        for process in [&mut ours.watcher, &mut ours.scheduler.process, &mut ours.actuator.process]
        {
            process.terminate()?;
            process.wait_for_exit(STOP_LIMIT).await?;
        }
        Ok(())
    }

    /// Our watcher.
    pub fn watcher(&mut self) -> Result<&mut Process> {
        Ok(&mut self.ours.as_mut().context("our services do not run")?.watcher)
    }

    /// Waits for something, for as long as our services run.
    pub async fn until<T, F>(&mut self, what: &str, attempt: impl Fn(Client) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let client = self.client.clone();
        let seen = poll::until(what, LIMIT, || attempt(client.clone())).await;
        if let Some(ours) = &mut self.ours {
            ours.actuator.process.ensure_running()?;
            ours.scheduler.process.ensure_running()?;
            ours.watcher.ensure_running()?;
        }
        seen.map_err(|error| error.context(format!("logs: {}", self.around.dir.display())))
    }

    /// Waits until so many pods of an app run.
    pub async fn until_running(&mut self, app: &str, pods: usize) -> Result<()> {
        let selector = format!("app={app}");
        self.until(&format!("{pods} pods of {app} run"), |client| {
            let selector = selector.clone();
            async move {
                let sight = eyes::look(&client, "default", &selector).await?;
                ensure!(sight.running == pods && sight.pending == 0, "{sight:?}");
                Ok(())
            }
        })
        .await
    }

    /// Instances that live.
    pub fn alive(&self) -> Vec<Instance> {
        let alive = |it: &Instance| it.state <= InstanceState::Running;
        self.region.instances().into_iter().filter(alive).collect()
    }

    /// No instance lives that no claim stands for, and no claim lacks its instance.
    pub async fn balanced(&self) -> Result<()> {
        let claims = eyes::claims(&self.client).await?;
        let claimed: BTreeSet<String> = agreement::provider_ids(&claims).collect();
        let alive = self.alive();
        let leaks = alive.iter().filter(|it| {
            let stands_for = |provider_id: &String| provider_id.ends_with(&it.instance_id);
            !claim_of(it).is_empty() && !claimed.iter().any(stands_for)
        });
        let leaks: Vec<_> = leaks.map(|it| &it.instance_id).collect();
        ensure!(leaks.is_empty(), "no claim stands for {leaks:?}");
        for provider_id in &claimed {
            let known = alive.iter().any(|it| provider_id.ends_with(&it.instance_id));
            ensure!(known, "a claim stands for {provider_id}, which does not run");
        }
        Ok(())
    }

    /// All NodeClaims by name.
    pub async fn claims(&self) -> Result<BTreeMap<String, DynamicObject>> {
        let claims = eyes::claims(&self.client).await?;
        Ok(claims.into_iter().map(|claim| (claim.name_any(), claim)).collect())
    }

    /// All nodes of pools by name.
    pub async fn nodes(&self) -> Result<BTreeMap<String, Node>> {
        let nodes = eyes::pool_nodes(&self.client).await?;
        Ok(nodes.into_iter().map(|node| (node.name_any(), node)).collect())
    }

    /// Pods of an app by UID, with their nodes.
    pub async fn pods(&self, app: &str) -> Result<BTreeMap<String, String>> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let pods = pods.list(&ListParams::default().labels(&format!("app={app}"))).await?;
        let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let place = |pod: &Pod| (pod.uid().unwrap_or_default(), node(pod).unwrap_or_default());
        Ok(pods.items.iter().map(place).collect())
    }
}

/// The class and the pool as their owner wrote them. Nothing is consolidated until that is asked
/// for.
pub fn policy() -> Vec<Value> {
    let terms = json!([{ "tags": { "karpenter.sh/discovery": CLUSTER } }]);
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": { "name": POOL },
        "spec": {
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": terms,
            "securityGroupSelectorTerms": terms,
            "role": NODE_ROLE,
            "tags": { "team": "shop" },
        },
    });
    let only = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
    let pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": POOL },
        "spec": {
            "limits": { "cpu": "200" },
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "Never",
                "budgets": [{ "nodes": "100%" }],
            },
            "template": {
                "metadata": {
                    "labels": { "shop.example/tier": "web" },
                    "annotations": { "shop.example/owner": "checkout" },
                },
                "spec": {
                    "expireAfter": "720h",
                    "terminationGracePeriod": "10m",
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": POOL,
                    },
                    "requirements": [
                        only("node.kubernetes.io/instance-type", "m5.large"),
                        only("karpenter.sh/capacity-type", "spot"),
                        only("kubernetes.io/arch", "amd64"),
                        only("kubernetes.io/os", "linux"),
                        only("karpenter.k8s.aws/instance-category", "m"),
                        only("topology.kubernetes.io/region", REGION),
                    ],
                },
            },
        },
    });
    vec![class, pool]
}

/// A Deployment whose pods fill a node of the pool by tens.
pub fn workload(app: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": app },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": app } },
            "template": {
                "metadata": { "labels": { "app": app } },
                "spec": {
                    "nodeSelector": { "shop.example/tier": "web" },
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "main",
                        "image": "example.com/none",
                        "resources": { "requests": { "cpu": "180m", "memory": "128Mi" } },
                    }],
                },
            },
        },
    })
}

/// Name of an instance's claim, by its tag.
pub fn claim_of(instance: &Instance) -> &str {
    instance.tags.get("karpenter.sh/nodeclaim").map_or("", String::as_str)
}
