//! What is said of pools and nodes.

use longshore_proto::types::v1::Resources;

use super::scenes::deletion;
use super::*;

/// The status of a pool, once `wanted` holds of it.
fn status(
    wanted: impl Fn(&cluster::SetNodePoolStatus) -> bool,
) -> impl Fn(&Action) -> Option<cluster::SetNodePoolStatus> {
    move |action| {
        let Action::SetNodePoolStatus(status) = action else { return None };
        wanted(status).then(|| status.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_counts_what_its_machines_have_and_not_what_they_leave_to_pods() {
    let (mut node, claim) = in_service(0);
    let machine = Resources { cpu_millis: 8_000, memory_bytes: 32 << 30, ..Default::default() };
    let left = Resources { cpu_millis: 7_900, memory_bytes: 29 << 30, ..Default::default() };
    (node.capacity, node.allocatable) = (Some(machine.clone()), Some(left));
    let objects = vec![pool(false), Kind::Node(node), Kind::NodeClaim(claim)];
    let mut scene = Scene::new(&[], objects).await;
    scene.actuator.tell(Change::Instance(instance(0)));
    let said = scene.next(PATIENCE, status(|status| status.nodes == 1)).await.unwrap();
    assert_eq!(said.resources, Some(machine));
}

/// A scene in which so many nodes never join.
async fn never_joining(nodes: u64) -> Scene {
    let mut objects = vec![pool(false)];
    for number in 0..nodes {
        let (_, mut claim) = in_service(number);
        (claim.register_time, claim.initialize_time) = (None, None);
        claim.create_time = Some(prost_types::Timestamp { seconds: 10_000, nanos: 0 });
        objects.push(Kind::NodeClaim(claim));
    }
    let scene = Scene::new(&[], objects).await;
    (0..nodes).for_each(|number| scene.actuator.tell(Change::Instance(instance(number))));
    scene
}

/// The condition of a kind that a pool comes to have for a reason.
async fn condition(scene: &mut Scene, kind: &str, reason: &str) -> cluster::Condition {
    let said = |status: &cluster::SetNodePoolStatus| {
        let mut conditions = status.conditions.iter();
        conditions.find(|it| it.r#type == kind && it.reason == reason).cloned()
    };
    let told = scene.next(PATIENCE, status(|status| said(status).is_some())).await;
    told.and_then(|status| said(&status)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_nodes_never_join_says_so() {
    let mut scene = never_joining(2).await;
    let said = condition(&mut scene, "NodeRegistrationHealthy", "RegistrationFailed").await;
    assert_eq!(said.status, Some(false));
    assert!(said.message.contains("2 did not come up"), "{}", said.message);
    let ended = scene.seen.iter().filter_map(deletion);
    let reasons: Vec<_> = ended.map(|delete| delete.reason).collect();
    assert_eq!(reasons, ["RegistrationTimeout"; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_which_no_node_comes_into_service_is_not_ready() {
    let mut scene = never_joining(4).await;
    let said = condition(&mut scene, "Ready", "NodesFail").await;
    assert_eq!(said.status, Some(false));
    assert!(said.message.contains('4'), "{}", said.message);
}

#[tokio::test(start_paused = true)]
async fn what_keeps_a_node_from_being_consolidated_is_said_of_it_once() {
    let (node, claim) = in_service(0);
    let Kind::Pod(pod) = bound("n-0") else { panic!("a pod") };
    let pod = v1::Pod { do_not_disrupt: true, ..pod };
    let objects = [pool(true), Kind::Node(node), Kind::NodeClaim(claim), Kind::Pod(pod)];
    let mut scene = Scene::new(&[], objects.to_vec()).await;
    scene.actuator.tell(Change::Instance(instance(0)));
    let blocked = |action: &Action| {
        let Action::PublishEvent(event) = action else { return None };
        (event.reason == "DisruptionBlocked").then(|| event.clone())
    };
    assert_eq!(scene.next(Duration::from_secs(290), blocked).await, None, "it may pass");
    let event = scene.next(Duration::from_secs(180), blocked).await.unwrap();
    let about = event.about.unwrap();
    assert_eq!((about.kind(), about.key.as_str()), (v1::ObjectKind::Node, "n-0"));
    assert!(event.message.contains("karpenter.sh/do-not-disrupt"), "{}", event.message);
    assert_eq!(scene.next(PATIENCE, blocked).await, None, "it has been said");
}
