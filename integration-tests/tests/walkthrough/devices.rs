//! Pods that claim GPUs from a template. Without it nodes would come without devices, or be taken
//! for ready before their driver has listed them.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use longshore_it::parts::poll;
use longshore_it::stage::eyes;
use longshore_lab::region::nvidia_images;

use super::scene::{self, LIMIT, Scene};

const REGION: &str = "us-east-1";
/// Pods of the example's workload, each with a GPU.
const PODS: usize = 3;

#[tokio::test]
async fn pods_that_claim_devices_from_a_template() -> Result<()> {
    let mut config = scene::region(REGION, "devices")?;
    scene::rename_node_role(&mut config, "KarpenterNodeRole-devices");
    for (image, parameter) in nvidia_images() {
        config.parameters.insert(parameter, image.id.clone());
        config.images.push(image);
    }
    let mut scene = Scene::start(config, "devices", |world| world.lists_devices = true).await?;
    let example = scene.example("devices")?;
    scene.apply(&example).await?;
    scene.until("all pods run", "app=train", |sight| sight.running == PODS).await?;
    allocated(&scene).await?;
    initialised(&scene).await?;
    scene::delete_deployment(&scene.world.client, "train").await?;
    scene.gone().await
}

/// Waits until each pod has a claim of its own, allocated by kube-scheduler.
async fn allocated(scene: &Scene) -> Result<()> {
    let claims: Api<ResourceClaim> = Api::default_namespaced(scene.world.client.clone());
    let done = poll::until("claims are allocated", LIMIT, || async {
        let claims = claims.list(&ListParams::default()).await?.items;
        let devices = claims.iter().filter_map(|claim| {
            let devices = claim.status.as_ref()?.allocation.as_ref()?.devices.as_ref()?;
            let device = devices.results.as_ref()?.first()?;
            Some((device.pool.clone(), device.device.clone()))
        });
        let devices: std::collections::BTreeSet<_> = devices.collect();
        ensure!(devices.len() == PODS, "{devices:?} are allocated");
        Ok::<_, anyhow::Error>(())
    });
    done.await.map_err(|error| error.context(scene.logs()))
}

/// Waits until every node of the pool counts as ready for pods.
async fn initialised(scene: &Scene) -> Result<()> {
    let client = scene.world.client.clone();
    let done = poll::until("nodes are initialised", LIMIT, || async {
        let nodes = eyes::pool_nodes(&client).await?;
        ensure!(!nodes.is_empty() && nodes.len() <= PODS, "{} nodes", nodes.len());
        for node in nodes {
            let label = node.labels().get("karpenter.sh/initialized");
            label.with_context(|| format!("{} is not", node.name_any()))?;
        }
        Ok::<_, anyhow::Error>(())
    });
    done.await.map_err(|error| error.context(scene.logs()))
}
