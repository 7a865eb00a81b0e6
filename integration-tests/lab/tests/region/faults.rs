//! Scripted faults, throttling, delays, and the promise that one seed is one run.
//!
//! Invariant: without a script nothing goes wrong.

use longshore_lab::instance::InstanceSource as _;
use longshore_lab::region::{AwsError, Fault, LaunchFault, RateLimit};

use crate::support::{Client, fleet, fleet_params, start, subnets, template};

async fn with_template() -> (Client, Vec<String>) {
    let client = start(|_| {}).await;
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    (client, subnets)
}

#[tokio::test]
async fn a_connection_dropped_after_the_launch_leaves_the_launch() {
    let (client, subnets) = with_template().await;
    client.region.fail_next("ec2:CreateFleet", Fault::DropAfter);
    let one = [("m5.large", subnets[0].as_str())];
    let params = fleet_params((1, "on-demand"), &one, &[("ClientToken", "once")]);
    let params: Vec<(&str, &str)> =
        params.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert!(client.try_query("ec2", "CreateFleet", &params).await.is_none());
    let again = client.ec2("CreateFleet", &params).await.ok();
    let launched = client.region.instances();
    assert_eq!(launched.len(), 1, "the token bought once");
    assert!(again.first("instanceIds").contains(&launched[0].instance_id));
}

#[tokio::test]
async fn a_connection_dropped_before_the_launch_leaves_nothing() {
    let (client, subnets) = with_template().await;
    client.region.fail_next("ec2:CreateFleet", Fault::DropBefore);
    let params = fleet_params((1, "on-demand"), &[("m5.large", &subnets[0])], &[]);
    let params: Vec<(&str, &str)> =
        params.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert!(client.try_query("ec2", "CreateFleet", &params).await.is_none());
    assert!(client.region.instances().is_empty());
}

#[tokio::test]
async fn errors_and_throttling_last_as_long_as_scripted() {
    let client = start(|_| {}).await;
    let error = AwsError::with_status(500, "InternalError", "An internal error has occurred");
    client.region.fail_next("ec2:DescribeSubnets", Fault::Error(error));
    client.region.fail_next_calls("ec2:DescribeSubnets", 2, &Fault::Throttle);
    let mut codes = Vec::new();
    for _ in 0..3 {
        codes.push(client.ec2("DescribeSubnets", &[]).await.error().0);
    }
    assert_eq!(codes, ["InternalError", "RequestLimitExceeded", "RequestLimitExceeded"]);
    client.ec2("DescribeSubnets", &[]).await.ok();
    let logged: Vec<Option<String>> =
        client.region.calls_of("ec2:DescribeSubnets").into_iter().map(|call| call.error).collect();
    assert_eq!(logged.len(), 4);
    assert_eq!(logged[3], None);
}

#[tokio::test]
async fn a_slow_reply_has_its_effect_at_once() {
    let (client, subnets) = with_template().await;
    client.region.fail_next("ec2:CreateFleet", Fault::Slow(3_600_000));
    let mut changes = client.region.changes();
    let one = [("m5.large", subnets[0].as_str())];
    tokio::select! {
        _ = fleet(&client, (1, "on-demand"), &one, &[]) => panic!("the reply takes an hour"),
        changed = changes.changed() => changed.expect("region lives"),
    }
    assert_eq!(client.region.instances().len(), 1);
}

#[tokio::test]
async fn a_token_bucket_refuses_the_call_after_the_burst() {
    let client = start(|_| {}).await;
    let limit = RateLimit { refill_per_second: 0, burst: 2 };
    client.region.set_rate_limit("ec2:DescribeImages", Some(limit));
    client.ec2("DescribeImages", &[]).await.ok();
    client.ec2("DescribeImages", &[]).await.ok();
    let (code, _) = client.ec2("DescribeImages", &[]).await.error();
    assert_eq!(code, "RequestLimitExceeded");
    client.region.set_rate_limit("ec2:DescribeImages", None);
    client.ec2("DescribeImages", &[]).await.ok();
}

#[tokio::test]
async fn a_launch_fault_refuses_only_what_it_names() {
    let (client, subnets) = with_template().await;
    client.region.refuse_launch(LaunchFault {
        instance_type: Some("t3.small".to_owned()),
        zone: None,
        spot: None,
        code: "MaxFleetCountExceeded".to_owned(),
        message: "Your quota allows for 0 more fleets".to_owned(),
        remaining: Some(1),
    });
    let both = [("t3.small", subnets[0].as_str()), ("m5.large", subnets[0].as_str())];
    let reply = fleet(&client, (1, "on-demand"), &both, &[]).await.ok();
    assert_eq!(reply.all("errorCode"), ["MaxFleetCountExceeded"]);
    assert_eq!(client.region.instances()[0].instance_type, "m5.large");
    let reply = fleet(&client, (1, "on-demand"), &both, &[]).await.ok();
    assert!(reply.all("errorCode").is_empty(), "the fault was for one attempt");
}

#[tokio::test]
async fn a_new_instance_is_invisible_until_the_delay_has_passed() {
    let client = start(|config| config.timing.visible_after_ms = 3_600_000).await;
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    fleet(&client, (1, "on-demand"), &[("m5.large", &subnets[0])], &[]).await.ok();
    let id = client.region.instances()[0].instance_id.clone();
    let listed = client.ec2("DescribeInstances", &[]).await.ok();
    assert!(listed.all("instanceId").is_empty());
    for api in ["DescribeInstances", "TerminateInstances"] {
        let (code, _) = client.ec2(api, &[("InstanceId.1", &id)]).await.error();
        assert_eq!(code, "InvalidInstanceID.NotFound");
    }
}

#[tokio::test]
async fn one_seed_is_one_run() {
    let run = async |seed| {
        let client = start(|config| config.seed = seed).await;
        template(&client, &[]).await.ok();
        let subnets = subnets(&client).await;
        let reply = fleet(&client, (3, "spot"), &[("m5.large", &subnets[0])], &[]).await.ok();
        (reply.request_id.clone(), reply.first("instanceIds"))
    };
    assert_eq!(run(7).await, run(7).await);
    assert_ne!(run(7).await, run(8).await);
}
