//! The queue: what EC2 tells of its own accord, and SQS itself.
//!
//! Invariant: nothing sleeps; a wait is for a change the region announces, or a long poll.

use longshore_lab::instance::{InstanceSource as _, InstanceState};
use longshore_lab::region::CLUSTER;
use serde_json::{Value, json};

use crate::support::{Client, fleet, start, subnets, template};

async fn with_spot_instance(notice_ms: u32) -> (Client, String) {
    let client = start(|config| {
        config.timing.spot_notice_ms = notice_ms;
        config.timing.boot_min_ms = 3_600_000;
        config.timing.boot_max_ms = 3_600_000;
    })
    .await;
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    fleet(&client, (1, "spot"), &[("m5.large", &subnets[0])], &[]).await.ok();
    let id = client.region.instances()[0].instance_id.clone();
    (client, id)
}

async fn queue_url(client: &Client) -> String {
    let reply = client.json("AmazonSQS.GetQueueUrl", json!({"QueueName": CLUSTER})).await.ok();
    reply.value()["QueueUrl"].as_str().expect("url").to_owned()
}

pub async fn receive(client: &Client, wait_s: u32) -> Vec<Value> {
    let url = queue_url(client).await;
    let body = json!({"QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": wait_s});
    let reply = client.json("AmazonSQS.ReceiveMessage", body).await.ok();
    reply.value()["Messages"].as_array().cloned().unwrap_or_default()
}

pub fn envelope(message: &Value) -> Value {
    serde_json::from_str(message["Body"].as_str().expect("text")).expect("JSON")
}

#[tokio::test]
async fn a_launch_is_told_in_eventbridge_s_envelope() {
    let (client, id) = with_spot_instance(120_000).await;
    let messages = receive(&client, 0).await;
    assert_eq!(messages.len(), 1);
    let event = envelope(&messages[0]);
    assert_eq!(event["version"], "0");
    assert_eq!(event["source"], "aws.ec2");
    assert_eq!(event["detail-type"], "EC2 Instance State-change Notification");
    assert_eq!(event["detail"], json!({"instance-id": id, "state": "pending"}));
    assert_eq!(event["account"], "111122223333");
    assert_eq!(event["region"], "us-east-1");
    let arn = format!("arn:aws:ec2:us-east-1:111122223333:instance/{id}");
    assert_eq!(event["resources"], json!([arn]));
    assert!(receive(&client, 0).await.is_empty(), "received messages are hidden");
}

#[tokio::test]
async fn a_long_poll_ends_with_the_interruption() {
    let (client, id) = with_spot_instance(1).await;
    receive(&client, 0).await;
    let polling = receive(&client, 20);
    let interrupting = async {
        // The poll is under way once the region has logged it.
        while client.region.calls_of("sqs:ReceiveMessage").len() < 2 {
            tokio::task::yield_now().await;
        }
        client.region.interrupt_spot(&id).expect("a spot instance");
    };
    let (messages, ()) = tokio::join!(polling, interrupting);
    let event = envelope(&messages[0]);
    assert_eq!(event["detail-type"], "EC2 Spot Instance Interruption Warning");
    assert_eq!(event["detail"], json!({"instance-id": id, "instance-action": "terminate"}));
    let mut changes = client.region.changes();
    while client.region.instances()[0].state != InstanceState::Terminated {
        changes.changed().await.expect("region lives");
    }
    let record = client.region.record(&id).expect("still listed");
    assert_eq!(record.reason.expect("a reason").0, "Server.SpotInstanceTermination");
}

#[tokio::test]
async fn rebalance_scheduled_change_and_death_are_told() {
    let (client, id) = with_spot_instance(120_000).await;
    receive(&client, 0).await;
    client.region.rebalance(&id).expect("exists");
    let start = "2026-12-01T00:00:00Z".parse().expect("time");
    client.region.schedule_change(&id, "instance-retirement", start).expect("exists");
    client.region.kill(&id).expect("exists");
    let kinds: Vec<Value> = receive(&client, 0)
        .await
        .iter()
        .map(|message| envelope(message)["detail-type"].clone())
        .collect();
    assert_eq!(kinds[0], "EC2 Instance Rebalance Recommendation");
    assert_eq!(kinds[1], "AWS Health Event");
    assert_eq!(kinds[2], "EC2 Instance State-change Notification");
    assert!(client.region.interrupt_spot("i-0").is_err());
    let params = [
        ("IncludeAllInstances", "true"),
        ("Filter.1.Name", "event.code"),
        ("Filter.1.Value.1", "instance-retirement"),
    ];
    let status = client.ec2("DescribeInstanceStatus", &params).await.ok();
    assert_eq!(status.first("notBefore"), "2026-12-01T00:00:00.000Z");
}

#[tokio::test]
async fn batches_delete_and_visibility_can_be_given_back() {
    let client = start(|_| {}).await;
    let url = queue_url(&client).await;
    let entries = json!([{"Id": "a", "MessageBody": "1"}, {"Id": "b", "MessageBody": "2"}]);
    client
        .json("AmazonSQS.SendMessageBatch", json!({"QueueUrl": url, "Entries": entries}))
        .await
        .ok();
    let messages = receive(&client, 0).await;
    let handle = |index: usize| messages[index]["ReceiptHandle"].clone();
    let back = json!({"QueueUrl": url, "ReceiptHandle": handle(0), "VisibilityTimeout": 0});
    client.json("AmazonSQS.ChangeMessageVisibility", back).await.ok();
    assert_eq!(receive(&client, 0).await[0]["Body"], "1");
    let entries = json!([
        {"Id": "x", "ReceiptHandle": handle(1)},
        {"Id": "y", "ReceiptHandle": "nonsense"},
    ]);
    let reply = client
        .json("AmazonSQS.DeleteMessageBatch", json!({"QueueUrl": url, "Entries": entries}))
        .await
        .ok()
        .value();
    assert_eq!(reply["Successful"], json!([{"Id": "x"}]));
    assert_eq!(reply["Failed"][0]["Code"], "ReceiptHandleIsInvalid");
    let attributes = json!({"QueueUrl": url, "AttributeNames": ["All"]});
    let depth = client.json("AmazonSQS.GetQueueAttributes", attributes).await.ok().value();
    assert_eq!(depth["Attributes"]["ApproximateNumberOfMessagesNotVisible"], "1");
}

#[tokio::test]
async fn a_queue_that_does_not_exist_is_sqs_s_own_error() {
    let client = start(|_| {}).await;
    let reply = client.json("AmazonSQS.GetQueueUrl", json!({"QueueName": "absent"})).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.value()["__type"], "QueueDoesNotExist");
}

#[tokio::test]
async fn rough_weather_interrupts_spot_and_spares_on_demand() {
    let client = start(|config| {
        config.weather.spot_mean_life_ms = Some(5);
        config.timing.spot_notice_ms = 5;
    })
    .await;
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    let one = [("m5.large", subnets[0].as_str())];
    let mut changes = client.region.changes();
    fleet(&client, (1, "on-demand"), &one, &[]).await.ok();
    fleet(&client, (2, "spot"), &one, &[]).await.ok();
    let ended = |client: &Client| {
        let spot = client.region.instances().into_iter().filter(|seen| seen.spot);
        spot.filter(|seen| seen.state == InstanceState::Terminated).count() == 2
    };
    while !ended(&client) {
        changes.changed().await.expect("region lives");
    }
    let on_demand = client.region.instances().into_iter().find(|seen| !seen.spot).expect("one");
    assert!(on_demand.state <= InstanceState::Running);
    let told: Vec<Value> = receive(&client, 0)
        .await
        .iter()
        .map(|message| envelope(message)["detail-type"].clone())
        .collect();
    assert!(told.contains(&json!("EC2 Spot Instance Interruption Warning")), "{told:?}");
}

#[tokio::test]
async fn what_is_not_json_travels_too() {
    let client = start(|_| {}).await;
    client.region.send_message(CLUSTER, "not json").expect("queue");
    assert_eq!(receive(&client, 0).await[0]["Body"], "not json");
    assert!(client.region.send_message("absent", "x").is_err());
}
