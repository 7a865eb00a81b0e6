//! The walkthrough W2 on a cluster that was taken over: 4 -> 100 -> 4 pods beside what Karpenter
//! left.
//!
//! Invariant: the nodes that were there before are there afterwards unless their own pods needed
//! fewer.

use anyhow::{Result, ensure};
use longshore_it::stage::{eyes, hands};
use serde_json::json;

use super::estate::{self, Estate};
use super::phases;
use crate::walkthrough::{scene, w2};

/// Pods of the walkthrough: few, many, few again.
const FEW: usize = 4;
const MANY: usize = 100;

/// Scales a Deployment of the walkthrough's pods up and down.
pub async fn w2(estate: &mut Estate) -> Result<()> {
    hands::apply(&estate.client, &[w2::fargate_node()]).await?;
    let before = eyes::pool_nodes(&estate.client).await?.len();
    phases::consolidate_after(estate, "30s").await?;
    let mut workload = estate::workload("w2", FEW);
    workload["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] =
        json!({ "cpu": "250m", "memory": "512Mi" });
    hands::apply(&estate.client, &[workload]).await?;
    estate.until_running("w2", FEW).await?;
    let log = estate.watcher()?.log_path().to_owned();
    let (nodes, earlier) =
        (eyes::pool_nodes(&estate.client).await?.len(), scene::reports(&log)?.len());
    hands::scale(&estate.client, "default", "w2", phases::count(MANY)).await?;
    estate.until_running("w2", MANY).await?;
    let bought = eyes::pool_nodes(&estate.client).await?.len().saturating_sub(nodes);
    ensure!(bought > 0, "no node was bought for {MANY} pods");
    scene::realised(&log, bought, earlier).await?;
    hands::scale(&estate.client, "default", "w2", phases::count(FEW)).await?;
    estate
        .until("the nodes of the many are gone", |client| async move {
            let nodes = eyes::pool_nodes(&client).await?.len();
            ensure!(nodes <= before + 1, "{nodes} nodes, {before} before");
            Ok(())
        })
        .await?;
    phases::consolidate_after(estate, "Never").await?;
    estate.until_running("w2", FEW).await?;
    phases::nothing_under_way(estate).await?;
    w2::fargate_is_left_alone(&estate.client).await?;
    estate.balanced().await
}
