//! One instance as EC2 keeps it: what its operating system sees, and what only EC2 knows.
//!
//! Invariant: `seen` is the same value that kubelets get; nothing is copied out of it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::config::Tags;
use super::super::offer::Offer;
use crate::instance::{Instance, InstanceState};

/// An instance.
#[derive(Clone, Debug)]
pub struct InstanceRecord {
    /// What its own operating system sees.
    pub seen: Instance,
    /// Subnet of its primary interface.
    pub subnet_id: String,
    /// Security groups of its primary interface.
    pub group_ids: Vec<String>,
    /// Reservation (launch) id, `r-…`.
    pub reservation_id: String,
    /// When it was launched.
    pub launched: Timestamp,
    /// When describe calls begin to show it.
    pub visible_at: Timestamp,
    /// When its state moves on by itself.
    pub due: Option<Timestamp>,
    /// When EC2 warns of its end, for spot instances in rough weather.
    pub warned_at: Option<Timestamp>,
    /// When EC2 takes it back, after a spot interruption warning.
    pub reclaimed_at: Option<Timestamp>,
    /// When it reached `terminated`.
    pub ended: Option<Timestamp>,
    /// Spot request id, for spot instances.
    pub spot_request_id: Option<String>,
    /// Why it ended: code and text, as in `stateReason`.
    pub reason: Option<(String, String)>,
    /// Root and further volumes: device, volume id, tags.
    pub volumes: Vec<(String, String, Tags)>,
    /// Capacity reservation it runs in.
    pub capacity_reservation: Option<String>,
    /// Which ones it may run in, in EC2's words.
    pub reservation_preference: Option<String>,
    /// Placement group name.
    pub placement_group: Option<String>,
    /// IMDSv2 tokens: `required` or `optional`.
    pub http_tokens: String,
    /// Client token of its launch.
    pub client_token: Option<String>,
    /// vCPUs, for the quota.
    pub vcpus: u32,
    /// Status checks and events.
    pub health: Health,
}

/// What DescribeInstanceStatus shows beyond the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Since when the instance check fails.
    pub instance_impaired_since: Option<Timestamp>,
    /// Since when the system check fails.
    pub system_impaired_since: Option<Timestamp>,
    /// Scheduled events: code to (description, not before).
    pub events: BTreeMap<String, (String, Timestamp)>,
}

impl InstanceRecord {
    /// What was bought.
    pub fn offer(&self) -> Offer {
        Offer::new(&self.seen.instance_type, &self.seen.zone, self.seen.spot)
    }

    /// True while it holds capacity: pending or running.
    pub fn holds_capacity(&self) -> bool {
        matches!(self.seen.state, InstanceState::Pending | InstanceState::Running)
    }

    /// EC2's name and code of the state.
    pub fn state(&self) -> (u16, &'static str) {
        match self.seen.state {
            InstanceState::Pending => (0, "pending"),
            InstanceState::Running => (16, "running"),
            InstanceState::ShuttingDown => (32, "shutting-down"),
            InstanceState::Terminated => (48, "terminated"),
        }
    }
}
