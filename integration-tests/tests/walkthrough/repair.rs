//! A node with which something is wrong is replaced, without anybody's asking.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use longshore_it::parts::poll;
use longshore_it::stage::{crowd, eyes};
use longshore_lab::region::CLUSTER;
use serde_json::json;

use super::scene::{self, Scene};

const REGION: &str = "us-east-1";
/// Nodes, with a pod each: a fifth of them may ail.
const NODES: usize = 5;
/// Most time until the node is replaced: what is wrong is looked at for five minutes first.
const REPAIR_LIMIT: Duration = Duration::from_secs(8 * 60);

#[tokio::test]
#[ignore = "six minutes, of which five are looked on: make repair-test"]
async fn a_node_whose_network_is_broken_is_replaced() -> Result<()> {
    let mut scene = Scene::start(scene::region(REGION, CLUSTER)?, CLUSTER, |_| {}).await?;
    scene.apply(&crowd::supply(&[crowd::families(&["t3"])])).await?;
    scene.apply(&[crowd::workload("web", u32::try_from(NODES)?)]).await?;
    let all_run = |sight: &eyes::Sight| sight.running == NODES && sight.all_nodes == NODES;
    scene.until("all pods run", "app=web", all_run).await?;
    let client = scene.world.client.clone();
    let nodes = eyes::pool_nodes(&client).await?;
    let broken = nodes.first().context("no node")?.name_any();
    let condition = json!({
        "type": "NetworkingReady", "status": "False", "reason": "InterfaceNotRunning",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({ "status": { "conditions": [condition] } });
    let api: Api<Node> = Api::all(client.clone());
    api.patch_status(&broken, &PatchParams::default(), &Patch::Strategic(status)).await?;

    let replaced = poll::until("the node is replaced", REPAIR_LIMIT, || async {
        let nodes = eyes::pool_nodes(&client).await?;
        ensure!(nodes.iter().all(|node| node.name_any() != broken), "{broken} is there");
        Ok::<_, anyhow::Error>(())
    });
    replaced.await.map_err(|error| error.context(scene.logs()))?;
    scene.told(&["its condition NetworkingReady is False"]).await?;
    scene.until("all pods run again", "app=web", all_run).await?;
    scene.balanced().await
}
