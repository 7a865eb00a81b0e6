//! What there is, and what was called.

use longshore_lab::instance::InstanceSource as _;
use longshore_lab::region::CLUSTER;
use serde_json::{Value, json};

use super::desk;
use crate::events::receive;

#[tokio::test]
async fn the_state_says_of_instances_and_queues_what_a_controller_would_find() {
    let desk = desk().await;
    let id = desk.launch("spot").await;
    let state = desk.get("/state");
    let (found, seen) = (&state["instances"][0], &desk.client.region.instances()[0]);
    let age_s = found["age_s"].as_u64().expect("an age");
    let price = found["price_micro_usd_per_hour"].as_u64().expect("a price");
    assert!(age_s < 60 && price > 0);
    let expected = json!({
        "id": id,
        "instance_type": "m5.large",
        "zone": "us-east-1a",
        "capacity_type": "spot",
        "state": "pending",
        "age_s": age_s,
        "node_name": seen.private_dns_name,
        "price_micro_usd_per_hour": price,
    });
    assert_eq!(*found, expected);
    let queue = |visible, in_flight| json!([{ "name": CLUSTER, "visible": visible, "in_flight": in_flight, "sent": 1 }]);
    assert_eq!(state["queues"], queue(1, 0));
    receive(&desk.client, 0).await;
    assert_eq!(desk.get("/state")["queues"], queue(0, 1));
    desk.client.ec2("TerminateInstances", &[("InstanceId.1", &id)]).await.ok();
    assert_eq!(desk.get("/state")["instances"][0]["state"], "shutting-down");
}

#[tokio::test]
async fn calls_are_counted_by_outcome_from_where_one_says() {
    let desk = desk().await;
    let before = desk.get("/calls");
    let next = before["next"].as_u64().expect("a number");
    assert!(next > 0, "the template and the subnets were asked for");
    desk.client.ec2("DescribeSubnets", &[]).await.ok();
    desk.client.ec2("DescribeSubnets", &[]).await.ok();
    desk.client.ec2("DescribeInstances", &[("InstanceId.1", "i-0")]).await.error();
    let counted = json!([
        { "api": "ec2:DescribeInstances", "outcome": "InvalidInstanceID.NotFound", "count": 1 },
        { "api": "ec2:DescribeSubnets", "outcome": "ok", "count": 2 },
    ]);
    assert_eq!(desk.get(&format!("/calls?since={next}"))["calls"], counted);
    let all = desk.get("/calls");
    assert_eq!(all, with_now(desk.get("/calls?since=0"), &all), "from the first on is all");
    let total: u64 = counts(&all).sum();
    assert_eq!((total, all["next"].as_u64()), (next + 3, Some(next + 3)));
    assert_eq!(desk.get("/calls?since=2020-01-01T00:00:00Z")["calls"], all["calls"]);
    // Nothing was called from the moment of the last look on.
    let now = all["now"].as_str().expect("a moment");
    let since_now = desk.get(&format!("/calls?since={now}"));
    assert!(counts(&since_now).sum::<u64>() < total, "{since_now}");
}

fn counts(calls: &Value) -> impl Iterator<Item = u64> + '_ {
    calls["calls"].as_array().into_iter().flatten().filter_map(|it| it["count"].as_u64())
}

/// The same as if it had been said at the moment of another answer.
fn with_now(mut answer: Value, other: &Value) -> Value {
    answer["now"] = other["now"].clone();
    answer
}
