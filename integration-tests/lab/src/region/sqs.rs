//! SQS: the queue API over the region's queues.
//!
//! Invariant: handlers never wait; a long poll is the server asking again.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::clock::after;
use super::iam::Context;
use super::wire::{AwsError, Body, Request, Result};
use super::world::{Call, Handler, Message, Queue, World};

/// Most messages of one receive or one batch.
const BATCH_MAX: u64 = 10;

/// The APIs of SQS, and who answers them.
pub const APIS: &[(&str, Handler)] = &[
    ("GetQueueUrl", get_queue_url),
    ("GetQueueAttributes", get_queue_attributes),
    ("SendMessage", send),
    ("SendMessageBatch", send_batch),
    ("ReceiveMessage", receive),
    ("DeleteMessage", delete),
    ("DeleteMessageBatch", delete_batch),
    ("ChangeMessageVisibility", change_visibility),
];

/// When a receive that found nothing may answer so: the end of its long poll.
pub fn poll_until(request: &Request, arrived: Timestamp) -> Timestamp {
    let wait_s = request.json["WaitTimeSeconds"].as_u64().unwrap_or(0).min(20);
    after(arrived, u32::try_from(wait_s * 1000).unwrap_or(0))
}

/// Whether a reply is that of a receive that found nothing.
pub fn found_nothing(request: &Request, reply: &Result<Body>) -> bool {
    let empty = |body: &Body| matches!(body, Body::Json(json) if json["Messages"].is_null());
    request.api() == "sqs:ReceiveMessage" && reply.as_ref().is_ok_and(empty)
}

fn get_queue_url(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = call.request.json["QueueName"].as_str().unwrap_or_default();
    allow(world, call, name)?;
    if !world.queues.contains_key(name) {
        return Err(no_queue());
    }
    let url = format!("http://{}/{}/{name}", call.request.host, world.config.account_id);
    Ok(Body::Json(json!({"QueueUrl": url})))
}

fn get_queue_attributes(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = queue_name(call);
    let arn = allow(world, call, &name)?;
    let now = call.now;
    let queue = queue(world, &name)?;
    let (visible, hidden) = queue.depth(now);
    let sender = json!({"Statement": [{
        "Effect": "Allow",
        "Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
        "Action": "sqs:SendMessage",
        "Resource": arn,
    }]});
    let policy = if queue.receives_events { sender.to_string() } else { String::new() };
    Ok(Body::Json(json!({"Attributes": {
        "QueueArn": arn,
        "ApproximateNumberOfMessages": visible.to_string(),
        "ApproximateNumberOfMessagesNotVisible": hidden.to_string(),
        "VisibilityTimeout": queue.visibility_s.to_string(),
        "MessageRetentionPeriod": queue.retention_s.to_string(),
        "SqsManagedSseEnabled": "true",
        "Policy": policy,
    }})))
}

fn send(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = queue_name(call);
    allow(world, call, &name)?;
    let body = call.request.json["MessageBody"].as_str().unwrap_or_default().to_owned();
    let id = world.ids.uuid("message");
    let reply = json!({"MessageId": id, "MD5OfMessageBody": md5_hex(&body)});
    queue(world, &name)?.send(id, body, call.now);
    Ok(Body::Json(reply))
}

fn send_batch(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = queue_name(call);
    allow(world, call, &name)?;
    queue(world, &name)?;
    let mut sent = Vec::new();
    for entry in entries(call)? {
        let body = entry["MessageBody"].as_str().unwrap_or_default().to_owned();
        let id = world.ids.uuid("message");
        let digest = md5_hex(&body);
        queue(world, &name)?.send(id.clone(), body, call.now);
        sent.push(json!({"Id": entry["Id"], "MessageId": id, "MD5OfMessageBody": digest}));
    }
    Ok(Body::Json(json!({"Successful": sent, "Failed": []})))
}

fn receive(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = queue_name(call);
    allow(world, call, &name)?;
    let json = &call.request.json;
    let most = json["MaxNumberOfMessages"].as_u64().unwrap_or(1);
    if !(1..=BATCH_MAX).contains(&most) {
        let message = format!("Value {most} for parameter MaxNumberOfMessages is invalid.");
        return Err(AwsError::client("InvalidParameterValue", message));
    }
    let queue = queue(world, &name)?;
    let asked = json["VisibilityTimeout"].as_u64().and_then(|s| u32::try_from(s).ok());
    let hidden_s = asked.unwrap_or(queue.visibility_s);
    let messages = queue.receive(usize::try_from(most).unwrap_or(1), hidden_s, call.now);
    if messages.is_empty() {
        return Ok(Body::Json(json!({})));
    }
    let messages: Vec<Value> = messages.iter().map(message_json).collect();
    Ok(Body::Json(json!({"Messages": messages})))
}

fn delete(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = queue_name(call);
    allow(world, call, &name)?;
    let receipt = call.request.json["ReceiptHandle"].as_str().unwrap_or_default();
    if queue(world, &name)?.delete(receipt) {
        return Ok(Body::Json(json!({})));
    }
    Err(bad_receipt(receipt))
}

fn delete_batch(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = queue_name(call);
    allow_action(world, call, ("sqs:DeleteMessage", &name))?;
    let queue = queue(world, &name)?;
    let (mut deleted, mut failed) = (Vec::new(), Vec::new());
    for entry in entries(call)? {
        let receipt = entry["ReceiptHandle"].as_str().unwrap_or_default();
        if queue.delete(receipt) {
            deleted.push(json!({"Id": entry["Id"]}));
        } else {
            let error = bad_receipt(receipt);
            failed.push(json!({
                "Id": entry["Id"],
                "Code": error.code,
                "Message": error.message,
                "SenderFault": true,
            }));
        }
    }
    Ok(Body::Json(json!({"Successful": deleted, "Failed": failed})))
}

fn change_visibility(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = queue_name(call);
    allow(world, call, &name)?;
    let json = &call.request.json;
    let receipt = json["ReceiptHandle"].as_str().unwrap_or_default();
    let hidden_s = json["VisibilityTimeout"].as_u64().and_then(|s| u32::try_from(s).ok());
    if queue(world, &name)?.hide(receipt, hidden_s.unwrap_or(0), call.now) {
        return Ok(Body::Json(json!({})));
    }
    Err(bad_receipt(receipt))
}

/// The last part of `QueueUrl`.
fn queue_name(call: &Call<'_>) -> String {
    let url = call.request.json["QueueUrl"].as_str().unwrap_or_default();
    url.rsplit('/').next().unwrap_or_default().to_owned()
}

fn queue<'a>(world: &'a mut World, name: &str) -> Result<&'a mut Queue> {
    world.queues.get_mut(name).ok_or_else(no_queue)
}

fn allow(world: &World, call: &Call<'_>, name: &str) -> Result<String> {
    // Batches are governed by the action of the single call.
    let action = call.request.api();
    let action = action.strip_suffix("Batch").unwrap_or(&action);
    allow_action(world, call, (action, name))
}

fn allow_action(world: &World, call: &Call<'_>, (action, name): (&str, &str)) -> Result<String> {
    let arn = format!("arn:aws:sqs:{}:{}:{name}", world.config.name, world.config.account_id);
    world
        .check(call.caller, action, &arn, Context::default())
        .map_err(|denial| world.refusal(call.request.service, &denial))?;
    Ok(arn)
}

fn entries(call: &Call<'_>) -> Result<Vec<Value>> {
    let entries = call.request.json["Entries"].as_array().cloned().unwrap_or_default();
    let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
    match count {
        0 => Err(AwsError::client(
            "AWS.SimpleQueueService.EmptyBatchRequest",
            "There should be at least one entry in the request.",
        )),
        1..=BATCH_MAX => Ok(entries),
        _ => Err(AwsError::client(
            "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
            "Maximum number of entries per request are 10.",
        )),
    }
}

fn message_json(message: &Message) -> Value {
    let millis = |at: Timestamp| at.as_millisecond().to_string();
    let first_received = message.first_received.unwrap_or(message.sent);
    json!({
        "MessageId": message.id,
        "ReceiptHandle": message.receipt,
        "MD5OfBody": md5_hex(&message.body),
        "Body": message.body,
        "Attributes": {
            "SentTimestamp": millis(message.sent),
            "ApproximateReceiveCount": message.receives.to_string(),
            "ApproximateFirstReceiveTimestamp": millis(first_received),
        },
    })
}

fn no_queue() -> AwsError {
    AwsError::client("QueueDoesNotExist", "The specified queue does not exist.")
}

fn bad_receipt(receipt: &str) -> AwsError {
    let message = format!("The input receipt handle \"{receipt}\" is not a valid receipt handle.");
    AwsError::client("ReceiptHandleIsInvalid", message)
}

fn md5_hex(text: &str) -> String {
    use md5::{Digest as _, Md5};
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
