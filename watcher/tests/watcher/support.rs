//! A cluster with our kinds, a scheduler and a watcher between them.
//!
//! Invariant: a wait ends with the state or fails the test with what it waited for.

use std::fmt::Debug;
use std::future::Future;

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use longshore_lab::cluster::{Cluster, ClusterConfig, ClusterHandle};
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{CreateClaim, RecordLaunch};
use longshore_proto::types::v1 as wire;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::tasks::Supervisor;
use longshore_watcher::api::crd::Kind;
use longshore_watcher::api::{EC2NodeClass, NodeClaim, NodePool};
use longshore_watcher::counters::Counters;
use longshore_watcher::{Config, Watcher};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::scheduler::{DEADLINE, Scheduler, Session};

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("waited {DEADLINE:?} in vain: {what}"),
    }
}

/// Everything a test needs.
pub struct World {
    pub cluster: ClusterHandle,
    pub client: kube::Client,
    pub scheduler: Scheduler,
    pub supervisor: Supervisor,
    pub metrics: Metrics,
}

impl World {
    pub async fn start() -> Self {
        Self::with(|config| config, &Kind::ALL).await
    }

    pub async fn with(adapt: impl FnOnce(Config) -> Config, kinds: &[Kind]) -> Self {
        let supervisor = Supervisor::new(
            CancellationToken::new(),
            longshore_runtime::platform::Platform::system(),
        );
        Self::on(supervisor, adapt, kinds).await
    }

    pub async fn on(
        supervisor: Supervisor,
        adapt: impl FnOnce(Config) -> Config,
        kinds: &[Kind],
    ) -> Self {
        Self::in_cluster(ClusterConfig::default(), supervisor, adapt, kinds).await
    }

    pub async fn in_cluster(
        cluster: ClusterConfig,
        supervisor: Supervisor,
        adapt: impl FnOnce(Config) -> Config,
        kinds: &[Kind],
    ) -> Self {
        Self::assemble(cluster, supervisor, adapt, (kinds, |client| client.clone())).await
    }

    /// One whose watcher sees the API server through a client of its own. No controller runs beside
    /// it.
    pub async fn seen(through: impl FnOnce(&kube::Client) -> kube::Client) -> Self {
        let platform = longshore_runtime::platform::Platform::system();
        let supervisor = Supervisor::new(CancellationToken::new(), platform);
        let cluster = ClusterConfig { controllers: false, ..ClusterConfig::default() };
        Self::assemble(cluster, supervisor, |config| config, (&Kind::ALL, through)).await
    }

    async fn assemble(
        cluster: ClusterConfig,
        supervisor: Supervisor,
        adapt: impl FnOnce(Config) -> Config,
        (kinds, through): (&[Kind], impl FnOnce(&kube::Client) -> kube::Client),
    ) -> Self {
        let cluster = Cluster::start(cluster).await.unwrap();
        let client = cluster.client().unwrap();
        install(&client, kinds).await;
        let scheduler = Scheduler::start().await;
        let config = adapt(Config {
            region: "us-east-1".to_owned(),
            ..Config::new("test", &scheduler.endpoint)
        });
        let metrics = Metrics::new();
        let counters = Counters::registered(&metrics, "test");
        Watcher::start_with(config, through(&client), &supervisor, counters).await.unwrap();
        Self { cluster, client, scheduler, supervisor, metrics }
    }

    /// What all series of a metric come to that have these labels.
    pub fn counted(&self, name: &str, labels: &str) -> f64 {
        let (text, head) = (self.metrics.text(), format!("{name}{{cluster=\"test\""));
        let of_metric =
            text.lines().filter(|line| line.starts_with(&head) && line.contains(labels));
        let values = of_metric.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum()
    }

    pub fn all<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = ()>,
    {
        Api::all(self.client.clone())
    }

    pub fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    pub async fn stop(self) {
        self.supervisor.token().cancel();
        self.supervisor.join(DEADLINE).await.unwrap();
        self.cluster.stop().await;
    }
}

pub async fn install(client: &kube::Client, kinds: &[Kind]) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for kind in kinds {
        api.create(&PostParams::default(), &kind.definition()).await.unwrap();
    }
}

pub async fn create<K>(api: &Api<K>, value: Value) -> K
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    let object = serde_json::from_value(value).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap()
}

pub async fn patch<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: Clone + DeserializeOwned + Debug,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

pub async fn patch_status<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: Clone + DeserializeOwned + Debug,
{
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Waits until the object of a name satisfies the condition; `None` is its absence.
pub async fn until<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    holds: impl Fn(Option<&K>) -> bool,
) -> Option<K>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut stream = std::pin::pin!(watcher(api.clone(), config).default_backoff());
    let mut known = None;
    let mut is_complete = false;
    within(what, async {
        while let Some(event) = stream.try_next().await.unwrap() {
            match event {
                watcher::Event::Init => known = None,
                watcher::Event::InitDone => is_complete = true,
                watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                    known = Some(object);
                }
                watcher::Event::Delete(_) => known = None,
            }
            if is_complete && holds(known.as_ref()) {
                return known;
            }
        }
        panic!("the watch ended: {what}");
    })
    .await
}

pub fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": { "containers": [{
            "name": "main", "image": "pause:3",
            "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } },
        }] },
    })
}

/// A node as a kubelet registers it, with the taint of one that nobody has taken into service.
pub fn node(name: &str, provider_id: &str) -> Value {
    let room = json!({ "cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "20Gi" });
    json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "spec": {
            "providerID": provider_id,
            "taints": [{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }],
        },
        "status": {
            "capacity": room, "allocatable": room,
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

pub fn node_pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": name },
        "spec": {
            "template": {
                "metadata": { "annotations": { "team": "a" } },
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default",
                    },
                    "requirements": [
                        { "key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"] },
                    ],
                },
            },
            "limits": { "cpu": 20 },
        },
    })
}

pub async fn pool(world: &World) {
    create(&world.all::<NodePool>(), node_pool("default")).await;
}

pub fn node_class(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": { "name": name },
        "spec": {
            "role": "node-role",
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "test" } }],
            "securityGroupSelectorTerms": [{ "id": "sg-1" }],
        },
    })
}

pub async fn class(world: &World) {
    create(&world.all::<EC2NodeClass>(), node_class("default")).await;
}

pub const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
pub const PROVIDER_ID: &str = "aws:///us-east-1a/i-1";

pub fn create_claim(name: &str, pods: &[String]) -> Action {
    Action::CreateClaim(CreateClaim {
        claim: Some(wire::NodeClaim {
            name: name.to_owned(),
            pool: "default".to_owned(),
            node_class: "EC2NodeClass/default".to_owned(),
            requirements: vec![wire::Requirement {
                key: "kubernetes.io/arch".to_owned(),
                operator: wire::Operator::In.into(),
                values: vec!["arm64".to_owned()],
                min_values: None,
            }],
            requests: Some(wire::Resources {
                cpu_millis: 100,
                memory_bytes: 64 << 20,
                pods: 1,
                ..wire::Resources::default()
            }),
            labels: [("team".to_owned(), "a".to_owned())].into(),
            launch_id: format!("launch-{name}"),
            max_price_micro_usd_per_hour: 12_000,
            traceparent: TRACE.to_owned(),
            ..wire::NodeClaim::default()
        }),
        pods: pods.to_vec(),
        ..CreateClaim::default()
    })
}

pub fn condition<'a>(
    claim: &'a NodeClaim,
    kind: &str,
) -> Option<&'a k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    claim.status.as_ref()?.conditions.iter().find(|c| c.type_ == kind)
}

pub fn is_met(claim: Option<&NodeClaim>, kind: &str) -> bool {
    claim.and_then(|claim| condition(claim, kind)).is_some_and(|c| c.status == "True")
}

/// Provider id of the instance that [`record_launch`] records for a claim.
pub fn provider_id(claim: &str) -> String {
    format!("aws:///us-east-1a/i-{claim}")
}

/// The record of a claim's instance.
pub fn record_launch(claim: &str) -> RecordLaunch {
    RecordLaunch {
        claim: claim.to_owned(),
        provider_id: provider_id(claim),
        instance_type: "m7g.large".to_owned(),
        zone: "us-east-1a".to_owned(),
        capacity_type: wire::CapacityType::Spot.into(),
        ..RecordLaunch::default()
    }
}

/// A claim whose node has joined and been registered, with these pods on it.
pub async fn registered(world: &World, session: &mut Session, name: &str, node_name: &str) {
    use longshore_proto::cluster::v1::{DirectiveStatus, RegisterNode};
    assert_eq!(session.direct(create_claim(name, &[])).await.status(), DirectiveStatus::Done);
    let recorded = session.direct(Action::RecordLaunch(record_launch(name))).await;
    assert_eq!(recorded.status(), DirectiveStatus::Done, "{recorded:?}");
    create(&world.all::<Node>(), node(node_name, &provider_id(name))).await;
    session.until("the node is seen", |view| view.node(node_name).is_some()).await;
    let register =
        RegisterNode { claim: name.to_owned(), node: node_name.to_owned(), ..Default::default() };
    let result = session.direct(Action::RegisterNode(register)).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
}
