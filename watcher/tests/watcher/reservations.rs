//! Capacity reservations: those that a node class finds, and nodes that were launched into one.

use k8s_openapi::api::core::v1::Node;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{
    Condition, DirectiveStatus, RecordLaunch, RegisterNode, ResolvedReservation, SetNodeClassStatus,
};
use longshore_proto::types::v1::CapacityType;
use longshore_watcher::api::{EC2NodeClass, NodeClaim};
use serde_json::json;

use super::support::{World, class, create, create_claim, node, pool, provider_id, record_launch};

#[tokio::test]
async fn capacity_reservations_that_were_found_are_in_the_status_of_their_class() {
    let mut world = World::start().await;
    pool(&world).await;
    class(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pool", |view| view.pool("default").is_some()).await;
    let reservation = |id: &str, criteria: &str| ResolvedReservation {
        id: id.to_owned(),
        instance_type: "m7g.large".to_owned(),
        zone: "us-east-1a".to_owned(),
        owner: "123456789012".to_owned(),
        instance_match_criteria: criteria.to_owned(),
        end_time: None,
    };
    let end_time = Some(prost_types::Timestamp { seconds: 2_000_000_000, nanos: 0 });
    let found = vec![
        ResolvedReservation { end_time, ..reservation("cr-1", "targeted") },
        reservation("cr-2", "open"),
        // The API server would refuse the whole status because of it.
        reservation("cr-3", "of a later version"),
    ];
    let condition = Condition {
        r#type: "CapacityReservationsReady".to_owned(),
        status: Some(true),
        ..Condition::default()
    };
    let mut status = SetNodeClassStatus {
        node_class: "EC2NodeClass/default".to_owned(),
        conditions: vec![condition],
        capacity_reservations: found,
        ..SetNodeClassStatus::default()
    };
    let result = session.direct(Action::SetNodeClassStatus(status.clone())).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
    let classes = world.all::<EC2NodeClass>();
    let written = json!(classes.get("default").await.unwrap().status.unwrap());
    let common = |id: &str, criteria: &str| {
        json!({
            "id": id, "availabilityZone": "us-east-1a", "instanceType": "m7g.large",
            "instanceMatchCriteria": criteria, "ownerID": "123456789012",
            "reservationType": "default", "state": "active",
        })
    };
    let mut ends = common("cr-1", "targeted");
    ends["endTime"] = json!("2033-05-18T03:33:20Z");
    assert_eq!(written["capacityReservations"], json!([ends, common("cr-2", "open")]));
    assert_eq!(written["conditions"][0]["type"], "CapacityReservationsReady");
    status.capacity_reservations.clear();
    session.direct(Action::SetNodeClassStatus(status)).await;
    let emptied = classes.get("default").await.unwrap().status.unwrap();
    assert_eq!(emptied.capacity_reservations, []);
    world.stop().await;
}

#[tokio::test]
async fn a_node_of_a_reservation_says_which() {
    let mut world = World::start().await;
    pool(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pool", |view| view.pool("default").is_some()).await;
    session.direct(create_claim("c1", &[])).await;
    let labels = [
        ("karpenter.k8s.aws/capacity-reservation-id", "cr-1"),
        ("karpenter.k8s.aws/capacity-reservation-type", "default"),
    ];
    let record = RecordLaunch {
        capacity_type: CapacityType::Reserved.into(),
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..record_launch("c1")
    };
    session.direct(Action::RecordLaunch(record)).await;
    create(&world.all::<Node>(), node("n1", &provider_id("c1"))).await;
    session.until("the node", |view| view.node("n1").is_some()).await;
    let (claim, node) = ("c1".to_owned(), "n1".to_owned());
    let register = RegisterNode { claim, node, ..RegisterNode::default() };
    let result = session.direct(Action::RegisterNode(register)).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
    let claim = world.all::<NodeClaim>().get("c1").await.unwrap();
    let node = world.all::<Node>().get("n1").await.unwrap();
    for written in [claim.metadata.labels.unwrap(), node.metadata.labels.unwrap()] {
        let bought = [("karpenter.sh/capacity-type", "reserved")];
        for (key, value) in labels.into_iter().chain(bought) {
            assert_eq!(written.get(key).map(String::as_str), Some(value), "{key}");
        }
    }
    world.stop().await;
}
