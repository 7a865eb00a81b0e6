//! What pools say of themselves.

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

#[tokio::test(start_paused = true)]
async fn a_pool_whose_nodes_never_join_says_so() {
    let mut objects = vec![pool(false)];
    for number in 0..2 {
        let (_, mut claim) = in_service(number);
        (claim.register_time, claim.initialize_time) = (None, None);
        claim.create_time = Some(prost_types::Timestamp { seconds: 10_000, nanos: 0 });
        objects.push(Kind::NodeClaim(claim));
    }
    let mut scene = Scene::new(&[], objects).await;
    (0..2).for_each(|number| scene.actuator.tell(Change::Instance(instance(number))));
    let said = |status: &cluster::SetNodePoolStatus| {
        let mut conditions = status.conditions.iter();
        conditions.find(|it| it.r#type == "NodeRegistrationHealthy").cloned()
    };
    let unhealthy = status(|status| said(status).is_some_and(|it| it.status == Some(false)));
    let told = scene.next(PATIENCE, unhealthy).await.unwrap();
    let condition = said(&told).unwrap();
    assert_eq!(condition.reason, "RegistrationFailed");
    assert!(condition.message.contains("2 did not come up"), "{}", condition.message);
    let ended = scene.seen.iter().filter_map(deletion);
    let reasons: Vec<_> = ended.map(|delete| delete.reason).collect();
    assert_eq!(reasons, ["RegistrationTimeout"; 2]);
}
