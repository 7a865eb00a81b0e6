//! W2: a cluster with no node groups, scaled 4 -> 100 -> 4; system pods on Fargate.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::ListParams;
use longshore_it::stage::{eyes, hands};
use tokio::time::Instant;

use super::scene::{self, Scene};

const REGION: &str = "us-east-1";
/// What the author of the walkthrough measured for the way back.
const SCALE_IN_LIMIT: Duration = Duration::from_secs(55);
/// Price of 25 nodes like the author's, t3.medium on demand, in micro-dollars per hour.
const AUTHORS_PRICE: u64 = 25 * 41_600;

#[tokio::test]
async fn walkthrough_w2() -> Result<()> {
    let mut config = scene::region(REGION, "w2")?;
    config.instance_profiles.iter_mut().for_each(|profile| profile.name = "w2-node".to_owned());
    // Nodes come after the pods that they are for, as they do in life.
    (config.timing.boot_min_ms, config.timing.boot_max_ms) = (8_000, 10_000);
    let mut scene = Scene::start(config, "w2", |_| {}).await?;
    hands::apply(&scene.world.client, &[fargate_node()]).await?;
    let example = scene.example("w2-v1")?;
    scene.apply(&example).await?;
    scene.until("4 pods run", "app=web", |sight| sight.running == 4).await?;
    hands::scale(&scene.world.client, "default", "web", 100).await?;
    let sight = scene.until("100 pods run", "app=web", |sight| sight.running == 100).await?;
    ensure!(!sight.pods_on.contains_key(FARGATE), "a pod landed on Fargate: {sight:?}");
    let price = scene.world.region.spend_micro_usd_per_hour();
    ensure!(price < AUTHORS_PRICE, "{price} is not less than 25 equal nodes");
    let places = scene.realised(sight.all_nodes).await?;
    ensure!(places.planned == 0, "of pods that are all alike, {} had a place", places.planned);
    nobody_was_told(&scene.world.client).await?;
    scale_in(&mut scene).await?;
    scene.balanced().await?;
    fargate_is_left_alone(&scene.world.client).await
}

/// All pods are alike, so that whichever place one gets is as good: none was pinned, nominated or
/// written to at all.
async fn nobody_was_told(client: &kube::Client) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for pod in pods.list(&ListParams::default()).await?.items {
        ensure!(!eyes::is_written_to(&pod), "pod {:?} was written to", pod.metadata.name);
    }
    Ok(())
}

/// Nobody but its maker and Kubernetes' own controllers has written to the node that is none of
/// ours.
pub async fn fargate_is_left_alone(client: &kube::Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = nodes.get(FARGATE).await.context("the node of Fargate is gone")?;
    let spec = node.spec.context("the node of Fargate has no spec")?;
    ensure!(spec.unschedulable.is_none(), "the node of Fargate is closed");
    // It has no kubelet: after a minute, Kubernetes itself taints it.
    let taints: BTreeSet<String> = spec.taints.into_iter().flatten().map(|t| t.key).collect();
    let of_kubernetes = |key: &&String| key.starts_with("node.kubernetes.io/");
    let kept: Vec<_> = taints.iter().filter(|key| !of_kubernetes(key)).collect();
    ensure!(kept == [COMPUTE_TYPE], "the node of Fargate is tainted {taints:?}");
    let fields = node.metadata.managed_fields.into_iter().flatten();
    let writers: BTreeSet<String> = fields.filter_map(|field| field.manager).collect();
    let expected = [hands::MANAGER, "kube-controller-manager"];
    let left_alone = writers.iter().all(|writer| expected.contains(&writer.as_str()));
    ensure!(
        left_alone && writers.contains(hands::MANAGER),
        "the node of Fargate was written to by {writers:?}"
    );
    Ok(())
}

/// 100 -> 4 no slower than the author's 55 s, with consolidateAfter 30 s.
async fn scale_in(scene: &mut Scene) -> Result<()> {
    hands::scale(&scene.world.client, "default", "web", 4).await?;
    let began = Instant::now();
    let settled =
        |sight: &eyes::Sight| sight.running == 4 && sight.pending == 0 && sight.all_nodes <= 2;
    scene.until("4 pods and few nodes are left", "app=web", settled).await?;
    let took = began.elapsed();
    ensure!(took <= SCALE_IN_LIMIT, "scale-in took {took:?}");
    Ok(())
}

/// Label and taint of a node of Fargate.
const COMPUTE_TYPE: &str = "eks.amazonaws.com/compute-type";
/// Name of the node that is none of ours.
pub const FARGATE: &str = "fargate-ip-10-0-9-9.ec2.internal";

/// A node of Fargate.
pub fn fargate_node() -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": FARGATE,
            "labels": { COMPUTE_TYPE: "fargate" },
        },
        "spec": {
            "providerID": "aws:///us-east-1a/0123456789-abc/fargate-ip-10-0-9-9",
            "taints": [{
                "key": COMPUTE_TYPE, "value": "fargate", "effect": "NoSchedule",
            }],
        },
    })
}
