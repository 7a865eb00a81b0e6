//! Calls that are made to fail, as their caller sees it.

use serde_json::json;

use super::{desk, offering, with};
use crate::support::fleet_params;

#[tokio::test]
async fn so_many_calls_are_throttled_and_no_more() {
    let desk = desk().await;
    let order = json!({ "kind": "throttle", "api": "ec2:DescribeSubnets", "calls": 2 });
    assert_eq!(desk.order("/faults", &order)["calls_to_fail"], 2);
    assert_eq!(desk.get("/state")["faults"], json!({ "ec2:DescribeSubnets": 2 }));
    for _ in 0..2 {
        let (code, _) = desk.client.ec2("DescribeSubnets", &[]).await.error();
        assert_eq!(code, "RequestLimitExceeded");
    }
    desk.client.ec2("DescribeSubnets", &[]).await.ok();
    assert_eq!(desk.get("/state")["faults"], json!({}));
}

#[tokio::test]
async fn an_error_has_the_code_text_and_status_that_were_ordered() {
    let desk = desk().await;
    let order = json!({
        "kind": "error", "api": "ec2:DescribeImages",
        "code": "Unavailable", "message": "The server is overloaded", "status": 503,
    });
    desk.order("/faults", &order);
    let reply = desk.client.ec2("DescribeImages", &[]).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.error(), ("Unavailable".to_owned(), "The server is overloaded".to_owned()));
}

#[tokio::test]
async fn a_call_that_is_dropped_after_its_effect_has_launched() {
    let desk = desk().await;
    for (kind, launched) in [("drop-before", 0), ("drop-after", 1)] {
        desk.order("/faults", &json!({ "kind": kind, "api": "ec2:CreateFleet" }));
        let params = fleet_params((1, "spot"), &[("m5.large", &desk.subnets[0])], &[]);
        let params: Vec<(&str, &str)> =
            params.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert!(desk.client.try_query("ec2", "CreateFleet", &params).await.is_none(), "{kind}");
        let there = desk.client.ec2("DescribeInstances", &[]).await.ok().all("instanceId");
        assert_eq!(there.len(), launched, "{kind}");
    }
}

#[tokio::test]
async fn a_slow_reply_is_late() {
    let desk = desk().await;
    desk.order(
        "/faults",
        &json!({ "kind": "slow", "api": "ec2:DescribeImages", "delay_ms": 600_000 }),
    );
    tokio::select! {
        biased;
        _ = desk.client.ec2("DescribeImages", &[]) => panic!("the reply takes ten minutes"),
        // A call that came after it is answered before it.
        () = async {
            while desk.client.region.calls_of("ec2:DescribeImages").is_empty() {
                tokio::task::yield_now().await;
            }
            desk.client.ec2("DescribeSubnets", &[]).await.ok();
        } => {}
    }
}

#[tokio::test]
async fn launches_are_refused_by_market_until_the_attempts_are_used_up() {
    let desk = desk().await;
    let order = json!({
        "kind": "launch", "instance_type": "m5.large", "capacity_type": "spot",
        "code": "MaxSpotInstanceCountExceeded",
    });
    desk.order("/faults", &order);
    let waiting = &desk.get("/state")["launch_faults"][0];
    assert_eq!((&waiting["capacity_type"], &waiting["attempts"]), (&json!("spot"), &json!(1)));
    assert_eq!(desk.launch_refused("on-demand").await, None);
    let code = desk.launch_refused("spot").await;
    assert_eq!(code.as_deref(), Some("MaxSpotInstanceCountExceeded"));
    assert_eq!(desk.launch_refused("spot").await, None);
    desk.order("/faults", &with(order, "attempts", json!(null)));
    for _ in 0..3 {
        assert!(desk.launch_refused("spot").await.is_some(), "there is no end to it");
    }
}

#[tokio::test]
async fn faults_that_are_withdrawn_do_not_happen() {
    let desk = desk().await;
    desk.order("/faults", &json!({ "kind": "throttle", "api": "ec2:DescribeSubnets", "calls": 3 }));
    desk.order("/faults", &json!({ "kind": "launch", "code": "Unsupported", "attempts": null }));
    let (status, text) = desk.ask("DELETE", "/faults", "");
    let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (status.as_u16(), &answer["withdrawn"]),
        (200, &json!({ "calls": 3, "launches": 1 }))
    );
    desk.client.ec2("DescribeSubnets", &[]).await.ok();
    assert_eq!(desk.launch_refused("spot").await, None);
}

#[tokio::test]
async fn an_offering_without_capacity_is_refused_and_sold_again_when_it_has_some() {
    let desk = desk().await;
    let spot = offering("spot");
    let answer = desk.order("/capacity", &with(spot.clone(), "count", 1));
    assert_eq!(answer, json!({ "count": 1, "before": null }));
    assert_eq!(desk.get("/state")["capacity"], json!([with(spot.clone(), "count", 1)]));
    assert_eq!(desk.launch_refused("spot").await, None);
    let code = desk.launch_refused("spot").await;
    assert_eq!(code.as_deref(), Some("InsufficientInstanceCapacity"));
    assert_eq!(desk.launch_refused("on-demand").await, None);
    let answer = desk.order("/capacity", &with(spot, "count", json!(null)));
    assert_eq!(answer, json!({ "count": null, "before": 0 }));
    assert_eq!(desk.launch_refused("spot").await, None);
    assert_eq!(desk.get("/state")["capacity"], json!([]));
}
