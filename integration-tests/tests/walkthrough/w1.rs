//! W1: NodePool and EC2NodeClass v1, arm64 spot, inside exactly the policy that users have.

use anyhow::{Result, ensure};
use longshore_it::stage::eyes;

use super::scene::{self, Scene};

const REGION: &str = "ap-northeast-2";

#[tokio::test]
async fn walkthrough_w1() -> Result<()> {
    let mut config = scene::region(REGION, "w1")?;
    scene::rename_node_role(&mut config, "KarpenterNodeRole-w1");
    scene::restrict_controller(&mut config, "w1-controller.json")?;
    config.queues[0].name = "Karpenter-w1-SpotInterruptionQueue".to_owned();
    let queue = config.queues[0].name.clone();
    let mut scene = Scene::start(config, "w1", |config| config.queue = queue).await?;
    let example = scene.example("w1")?;
    scene.apply(&example).await?;
    let workload = example.iter().find(|object| object["kind"] == "Deployment");
    let labels = workload.map(|object| object["spec"]["selector"]["matchLabels"].clone());
    let app = labels.and_then(|labels| labels["app"].as_str().map(ToOwned::to_owned));
    let app = app.unwrap_or_default();
    let selector = format!("app={app}");
    let sight = scene
        .until("all pods run", &selector, |sight| sight.running > 0 && sight.pending == 0)
        .await?;
    for (kind, bought) in sight.nodes.keys() {
        ensure!(kind.starts_with("t4g.") && bought == "spot", "{kind} {bought} was bought");
    }
    for node in eyes::pool_nodes(&scene.world.client).await? {
        let labels = node.metadata.labels.unwrap_or_default();
        ensure!(labels.contains_key("karpenter.k8s.aws/instance-family"), "labels: {labels:?}");
    }
    scene.realised(sight.all_nodes).await?;
    scene.balanced().await?;
    let denied = scene.world.region.calls().into_iter().find(|call| {
        call.error.as_deref().is_some_and(|code| code.contains("Unauthorized"))
            && !call.api.contains("DecodeAuthorizationMessage")
    });
    ensure!(denied.is_none(), "the policy does not suffice: {denied:?}");
    scene::delete_deployment(&scene.world.client, &app).await
}
