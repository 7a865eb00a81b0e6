//! The published Karpenter controller as a process, above a stage's own control plane and region.
//!
//! Invariant: nothing of it is changed; it finds the world by the variables that its chart sets,
//! and takes part in leader election as it does in life.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use super::services::Surroundings;
use crate::parts::{Process, binary, poll, ports};

/// Name of its Lease.
pub const LEASE: &str = "karpenter-leader-election";
/// Namespace of its Lease.
pub const NAMESPACE: &str = "kube-system";
/// How long it may take to lead on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(90);
/// How long it may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Base64 of a certificate authority; nobody looks into it.
const AUTHORITY: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==";

/// A running controller.
pub struct Karpenter {
    /// The process.
    pub process: Process,
}

impl Karpenter {
    /// Starts it and waits until it holds its Lease; `name` is that of its log.
    ///
    /// # Errors
    /// When it is not installed, ends, or does not hold its Lease in time.
    pub async fn start(name: &str, around: &Surroundings, client: &kube::Client) -> Result<Self> {
        Self::start_with(name, around, client, "").await
    }

    /// The same with feature gates, as its chart has them: `NodeRepair=true`; those that are not
    /// named are as it is shipped.
    ///
    /// # Errors
    /// As [`Karpenter::start`].
    pub async fn start_with(
        name: &str,
        around: &Surroundings,
        client: &kube::Client,
        gates: &str,
    ) -> Result<Self> {
        let mut command = command(around)?;
        if !gates.is_empty() {
            command.env("FEATURE_GATES", gates);
        }
        let process = Process::start(name, command, &around.dir)?;
        let mut karpenter = Self { process };
        let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        poll::until("karpenter leads", START_LIMIT, || {
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
    ///
    /// # Errors
    /// When it has ended already, or does not end in time.
    pub async fn stop(mut self) -> Result<()> {
        self.process.terminate()?;
        self.process.wait_for_exit(STOP_LIMIT).await?;
        Ok(())
    }
}

fn command(around: &Surroundings) -> Result<Command> {
    let program = binary::part_program("karpenter", "karpenter")
        .context("`make takeover` and `make peer-live` install it")?;
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
        .env("LOG_LEVEL", "info");
    Ok(command)
}
