//! A cluster, a region and our own pods in it, for `longshore doctor` to look over.
//!
//! Invariant: the doctor is told nothing but where cluster and AWS are; the cluster's name and the
//! queue it finds in our own pods.

use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use longshore_it::parts::binary::workspace_program;
use longshore_it::parts::poll;
use longshore_it::stage::world::{World, WorldConfig};
use longshore_it::stage::{eyes, hands};
use longshore_lab::region::{CLUSTER, CONTROLLER_KEY, NODE_KEY, QueueConfig, RegionConfig};
use serde_json::{Value, json};

/// Most time for anything on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(90);
/// A queue that EventBridge may not send to.
pub const UNFILLED: &str = "unfilled";
const REGION: &str = "us-east-1";

/// Everything that is looked over.
pub struct Clinic {
    world: World,
}

/// What the doctor said.
pub struct Seen {
    /// Its exit code.
    pub code: i32,
    /// Its report.
    pub report: Value,
}

impl Clinic {
    /// Starts a real control plane and a region that `adjust` has seen.
    pub async fn open(name: &str, adjust: impl FnOnce(&mut RegionConfig)) -> Result<Self> {
        let mut region = RegionConfig::simple(REGION)?;
        region.queues.push(QueueConfig {
            name: UNFILLED.to_owned(),
            retention_s: 345_600,
            visibility_s: 30,
            receives_events: false,
        });
        adjust(&mut region);
        Self::start(name, region, |config| config.real = true).await
    }

    /// Starts a simulated cluster whose controller calls AWS as a node does.
    pub async fn open_as_node(name: &str) -> Result<Self> {
        let region = RegionConfig::simple(REGION)?;
        Self::start(name, region, |config| config.access_key = NODE_KEY.to_owned()).await
    }

    async fn start(
        name: &str,
        region: RegionConfig,
        adjust: impl FnOnce(&mut WorldConfig),
    ) -> Result<Self> {
        let dir = crate::kept_dir(&format!("doctor-{name}-"))?;
        let mut config = WorldConfig::new(region, CLUSTER, &dir);
        adjust(&mut config);
        Ok(Self { world: Box::pin(World::start(config)).await? })
    }

    /// Applies manifests.
    pub async fn apply(&self, manifests: &[Value]) -> Result<()> {
        hands::apply(&self.world.client, manifests).await
    }

    /// Our own pod as the chart makes it, under a service account with this role.
    pub async fn pods(&self, role: &str, queue: &str) -> Result<()> {
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {
                "name": "longshore",
                "namespace": "kube-system",
                "annotations": {
                    "eks.amazonaws.com/role-arn": format!("arn:aws:iam::111122223333:role/{role}"),
                },
            },
        });
        let off = json!({ "key": "karpenter.sh/nodepool", "operator": "DoesNotExist" });
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "longshore-0",
                "namespace": "kube-system",
                "labels": { "app.kubernetes.io/name": "longshore" },
            },
            "spec": {
                "serviceAccountName": "longshore",
                "affinity": { "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{ "matchExpressions": [off] }],
                    },
                }},
                "containers": [{
                    "name": "longshore",
                    "image": "longshore",
                    "env": [
                        { "name": "LONGSHORE_CLUSTER_NAME", "value": CLUSTER },
                        { "name": "LONGSHORE_INTERRUPTION_QUEUE", "value": queue },
                        { "name": "LONGSHORE_REGION", "value": REGION },
                    ],
                }],
            },
        });
        self.apply(&[account, pod]).await
    }

    /// Waits until the pool of the cluster says that it is ready, which it then stays.
    pub async fn until_ready(&self) -> Result<()> {
        poll::until("the pool is ready", LIMIT, || async {
            let pools = eyes::list(&self.world.client, "karpenter.sh", "v1", "NodePool").await?;
            let status = pools.iter().filter_map(|pool| pool.data.pointer("/status/conditions"));
            let mut conditions = status.filter_map(Value::as_array).flatten();
            let ready = conditions.any(|c| c["type"] == "Ready" && c["status"] == "True");
            ensure!(ready, "{pools:#?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// What the doctor says, for programs.
    pub async fn examine(&self, flags: &[&str]) -> Result<Seen> {
        let output = self.run([flags, &["--output", "json"]].concat()).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        let report = serde_json::from_str(&text).with_context(|| format!("{text}{error}"))?;
        Ok(Seen { code: output.status.code().context("killed")?, report })
    }

    /// What the doctor says, for people.
    pub async fn examine_as_text(&self) -> Result<String> {
        let output = self.run(Vec::new()).await?;
        let error = String::from_utf8_lossy(&output.stderr);
        Ok(format!("{}{error}", String::from_utf8_lossy(&output.stdout)))
    }

    async fn run(&self, flags: Vec<&str>) -> Result<Output> {
        let mut command = Command::new(workspace_program("longshore")?);
        command
            .arg("doctor")
            .args(flags)
            .arg("--kubeconfig")
            .arg(&self.world.admin)
            .env("AWS_ENDPOINT_URL", &self.world.surroundings.region_url)
            .env("AWS_ACCESS_KEY_ID", CONTROLLER_KEY)
            .env("AWS_SECRET_ACCESS_KEY", "lab")
            .env_remove("AWS_PROFILE");
        Ok(tokio::task::spawn_blocking(move || command.output()).await??)
    }
}

impl Seen {
    /// How many checks could not look at anything.
    pub fn skipped(&self) -> usize {
        let checks = self.report["checks"].as_array().into_iter().flatten();
        checks.filter(|check| check["skipped"] == true).count()
    }

    /// An error unless there is a finding with this object, and these parts in message and remedy.
    pub fn finds(&self, (object, message, remedy): (&str, &str, &str)) -> Result<()> {
        let checks = self.report["checks"].as_array().into_iter().flatten();
        let findings = checks.flat_map(|check| check["findings"].as_array().into_iter().flatten());
        let has = |it: &Value, field: &str, part: &str| {
            it[field].as_str().is_some_and(|text| text.contains(part))
        };
        let found = findings.filter(|it| it["object"] == object).any(|it| {
            let shown = it["evidence"].as_str().is_some_and(|text| !text.is_empty());
            shown && has(it, "message", message) && has(it, "remedy", remedy)
        });
        ensure!(found, "{object}: {message:?} with {remedy:?} is not in {:#}", self.report);
        Ok(())
    }
}

/// A node class that selects by discovery tag.
pub fn class(name: &str, discovery: &str, role: &str) -> Value {
    let terms = json!([{ "tags": { "karpenter.sh/discovery": discovery } }]);
    json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": { "name": name },
        "spec": {
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": terms,
            "securityGroupSelectorTerms": terms,
            "role": role,
        },
    })
}

/// A pool with limits.
pub fn pool(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": name },
        "spec": {
            "limits": { "cpu": "100" },
            "template": { "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class,
                },
                "requirements": [],
            }},
        },
    })
}

/// A Provisioner and its template.
pub fn first_api() -> [Value; 2] {
    let selector = json!({ "karpenter.sh/discovery": CLUSTER });
    let template = json!({
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": { "name": "dev" },
        "spec": { "subnetSelector": selector, "securityGroupSelector": selector },
    });
    let provisioner = json!({
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": { "name": "dev" },
        "spec": {
            "providerRef": { "name": "dev" },
            "limits": { "resources": { "cpu": "10" } },
        },
    });
    [template, provisioner]
}
