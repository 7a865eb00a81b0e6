//! EventBridge: what happens to instances, told to the queues that receive events.
//!
//! Invariant: the envelope is EventBridge's own; ids and times come from the region.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::World;

impl World {
    /// Tells the current state of an instance.
    pub fn announce_state(&mut self, instance_id: &str, now: Timestamp) {
        let Some(record) = self.instances.get(instance_id) else { return };
        let (_, state) = record.state();
        let detail = json!({"instance-id": instance_id, "state": state});
        self.announce("EC2 Instance State-change Notification", instance_id, detail, now);
    }

    /// Warns that a spot instance is about to be taken back.
    pub fn announce_interruption(&mut self, instance_id: &str, now: Timestamp) {
        let detail = json!({"instance-id": instance_id, "instance-action": "terminate"});
        self.announce("EC2 Spot Instance Interruption Warning", instance_id, detail, now);
    }

    /// Tells that a spot instance runs at a raised risk.
    pub fn announce_rebalance(&mut self, instance_id: &str, now: Timestamp) {
        let detail = json!({"instance-id": instance_id});
        self.announce("EC2 Instance Rebalance Recommendation", instance_id, detail, now);
    }

    /// Warns that a capacity reservation takes an instance back.
    pub fn announce_reservation_interruption(&mut self, instance_id: &str, now: Timestamp) {
        let kind = "EC2 Capacity Reservation Instance Interruption Warning";
        let detail = json!({"instance-id": instance_id, "instance-action": "terminate"});
        self.announce(kind, instance_id, detail, now);
    }

    /// Schedules a change of an instance for `start`: a health event and a status event.
    pub fn schedule_change(
        &mut self,
        instance_id: &str,
        event_code: &str,
        (start, now): (Timestamp, Timestamp),
    ) {
        let description = "EC2 has scheduled a change of your instance.";
        if let Some(record) = self.instances.get_mut(instance_id) {
            let event = (description.to_owned(), start);
            record.health.events.insert(event_code.to_owned(), event);
        }
        let region = &self.config.name;
        let code = format!("AWS_EC2_{}_SCHEDULED", event_code.replace('-', "_").to_uppercase());
        let detail = json!({
            "eventArn": format!("arn:aws:health:{region}::event/EC2/{code}/{instance_id}"),
            "service": "EC2",
            "eventTypeCode": code,
            "eventTypeCategory": "scheduledChange",
            "startTime": http_date(start),
            "eventDescription": [{"language": "en_US", "latestDescription": description}],
            "affectedEntities": [{"entityValue": instance_id}],
        });
        let resources = vec![instance_id.to_owned()];
        let envelope = self.envelope("aws.health", "AWS Health Event", resources, (detail, now));
        self.deliver(&envelope, now);
    }

    fn announce(&mut self, detail_type: &str, instance_id: &str, detail: Value, now: Timestamp) {
        let resources = vec![self.ec2_arn("instance", instance_id)];
        let envelope = self.envelope("aws.ec2", detail_type, resources, (detail, now));
        self.deliver(&envelope, now);
    }

    fn envelope(
        &mut self,
        source: &str,
        detail_type: &str,
        resources: Vec<String>,
        (detail, now): (Value, Timestamp),
    ) -> Value {
        json!({
            "version": "0",
            "id": self.ids.uuid("event"),
            "detail-type": detail_type,
            "source": source,
            "account": self.config.account_id,
            "time": format!("{now:.0}"),
            "region": self.config.name,
            "resources": resources,
            "detail": detail,
        })
    }

    fn deliver(&mut self, envelope: &Value, now: Timestamp) {
        let body = envelope.to_string();
        for queue in self.queues.values_mut().filter(|queue| queue.receives_events) {
            let id = self.ids.uuid("message");
            queue.send(id, body.clone(), now);
        }
    }
}

/// AWS Health writes times as `Sat, 05 Jun 2026 15:00:00 GMT`.
fn http_date(at: Timestamp) -> String {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
