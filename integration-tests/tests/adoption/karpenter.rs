//! The published Karpenter controller as a process, on a test's own control plane and region.
//!
//! Invariant: nothing of it is changed; it finds the world by the variables that its chart sets, and
//! takes part in leader election as it does in life.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use longshore_it::parts::{Process, binary, poll, ports};
use longshore_it::stage::services::Surroundings;
use serde_json::json;
use tokio::task::JoinSet;

/// Name of its Lease.
pub const LEASE: &str = "karpenter-leader-election";
/// Namespace of its Lease.
pub const NAMESPACE: &str = "kube-system";
/// How long it may take to lead on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(90);
/// How long it may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// How often it renews its Lease.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// Base64 of a certificate authority; nobody looks into it.
const AUTHORITY: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==";

/// A running controller.
pub struct Karpenter {
    process: Process,
}

impl Karpenter {
    /// Starts it and waits until it holds its Lease.
    pub async fn start(name: &str, around: &Surroundings, client: &kube::Client) -> Result<Self> {
        let process = Process::start(name, command(around)?, &around.dir)?;
        let mut karpenter = Self { process };
        let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        let host = "karpenter leads";
        poll::until(host, START_LIMIT, || {
            let alive = karpenter.process.ensure_running();
            let leases = leases.clone();
            async move {
                alive?;
                let lease = leases.get(LEASE).await?;
                let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
                ensure!(!holder.is_empty(), "nobody holds the Lease");
                anyhow::Ok(())
            }
        })
        .await?;
        Ok(karpenter)
    }

    /// Asks it to end, which gives its Lease up, and waits for that.
    pub async fn stop(mut self) -> Result<()> {
        self.process.terminate()?;
        self.process.wait_for_exit(STOP_LIMIT).await?;
        Ok(())
    }
}

/// Karpenter's Lease alone, renewed as Karpenter renews it, until it is given up.
pub struct Renewed {
    tasks: JoinSet<Result<()>>,
    leases: Api<Lease>,
}

impl Renewed {
    /// Creates the Lease and begins to renew it.
    pub async fn begin(client: &kube::Client) -> Result<Self> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        let lease = serde_json::from_value(json!({ "metadata": { "name": LEASE } }))?;
        leases.create(&PostParams::default(), &lease).await?;
        write(&leases, "karpenter-0").await?;
        let api = leases.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut due = tokio::time::interval(RENEW_EVERY);
            loop {
                due.tick().await;
                write(&api, "karpenter-0").await?;
            }
        });
        Ok(Self { tasks, leases })
    }

    /// Gives it up.
    pub async fn end(mut self) -> Result<()> {
        // Whatever was under way has ended then.
        self.tasks.shutdown().await;
        write(&self.leases, "").await
    }
}

async fn write(leases: &Api<Lease>, holder: &str) -> Result<()> {
    let now = MicroTime(Timestamp::now());
    let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": now });
    let patch = Patch::Merge(json!({ "spec": spec }));
    leases.patch(LEASE, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn command(around: &Surroundings) -> Result<Command> {
    let program = binary::part_program("karpenter", "karpenter")
        .context("`make takeover` installs it and runs this test")?;
    let mut command = Command::new(program);
    command
        .env("KUBECONFIG", &around.kubeconfig)
        .env("AWS_ENDPOINT_URL", &around.region_url)
        .env("AWS_REGION", &around.region)
        .env("AWS_ACCESS_KEY_ID", &around.access_key)
        .env("AWS_SECRET_ACCESS_KEY", "lab")
        .env_remove("AWS_PROFILE")
        .env("CLUSTER_NAME", &around.cluster)
        .env("CLUSTER_ENDPOINT", "https://lab.gr7.us-east-1.eks.amazonaws.com")
        .env("CLUSTER_CA_BUNDLE", AUTHORITY)
        .env("CLUSTER_DNS_IP", "10.96.0.10")
        .env("INTERRUPTION_QUEUE", &around.queue)
        .env("SYSTEM_NAMESPACE", NAMESPACE)
        .env("LEADER_ELECTION_NAMESPACE", NAMESPACE)
        .env("METRICS_PORT", ports::free()?.to_string())
        .env("HEALTH_PROBE_PORT", ports::free()?.to_string())
        .env("KUBE_CLIENT_QPS", "1000")
        .env("KUBE_CLIENT_BURST", "2000")
        .env("LOG_LEVEL", "debug");
    Ok(command)
}
