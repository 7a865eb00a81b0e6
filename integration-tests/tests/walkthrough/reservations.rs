//! Capacity that was reserved beforehand: used first, and left when it is not selected any more.
//!
//! Invariant: the pool of W2, which may buy on demand besides; one pod has room on a node.

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt as _;
use longshore_it::stage::eyes::{self, Sight};
use longshore_lab::region::ReservationConfig;
use serde_json::{Value, json};

use super::scene::{self, Scene};

const RESERVATION: &str = "cr-0123456789abcdef0";

#[tokio::test]
async fn what_is_reserved_is_used_first_and_left_when_it_is_not_selected_any_more() -> Result<()> {
    let mut config = scene::region("us-east-1", "w2")?;
    config.instance_profiles.iter_mut().for_each(|profile| profile.name = "w2-node".to_owned());
    config.reservations.push(ReservationConfig {
        id: RESERVATION.to_owned(),
        instance_type: "m5.large".to_owned(),
        zone: "us-east-1a".to_owned(),
        total: 1,
        tags: [("team".to_owned(), "w2".to_owned())].into(),
    });
    let mut scene = Scene::start(config, "w2", |_| {}).await?;
    scene.apply(&two_pods(scene.example("w2-v1")?, "w2")?).await?;
    let one_each = |sight: &Sight| {
        let count = |bought: &str| {
            let of_kind = sight.nodes.iter().filter(|((_, how), _)| how == bought);
            of_kind.map(|(_, count)| count).sum::<usize>()
        };
        sight.running == 2 && (count("reserved"), count("on-demand")) == (1, 1)
    };
    scene.until("one of two nodes is the reserved one", APP, one_each).await?;
    let selected = selected(&scene).await?;
    ensure!(selected == [RESERVATION], "the class has {selected:?}");
    let nodes = eyes::pool_nodes(&scene.world.client).await?;
    let inside = |label: &str| nodes.iter().filter_map(|node| node.labels().get(label)).collect();
    let ids: Vec<&String> = inside("karpenter.k8s.aws/capacity-reservation-id");
    ensure!(ids == [RESERVATION], "nodes are in {ids:?}");
    scene.balanced().await?;

    scene.apply(&two_pods(scene.example("w2-v1")?, "others")?).await?;
    scene.told(&[RESERVATION, "EC2NodeClass/default"]).await?;
    let left = |sight: &Sight| {
        let reserved = sight.nodes.keys().any(|(_, bought)| bought == "reserved");
        sight.running == 2 && sight.all_nodes == 2 && !reserved
    };
    scene.until("no node is in it", APP, left).await?;
    scene.balanced().await
}

/// Selects the pods.
const APP: &str = "app=web";

/// The example with two large pods, and with the reservations of a team.
fn two_pods(mut manifests: Vec<Value>, team: &str) -> Result<Vec<Value>> {
    let of = |manifests: &[Value], kind: &str| -> Result<usize> {
        let found = manifests.iter().position(|object| object["kind"] == kind);
        found.with_context(|| format!("the example has no {kind}"))
    };
    let class = of(&manifests, "EC2NodeClass")?;
    manifests[class]["spec"]["capacityReservationSelectorTerms"] =
        json!([{ "tags": { "team": team } }]);
    let pool = of(&manifests, "NodePool")?;
    let requirements = manifests[pool].pointer_mut("/spec/template/spec/requirements");
    let requirements = requirements.and_then(Value::as_array_mut).context("no requirements")?;
    for requirement in requirements {
        if requirement["key"] == "karpenter.sh/capacity-type" {
            requirement["values"] = json!(["reserved", "on-demand"]);
        }
    }
    let workload = of(&manifests, "Deployment")?;
    manifests[workload]["spec"]["replicas"] = json!(2);
    manifests[workload]["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] =
        json!({ "cpu": "1500m", "memory": "5Gi" });
    Ok(manifests)
}

/// Reservations that the node class says it has.
async fn selected(scene: &Scene) -> Result<Vec<String>> {
    let client = &scene.world.client;
    let classes = eyes::list(client, "karpenter.k8s.aws", "v1", "EC2NodeClass").await?;
    let found = classes.iter().flat_map(|class| {
        let found = class.data.pointer("/status/capacityReservations").and_then(Value::as_array);
        found.into_iter().flatten().filter_map(|found| found["id"].as_str().map(str::to_owned))
    });
    Ok(found.collect())
}
