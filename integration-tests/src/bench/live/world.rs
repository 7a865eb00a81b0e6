//! The world of one run: a control plane, a region and its machines.
//!
//! Invariant: it is made anew for each run and the same for each contender. Machines boot in
//! exactly [`BOOT`]; the contender's requests, and nobody else's, are written down.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::DynamicObject;
use kube::{Api, Client};
use longshore_lab::kubelet::{KubeletConfig, Kubelets, StaticNode};
use longshore_lab::region::{CLUSTER, Region, RegionConfig, RegionHandle};
use serde_json::Value;
use tokio::time::Instant;

use crate::parts::control_plane::Observed;
use crate::parts::{ControlPlane, ControlPlaneOptions, poll};
use crate::stage::services::Surroundings;
use crate::stage::world::ROOT;
use crate::stage::{eyes, hands};

/// The region.
pub const REGION: &str = "us-east-1";
/// From a launch to its instance running, in milliseconds.
const RUNNING_AFTER_MS: u32 = 8_000;
/// From then to the Node, which is Ready at once.
const NODE_AFTER: Duration = Duration::from_secs(2);
/// From a launch to a Node that is Ready.
pub const BOOT: Duration = Duration::from_secs(10);
/// A node of Fargate, where autoscalers live: in a cluster without any node kube-scheduler does not
/// wait for nodes but tries again and again, ever more seldom, and that would be what is measured.
pub const HOST: (&str, i64, i64) = ("fargate-ip-10-0-9-9.ec2.internal", 500, 1 << 30);
/// How long class and pool may take to be Ready, and the contender to be quiet.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// For so long a contender that is up has nothing to ask of AWS.
const QUIET: Duration = Duration::from_secs(3);
/// A contender that waits for messages is quiet.
const WAITING: &str = "sqs:ReceiveMessage";

/// Everything but the contender. Fields are in the order in which they have to end.
pub struct World {
    _kubelets: Kubelets,
    plane: ControlPlane,
    /// The region.
    pub region: Arc<RegionHandle>,
    /// A client of the cluster with every right.
    pub client: Client,
    /// How the contender finds it all.
    pub around: Surroundings,
    /// The contender's requests.
    pub audit_log: PathBuf,
}

impl World {
    /// Starts it; our kinds, which are Karpenter's, are installed.
    ///
    /// # Errors
    /// When a part is not installed or does not start.
    pub async fn start(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let mut config = RegionConfig::simple(REGION)?;
        (config.timing.boot_min_ms, config.timing.boot_max_ms) =
            (RUNNING_AFTER_MS, RUNNING_AFTER_MS);
        let zone = config.zones.first().map(|zone| zone.name.clone()).unwrap_or_default();
        let region = Arc::new(Region::start(config).await?);
        let options = ControlPlaneOptions { observes: true, ..ControlPlaneOptions::default() };
        let plane = ControlPlane::start(options).await?;
        let Observed { kubeconfig, log } =
            plane.observed().cloned().context("nobody is observed")?;
        let client = plane.client();
        hands::apply(&client, &hands::manifests(&Path::new(ROOT).join("deploy/crds"))?).await?;
        hands::established(&client).await?;
        let kubelet =
            KubeletConfig { register_delay: NODE_AFTER, ..KubeletConfig::new(CLUSTER, REGION) };
        let mut kubelets = Kubelets::start(client.clone(), Arc::clone(&region) as _, kubelet);
        let (host, cpu_millis, memory_bytes) = HOST;
        kubelets.add_static_node(StaticNode::fargate(host, &zone, cpu_millis, memory_bytes));
        poll::until("the first node is there", READY_LIMIT, || async {
            Api::<Node>::all(client.clone()).get(host).await.map(drop)
        })
        .await?;
        let around = Surroundings {
            kubeconfig,
            queue: CLUSTER.to_owned(),
            ..Surroundings::without_cluster(dir, REGION, &region.endpoint_url())
        };
        Ok(Self { _kubelets: kubelets, plane, region, client, around, audit_log: log })
    }

    /// Waits until class and pool are Ready, and the contender asks nothing of AWS for a while.
    ///
    /// # Errors
    /// When that does not come in time.
    pub async fn settled(&self) -> Result<()> {
        let kinds = [("karpenter.k8s.aws", "EC2NodeClass"), ("karpenter.sh", "NodePool")];
        for (group, kind) in kinds {
            poll::until(&format!("the {kind} is Ready"), READY_LIMIT, || async {
                let found = eyes::list(&self.client, group, "v1", kind).await?;
                let all = !found.is_empty() && found.iter().all(is_ready);
                ensure!(all, "{:?}", found.iter().map(|it| &it.data["status"]).collect::<Vec<_>>());
                anyhow::Ok(())
            })
            .await?;
        }
        let mut last = (0, Instant::now());
        poll::until("the contender is quiet", READY_LIMIT, || {
            let calls = self.region.calls().iter().filter(|call| call.api != WAITING).count();
            if calls != last.0 {
                last = (calls, Instant::now());
            }
            let quiet = last.1.elapsed();
            async move {
                ensure!(quiet >= QUIET, "{calls} calls, the last {quiet:?} ago");
                anyhow::Ok(())
            }
        })
        .await
    }

    /// Keeps the control plane's own logs and what was asked of it.
    ///
    /// # Errors
    /// When they cannot be copied.
    pub fn keep_logs(&self) -> Result<()> {
        let names = ["kube-apiserver.log", "kube-scheduler.log", "kube-controller-manager.log"];
        let logs = names.map(|name| self.plane.log_dir().join(name));
        for from in logs.iter().chain([&self.audit_log]).filter(|path| path.exists()) {
            let name = from.file_name().context("a log without a name")?;
            std::fs::copy(from, self.around.dir.join(name))?;
        }
        Ok(())
    }
}

fn is_ready(object: &DynamicObject) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}
