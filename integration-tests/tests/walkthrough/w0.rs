//! W0: the legacy API with Terraform's roles; spread over hosts when possible.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::scene::{self, Scene};

const REGION: &str = "us-east-1";

/// The account of W0, with the conditional policy and the right to read refusals.
async fn start() -> Result<Scene> {
    let mut config = scene::region(REGION, "w0")?;
    scene::rename_node_role(&mut config, "KarpenterNodeRole-w0");
    scene::restrict_controller(&mut config, "w0-controller.json")?;
    scene::allow_controller(&mut config, "sts:DecodeAuthorizationMessage")?;
    let profile = config.instance_profiles[0].name.clone();
    Scene::start(config, "w0", |config| {
        config.queue = String::new();
        config.watcher_flags = vec!["--default-instance-profile".to_owned(), profile];
    })
    .await
}

#[tokio::test]
async fn walkthrough_w0() -> Result<()> {
    let mut scene = start().await?;
    let example = scene.example("w0")?;
    scene.apply(&example).await?;
    let sight = scene
        .until("20 pods run", "app=spread", |sight| sight.running == 20 && sight.pending == 0)
        .await?;
    ensure!(sight.all_nodes < 20, "one node a pod, as the walkthrough's author saw");
    for (kind, _) in sight.nodes.keys() {
        ensure!(kind.starts_with("t3."), "{kind} was bought");
    }
    scene.realised(sight.all_nodes).await?;
    scene.balanced().await
}

#[tokio::test]
async fn walkthrough_w0_says_which_tag_is_missing() -> Result<()> {
    let mut scene = start().await?;
    let mut example = scene.example("w0")?;
    for object in example.iter_mut().filter(|object| object["kind"] == "AWSNodeTemplate") {
        let tags = object.pointer_mut("/spec/tags").and_then(Value::as_object_mut);
        tags.into_iter().for_each(|tags| drop(tags.remove("karpenter.sh/discovery")));
    }
    scene.apply(&example).await?;
    let parts = ["ec2:RunInstances", "launch-template", "karpenter.sh/discovery"];
    scene.told(&parts).await?;
    Ok(())
}
