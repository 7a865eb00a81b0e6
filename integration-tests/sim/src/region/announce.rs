//! What EC2 says about instances: to the queue, and of what it cannot sell.
//!
//! Invariant: the envelopes are EventBridge's own.

use jiff::Timestamp;
use longshore_actuator::cloud::{
    Class, CloudError, FleetOffer, InstanceMetadata, ReservationUse, Shortage, Template,
};
use longshore_proto::capacity::v1::InstancePhase;
use serde_json::{Value, json};

use super::{Model, QueueMessage};

impl Model {
    pub(super) fn announce_state(&mut self, instance_id: &str, now_ms: i64) {
        let Some(record) = self.instances.get(instance_id) else { return };
        let state = match record.seen.phase {
            InstancePhase::Running => "running",
            InstancePhase::ShuttingDown => "shutting-down",
            InstancePhase::Terminated => "terminated",
            InstancePhase::Stopped => "stopped",
            InstancePhase::Pending | InstancePhase::Unspecified => "pending",
        };
        let detail = json!({ "instance-id": instance_id, "state": state });
        self.announce("EC2 Instance State-change Notification", instance_id, &detail, now_ms);
    }

    pub(super) fn announce_interruption(&mut self, instance_id: &str, now_ms: i64) {
        let detail = json!({ "instance-id": instance_id, "instance-action": "terminate" });
        self.announce("EC2 Spot Instance Interruption Warning", instance_id, &detail, now_ms);
    }

    fn announce(&mut self, kind: &str, instance_id: &str, detail: &Value, now_ms: i64) {
        let (account, region) = (&self.config.account_id, &self.config.name);
        let time = Timestamp::from_millisecond(now_ms).unwrap_or_default();
        let body = json!({
            "version": "0",
            "id": format!("event-{}", self.next),
            "detail-type": kind,
            "source": "aws.ec2",
            "account": account,
            "time": format!("{time:.0}"),
            "region": region,
            "resources": [format!("arn:aws:ec2:{region}:{account}:instance/{instance_id}")],
            "detail": detail,
        });
        self.next += 1;
        let message = QueueMessage { body: body.to_string(), visible_ms: now_ms };
        self.messages.insert(self.next, message);
    }
}

/// EC2's word for an offering without capacity.
pub(super) fn shortage(offer: &FleetOffer) -> Shortage {
    Shortage {
        instance_type: offer.instance_type.clone(),
        zone: offer.zone.clone(),
        subnet_id: offer.subnet_id.clone(),
        error: CloudError {
            class: Class::Capacity,
            action: "ec2:CreateFleet",
            code: "InsufficientInstanceCapacity".to_owned(),
            message: "There is no Spot capacity available that matches your request.".to_owned(),
            request_id: String::new(),
        },
    }
}

/// EC2's word for an offering that it failed to try.
pub(super) fn untried(offer: &FleetOffer) -> Shortage {
    let mut shortage = shortage(offer);
    shortage.error.class = Class::Unknown;
    "InternalError".clone_into(&mut shortage.error.code);
    "An internal error has occurred.".clone_into(&mut shortage.error.message);
    shortage
}

/// EC2's word for a profile that it has not learned of yet.
pub(super) fn profile_unknown(offer: &FleetOffer) -> Shortage {
    let mut shortage = shortage(offer);
    shortage.error.class = Class::Profile;
    "InvalidParameterValue".clone_into(&mut shortage.error.code);
    "Invalid IAM Instance Profile name".clone_into(&mut shortage.error.message);
    shortage
}

/// A template that says nothing; never used, since orders without a template are refused.
pub(super) fn nothing() -> (Template, i64) {
    let template = Template {
        name: String::new(),
        image_id: String::new(),
        instance_profile: String::new(),
        security_group_ids: Vec::new(),
        public_address: None,
        user_data: String::new(),
        disks: Vec::new(),
        metadata: InstanceMetadata {
            endpoint: String::new(),
            ipv6: String::new(),
            hop_limit: 0,
            tokens: String::new(),
        },
        detailed_monitoring: false,
        reservations: ReservationUse::default(),
        tags: std::collections::BTreeMap::new(),
    };
    (template, 0)
}
