//! Pods that are let in to a node one by one.

use k8s_openapi::api::core::v1::{Node, Pod};
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{PinPods, RegisterNode};
use serde_json::json;

use super::claims::done;
use super::support::{
    World, create, create_claim, node, pod, pool, provider_id, record_launch, until,
};

/// What a pod tolerates of nodes that are closed.
async fn passes(world: &World, name: &str) -> Vec<String> {
    let pod = world.pods().get(name).await.unwrap();
    let tolerations = pod.spec.unwrap().tolerations.unwrap_or_default();
    let ours = tolerations.into_iter().filter(|it| {
        it.key.as_deref() == Some("karpenter.sh/unregistered")
            && it.operator.as_deref() == Some("Equal")
    });
    ours.filter_map(|it| it.value).collect()
}

#[tokio::test]
async fn a_pod_is_let_in_before_its_node_has_joined_and_is_not_written_to_again() {
    let mut world = World::start().await;
    pool(&world).await;
    let uid = create(&world.pods(), pod("early")).await.metadata.uid.unwrap();
    let mut by_turns = pod("by-turns");
    by_turns["metadata"]["labels"] = json!({ "app": "a" });
    by_turns["spec"]["topologySpreadConstraints"] = json!([{ "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "a" } } }]);
    let other = create(&world.pods(), by_turns).await.metadata.uid.unwrap();
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pods", |view| view.pods().count() == 2).await;
    let pods = vec![uid, other];
    done(&mut session, create_claim("c1", &pods)).await;
    done(&mut session, Action::RecordLaunch(record_launch("c1"))).await;
    for _ in 0..2 {
        let pin = PinPods { claim: "c1".to_owned(), pods: pods.clone() };
        done(&mut session, Action::PinPods(pin)).await;
        assert_eq!(passes(&world, "early").await, ["c1"], "once");
        assert_eq!(passes(&world, "by-turns").await, [""; 0], "its turn is not known yet");
    }
    create(&world.all::<Node>(), node("n1", &provider_id("c1"))).await;
    session.until("the node", |view| view.node("n1").is_some()).await;
    let (claim, node) = ("c1".to_owned(), "n1".to_owned());
    let register = RegisterNode { claim, node, pods, any_order: false };
    session.begin("register", Action::RegisterNode(register)).await;
    for name in ["early", "by-turns"] {
        until(&world.pods(), name, "the pod is bound", |pod: Option<&Pod>| {
            pod.and_then(|p| p.spec.as_ref()?.node_name.as_deref()) == Some("n1")
        })
        .await;
        assert_eq!(passes(&world, name).await, ["c1"]);
    }
    world.stop().await;
}

#[tokio::test]
async fn what_a_watcher_wrote_before_it_died_is_not_written_again() {
    let mut world = World::start().await;
    pool(&world).await;
    let mut let_in = pod("let-in");
    let_in["spec"]["tolerations"] =
        json!([{ "key": "karpenter.sh/unregistered", "operator": "Equal", "value": "c1" }]);
    let known = create(&world.pods(), let_in).await.metadata.uid.unwrap();
    let left = create(&world.pods(), pod("left")).await.metadata.uid.unwrap();
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pods", |view| view.pods().count() == 2).await;
    let pods = vec![known, left];
    done(&mut session, create_claim("c1", &pods)).await;
    done(&mut session, Action::PinPods(PinPods { claim: "c1".to_owned(), pods })).await;
    for name in ["let-in", "left"] {
        assert_eq!(passes(&world, name).await, ["c1"], "once");
    }
    world.stop().await;
}
