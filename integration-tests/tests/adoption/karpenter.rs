//! Karpenter's Lease without Karpenter: what holds our watcher back.
//!
//! Invariant: it is renewed as Karpenter renews it.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use longshore_it::stage::karpenter::{LEASE, NAMESPACE};
use serde_json::json;
use tokio::task::JoinSet;

/// How often it renews its Lease.
const RENEW_EVERY: Duration = Duration::from_secs(2);

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
