//! Prices, and what happens to instances, as a controller sees it.

use serde_json::{Value, json};

use super::desk;
use crate::events::{envelope, receive};

#[tokio::test]
async fn a_spot_price_is_the_newest_of_the_history() {
    let desk = desk().await;
    let order = json!({
        "instance_type": "m5.large", "zone": "us-east-1a", "micro_usd_per_hour": 41_000,
    });
    let answer = desk.order("/prices", &order);
    assert!(answer["before"].as_u64().is_some_and(|before| before > 0 && before != 41_000));
    let asked = [
        ("InstanceType.1", "m5.large"),
        ("AvailabilityZone", "us-east-1a"),
        ("ProductDescription.1", "Linux/UNIX"),
    ];
    let history = desk.client.ec2("DescribeSpotPriceHistory", &asked).await.ok();
    assert_eq!(history.first("spotPrice"), "0.041000");
    assert_eq!(desk.order("/prices", &order)["before"], 41_000);
}

#[tokio::test]
async fn each_kind_of_interruption_is_told_to_the_queue_and_shown_by_ec2() {
    let desk = desk().await;
    let id = desk.launch("spot").await;
    receive(&desk.client, 0).await;
    let order = |kind: &str| json!({ "kind": kind, "instances": [id] });
    desk.order("/interruptions", &order("rebalance"));
    let change = json!({
        "kind": "scheduled-change", "instances": [id], "event_code": "instance-stop", "in_s": 600,
    });
    desk.order("/interruptions", &change);
    desk.order("/interruptions", &order("spot-interruption"));
    let answer = desk.order("/interruptions", &order("state-change"));
    assert_eq!(answer["instances"], json!([id]));
    let told: Vec<Value> = receive(&desk.client, 0).await.iter().map(envelope).collect();
    let kinds: Vec<&str> = told.iter().filter_map(|it| it["detail-type"].as_str()).collect();
    let expected = [
        "EC2 Instance Rebalance Recommendation",
        "AWS Health Event",
        "EC2 Spot Instance Interruption Warning",
        "EC2 Instance State-change Notification",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(told[3]["detail"]["state"], "shutting-down");
    let asked = [("IncludeAllInstances", "true"), ("InstanceId.1", id.as_str())];
    let status = desk.client.ec2("DescribeInstanceStatus", &asked).await.ok();
    assert!(status.all("code").contains(&"instance-stop".to_owned()), "{}", status.body);
}

#[tokio::test]
async fn what_cannot_happen_to_one_happens_to_none() {
    let desk = desk().await;
    let (spot, on_demand) = (desk.launch("spot").await, desk.launch("on-demand").await);
    receive(&desk.client, 0).await;
    let body = |other: &str| {
        json!({ "kind": "spot-interruption", "instances": [spot, other] }).to_string()
    };
    for (other, kind) in [("i-0", "unknown-instances"), (&*on_demand, "instances-on-demand")] {
        let (status, error) = desk.refused("POST", "/interruptions", &body(other));
        assert_eq!((status, error["kind"].as_str()), (422, Some(kind)));
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(other) && !message.contains(&spot), "{message}");
    }
    assert!(receive(&desk.client, 0).await.is_empty(), "nobody was warned");
    let end = json!({ "kind": "state-change", "instances": [on_demand] });
    desk.order("/interruptions", &end);
    let (status, error) = desk.refused("POST", "/interruptions", &end.to_string());
    assert_eq!((status, error["kind"].as_str()), (409, Some("instances-ending")));
}
