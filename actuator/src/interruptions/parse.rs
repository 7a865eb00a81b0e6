//! EventBridge envelopes as SQS delivers them.
//!
//! Invariant: pure. Unknown kinds are no error; another account's or region's events are not ours.

use longshore_proto::capacity::v1::InterruptionKind;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// What an envelope says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// What was announced.
    pub kind: InterruptionKind,
    /// Instances it is about.
    pub instance_ids: Vec<String>,
    /// Milliseconds since 1970.
    pub time_ms: i64,
    /// Account it is about.
    pub account_id: String,
    /// Region it is about.
    pub region: String,
}

/// A message that is no envelope.
#[derive(Debug, Error)]
#[error("not an EventBridge envelope: {0}; is something else writing to the queue?")]
pub struct NotAnEnvelope(#[from] serde_json::Error);

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Envelope {
    source: String,
    detail_type: String,
    #[serde(default)]
    account: String,
    #[serde(default)]
    region: String,
    time: Option<jiff::Timestamp>,
    #[serde(default)]
    detail: Value,
}

/// Reads an envelope; none when it is about nothing that matters. One without a time is of
/// `now_ms`.
///
/// # Errors
/// When the text is no envelope.
pub fn parse(body: &str, now_ms: i64) -> Result<Option<Announcement>, NotAnEnvelope> {
    let envelope: Envelope = serde_json::from_str(body)?;
    let Some((kind, instance_ids)) = meaning(&envelope) else { return Ok(None) };
    Ok(Some(Announcement {
        kind,
        instance_ids,
        time_ms: envelope.time.map_or(now_ms, jiff::Timestamp::as_millisecond),
        account_id: envelope.account,
        region: envelope.region,
    }))
}

fn meaning(envelope: &Envelope) -> Option<(InterruptionKind, Vec<String>)> {
    let detail = &envelope.detail;
    let instance = || Some(vec![detail["instance-id"].as_str()?.to_owned()]);
    let kind = match (envelope.source.as_str(), envelope.detail_type.as_str()) {
        ("aws.ec2", "EC2 Spot Instance Interruption Warning") => InterruptionKind::Spot,
        ("aws.ec2", "EC2 Instance Rebalance Recommendation") => InterruptionKind::Rebalance,
        // A reservation taken back ends the instance as a spot interruption does.
        ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning") => {
            InterruptionKind::Spot
        }
        ("aws.ec2", "EC2 Instance State-change Notification") => {
            let ending = ["stopping", "stopped", "shutting-down", "terminated"];
            detail["state"].as_str().filter(|state| ending.contains(state))?;
            InterruptionKind::StateChange
        }
        ("aws.health", "AWS Health Event") => {
            let scheduled = detail["eventTypeCategory"] == "scheduledChange";
            return (scheduled && detail["service"] == "EC2")
                .then(|| (InterruptionKind::ScheduledChange, affected(detail)));
        }
        _ => return None,
    };
    Some((kind, instance()?))
}

fn affected(detail: &Value) -> Vec<String> {
    let entities = detail["affectedEntities"].as_array().map(Vec::as_slice).unwrap_or_default();
    let values = entities.iter().filter_map(|entity| entity["entityValue"].as_str());
    values.filter(|value| value.starts_with("i-")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn envelope(source: &str, detail_type: &str, detail: Value) -> String {
        json!({
            "version": "0",
            "id": "1e5527d7-bb36-4607-3370-4164db56a40e",
            "detail-type": detail_type,
            "source": source,
            "account": "111122223333",
            "time": "1970-01-01T00:00:07Z",
            "region": "us-east-1",
            "resources": [],
            "detail": detail,
        })
        .to_string()
    }

    fn kinds(source: &str, detail_type: &str, detail: Value) -> Option<InterruptionKind> {
        let found = parse(&envelope(source, detail_type, detail), 1).unwrap()?;
        assert_eq!((found.time_ms, found.region.as_str()), (7000, "us-east-1"));
        assert_eq!(found.instance_ids, ["i-1"]);
        Some(found.kind)
    }

    #[test]
    fn envelopes_are_understood() {
        let spot = json!({"instance-id": "i-1", "instance-action": "terminate"});
        let state = |state: &str| json!({"instance-id": "i-1", "state": state});
        let health = |service: &str, category: &str| {
            json!({
                "service": service,
                "eventTypeCategory": category,
                "affectedEntities": [{"entityValue": "i-1"}, {"entityValue": "vol-1"}],
            })
        };
        let change = "EC2 Instance State-change Notification";
        let warning = "EC2 Spot Instance Interruption Warning";
        let rebalance = "EC2 Instance Rebalance Recommendation";
        let event = "AWS Health Event";
        let table = [
            ("aws.ec2", warning, spot.clone(), Some(InterruptionKind::Spot)),
            ("aws.ec2", rebalance, spot.clone(), Some(InterruptionKind::Rebalance)),
            ("aws.ec2", change, state("stopping"), Some(InterruptionKind::StateChange)),
            ("aws.ec2", change, state("running"), None),
            (
                "aws.health",
                event,
                health("EC2", "scheduledChange"),
                Some(InterruptionKind::ScheduledChange),
            ),
            ("aws.health", event, health("RDS", "scheduledChange"), None),
            ("aws.health", event, health("EC2", "issue"), None),
            ("aws.s3", warning, spot, None),
            ("aws.ec2", warning, json!({}), None),
        ];
        for (source, detail_type, detail, expected) in table {
            assert_eq!(kinds(source, detail_type, detail.clone()), expected, "{detail}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        assert!(parse("hello", 1).is_err());
        assert!(parse("{}", 1).is_err());
    }
}
