//! What has no effect is refused, with its kind and the way out, and changes nothing.

use serde_json::Value;

use super::{Desk, desk};

/// Status, kind, and words of the way out.
type Refused = (u16, &'static str, &'static str);

/// Method, path and body of what is refused, and how.
const REFUSED: [(&str, &str, &str, Refused); 26] = [
    ("GET", "/nowhere", "", (404, "unknown-path", "/interruptions")),
    ("POST", "/state", "", (405, "wrong-method", "use GET")),
    ("GET", "/faults", "", (405, "wrong-method", "use POST, DELETE")),
    ("GET", "/state?all", "", (400, "unusable-query", "/calls")),
    ("GET", "/calls?from=1", "", (400, "unusable-query", "since=NUMBER")),
    ("GET", "/calls?since=noon", "", (400, "unusable-query", "2026-09-01T12:00:00Z")),
    ("GET", "/calls?since=999999", "", (422, "out-of-range", "since may be 0 to ")),
    ("GET", "/calls?since=2999-01-01T00:00:00Z", "", (422, "out-of-range", "present")),
    ("POST", "/faults", "", (400, "unusable-body", "GET /")),
    (
        "POST",
        "/faults",
        r#"{"kind":"explode","api":"ec2:CreateFleet"}"#,
        (400, "unusable-body", "GET /"),
    ),
    (
        "POST",
        "/faults",
        r#"{"kind":"throttle","api":"ec2:CreateFleet","times":2}"#,
        (400, "unusable-body", "GET /"),
    ),
    (
        "POST",
        "/faults",
        r#"{"kind":"throttle","api":"ec2:CreateFleets"}"#,
        (422, "unknown-api", "ec2:CreateFleet,"),
    ),
    (
        "POST",
        "/faults",
        r#"{"kind":"throttle","api":"CreateFleet"}"#,
        (422, "unknown-api", "eks:DescribeCluster"),
    ),
    (
        "POST",
        "/faults",
        r#"{"kind":"throttle","api":"ec2:CreateFleet","calls":0}"#,
        (422, "out-of-range", "calls may be 1 to 10000"),
    ),
    (
        "POST",
        "/faults",
        r#"{"kind":"throttle","api":"ec2:CreateFleet","calls":10001}"#,
        (422, "out-of-range", "calls may be 1 to 10000"),
    ),
    (
        "POST",
        "/faults",
        r#"{"kind":"slow","api":"ec2:CreateFleet","delay_ms":0}"#,
        (422, "out-of-range", "delay_ms may be 1 to"),
    ),
    (
        "POST",
        "/faults",
        r#"{"kind":"error","api":"ec2:CreateFleet","code":"X","status":200}"#,
        (422, "out-of-range", "status may be 400 to 599"),
    ),
    (
        "POST",
        "/faults",
        r#"{"kind":"launch","code":"X","zone":"us-east-1z"}"#,
        (422, "unknown-offering", "us-east-1a"),
    ),
    (
        "POST",
        "/capacity",
        r#"{"instance_type":"m5.large","zone":"us-east-1a","capacity_type":"spot"}"#,
        (400, "unusable-body", "GET /"),
    ),
    (
        "POST",
        "/capacity",
        r#"{"instance_type":"m5.huge","zone":"us-east-1a","capacity_type":"spot","count":0}"#,
        (422, "unknown-offering", "m5.large"),
    ),
    (
        "POST",
        "/capacity",
        r#"{"instance_type":"huge","zone":"us-east-1a","capacity_type":"spot","count":0}"#,
        (422, "unknown-offering", "families"),
    ),
    (
        "POST",
        "/capacity",
        r#"{"instance_type":"m5.large","zone":"eu-west-1a","capacity_type":"spot","count":0}"#,
        (422, "unknown-offering", "us-east-1a (on-demand, spot)"),
    ),
    (
        "POST",
        "/prices",
        r#"{"instance_type":"m5.large","zone":"us-east-1a","micro_usd_per_hour":0}"#,
        (422, "out-of-range", "micro_usd_per_hour may be 1 to"),
    ),
    (
        "POST",
        "/interruptions",
        r#"{"kind":"rebalance","instances":[]}"#,
        (422, "no-instances", "GET /state"),
    ),
    (
        "POST",
        "/interruptions",
        r#"{"kind":"rebalance","instances":["i-0"],"in_s":5}"#,
        (400, "unusable-body", "GET /"),
    ),
    (
        "POST",
        "/interruptions",
        r#"{"kind":"scheduled-change","instances":["i-0"],"event_code":"x"}"#,
        (422, "out-of-range", "instance-retirement"),
    ),
];

#[tokio::test]
async fn what_has_no_effect_is_refused_with_the_way_out() {
    let desk = desk().await;
    let before = state(&desk);
    for (method, path, body, (status, kind, way_out)) in REFUSED {
        let (refused, error) = desk.refused(method, path, body);
        let case = format!("{method} {path} {body}: {error}");
        assert_eq!((refused, error["kind"].as_str()), (status, Some(kind)), "{case}");
        assert!(error["message"].as_str().is_some_and(|it| !it.is_empty()), "{case}");
        assert!(error["what_to_do"].as_str().is_some_and(|it| it.contains(way_out)), "{case}");
    }
    assert_eq!(state(&desk), before);
    desk.client.ec2("DescribeSubnets", &[]).await.ok();
}

#[tokio::test]
async fn faults_that_wait_have_a_bound_too() {
    let desk = desk().await;
    let order =
        |calls: u32| format!(r#"{{"kind":"throttle","api":"ec2:CreateFleet","calls":{calls}}}"#);
    assert_eq!(desk.ask("POST", "/faults", order(9_999)).0, 200);
    let (_, error) = desk.refused("POST", "/faults", &order(2));
    assert_eq!(error["what_to_do"], "calls may be 1 to 1");
    assert_eq!(desk.ask("POST", "/faults", order(1)).0, 200);
    let (_, error) = desk.refused("POST", "/faults", &order(1));
    assert!(
        error["what_to_do"].as_str().is_some_and(|it| it.contains("DELETE /faults")),
        "{error}"
    );
}

/// Everything but the time.
fn state(desk: &Desk) -> Value {
    let mut state = desk.get("/state");
    state["now"] = Value::Null;
    state
}
