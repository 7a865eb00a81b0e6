//! W3: the first API, hands on: one node for two pods, gone 30 s after it is empty.

use anyhow::{Context, Result, ensure};
use longshore_it::stage::eyes;
use longshore_lab::region::{NODE_KEY, RegionConfig, RoleConfig};

use super::scene::{self, Scene};

const REGION: &str = "us-east-1";
const ROLE: &str = "eks-node-role-dev";
const PROFILE: &str = "eks-node-profile-dev";

fn account() -> Result<RegionConfig> {
    let mut config = scene::region(REGION, "w3")?;
    scene::rename_node_role(&mut config, ROLE);
    config.instance_profiles.iter_mut().for_each(|profile| profile.name = PROFILE.to_owned());
    for (subnet, number) in config.subnets.iter_mut().zip(1..) {
        let name = format!("EksCluster/EKSVpc/PrivateSubnet{number}");
        subnet.tags.insert("Name".to_owned(), name);
    }
    for group in &mut config.security_groups {
        group.tags.insert("kubernetes.io/cluster/w3".to_owned(), "owned".to_owned());
    }
    Ok(config)
}

#[tokio::test]
async fn walkthrough_w3() -> Result<()> {
    let mut scene = Scene::start(account()?, "w3", |_| {}).await?;
    let example = scene.example("w3")?;
    scene.apply(&example).await?;
    let sight = scene
        .until("2 pods run", "app=inflate", |sight| sight.running == 2 && sight.pending == 0)
        .await?;
    ensure!(sight.all_nodes == 1, "one node for both pods: {sight:?}");
    let nodes = eyes::pool_nodes(&scene.world.client).await?;
    let labels = nodes[0].metadata.labels.clone().unwrap_or_default();
    let provisioner = labels.get("karpenter.sh/provisioner-name");
    ensure!(provisioner.is_some_and(|name| name == "dev"), "look-ups by provisioner: {labels:?}");
    let log = scene.world.actuator.process.log()?;
    ensure!(log.contains("instance launched"), "the actuator's log does not name the instance");
    scene::delete_deployment(&scene.world.client, "inflate").await?;
    scene.gone().await
}

#[tokio::test]
async fn walkthrough_w3_says_that_irsa_is_not_in_effect() -> Result<()> {
    let as_node = |config: &mut longshore_it::stage::world::WorldConfig| {
        config.access_key = NODE_KEY.to_owned();
    };
    let mut scene = Scene::start(account()?, "w3", as_node).await?;
    let example = scene.example("w3")?;
    scene.apply(&example).await?;
    scene.told(&["IRSA is not in effect"]).await?;
    Ok(())
}

#[tokio::test]
async fn walkthrough_w3_says_that_a_role_is_no_instance_profile() -> Result<()> {
    let mut config = account()?;
    let node = config.roles.iter().find(|role| role.name == ROLE).context("node role")?;
    let other = RoleConfig { name: "other".to_owned(), ..node.clone() };
    config.roles.push(other);
    let mut scene = Scene::start(config, "w3", |_| {}).await?;
    let mut example = scene.example("w3")?;
    for object in example.iter_mut().filter(|object| object["kind"] == "Provisioner") {
        object["spec"]["provider"]["instanceProfile"] = ROLE.into();
    }
    scene.apply(&example).await?;
    scene.told(&[ROLE, "instanceProfile", "not an instance profile", PROFILE]).await?;
    Ok(())
}
