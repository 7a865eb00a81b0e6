//! Status that actuators have found out and users read in the cluster.
//!
//! Invariant: each status carries a digest of its content, so that equal status is written once.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use jiff::Timestamp;
use longshore_proto::cluster::v1::PublishEvent;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::types::v1::{ObjectKind, ObjectRef};
use prost::Message;

use super::outage::Outage;
use super::safety::Freeze;
use super::state::{ClusterState, Refused};
use crate::region::RegionState;

/// A node is told that it will expire when this part of its age is left, at most a day.
const EXPIRES_SOON: i64 = 10;
/// A day, in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Most waiting pods that are told of an outage: it is the same for all.
const STRANDED_TOLD: usize = 20;

/// A status to write, with its need's key and a digest of its content.
pub struct Written {
    /// Key of the need.
    pub key: String,
    /// Digest of the content.
    pub content: String,
    /// The directive.
    pub action: Action,
}

/// Directives that write the status of the cluster's node classes.
#[must_use]
pub fn node_classes(state: &ClusterState, region: &RegionState) -> Vec<Written> {
    let known = |name: &String| region.node_class(state.cluster_id(), name);
    let resolved = state.node_classes().keys().filter_map(known);
    let status = resolved.filter_map(|resolution| resolution.status.clone());
    let written = status.map(|status| {
        let mut hasher = DefaultHasher::new();
        status.encode_to_vec().hash(&mut hasher);
        Written {
            key: format!("class-status/{}", status.node_class),
            content: format!("{:x}", hasher.finish()),
            action: Action::SetNodeClassStatus(status),
        }
    });
    written.collect()
}

/// Events for waiting pods for which no plan can be made.
#[must_use]
pub fn stranded(state: &ClusterState, outage: &Outage) -> Vec<Written> {
    let pods = state.view().world().pods.values();
    let waiting = pods.filter(|pod| pod.node.is_none() && pod.unschedulable);
    let written = waiting.take(STRANDED_TOLD).map(|pod| Written {
        key: format!("event/{}", pod.uid),
        content: outage.reason.to_owned(),
        action: Action::PublishEvent(PublishEvent {
            about: Some(ObjectRef { kind: ObjectKind::Pod.into(), key: pod.uid.to_string() }),
            warning: true,
            reason: "FailedScheduling".to_owned(),
            message: format!("Longshore cannot place the pod: {}", outage.message),
        }),
    });
    written.collect()
}

/// Events for claims that stay although nothing else speaks for them.
#[must_use]
pub fn frozen(freeze: &Freeze, state: &ClusterState) -> Vec<Written> {
    let claims = freeze.claims.iter().filter(|claim| state.watched().contains_key(*claim));
    let written = claims.map(|claim| Written {
        key: format!("frozen/{claim}"),
        content: freeze.reason.to_owned(),
        action: Action::PublishEvent(PublishEvent {
            about: Some(ObjectRef { kind: ObjectKind::NodeClaim.into(), key: claim.clone() }),
            warning: true,
            reason: freeze.reason.to_owned(),
            message: freeze.message.clone(),
        }),
    });
    written.collect()
}

/// The Event for a claim of whose instance the region knows nothing.
#[must_use]
pub fn unknown(claim: &str) -> Written {
    let message = "the region lists no instance of this claim's provider id and nobody saw it end, so nothing \
                   is done about it; compare account and region of the actuator, and delete the NodeClaim \
                   if the instance is gone";
    Written {
        key: format!("unknown/{claim}"),
        content: String::new(),
        action: Action::PublishEvent(PublishEvent {
            about: Some(ObjectRef { kind: ObjectKind::NodeClaim.into(), key: claim.to_owned() }),
            warning: true,
            reason: "InstanceUnknown".to_owned(),
            message: message.to_owned(),
        }),
    }
}

/// Events for nodes that will expire soon.
#[must_use]
pub fn expiring(state: &ClusterState, now_ms: i64) -> Vec<Written> {
    let world = state.view().world();
    let staying = world.claims.values().filter(|claim| !claim.is_leaving());
    let soon = staying.filter_map(|claim| {
        let (age_ms, at_ms) = (claim.expire_after_ms?, claim.expires_ms()?);
        let ahead_ms = (age_ms / EXPIRES_SOON).min(DAY_MS);
        (at_ms - ahead_ms..at_ms).contains(&now_ms).then_some((claim, at_ms))
    });
    let said = soon.filter_map(|(claim, at_ms)| {
        let at = Timestamp::from_millisecond(at_ms).ok()?.strftime("%FT%TZ").to_string();
        let message = format!(
            "it expires at {at}, by the expireAfter of NodePool {}, and is replaced then, within the budgets \
             of the pool",
            claim.pool
        );
        let key = format!("expiring/{}", claim.name);
        let about = ObjectRef { kind: ObjectKind::NodeClaim.into(), key: claim.name.to_string() };
        let (reason, warning) = ("Expiring".to_owned(), false);
        let event = PublishEvent { about: Some(about), warning, reason, message };
        Some(Written { key, content: at, action: Action::PublishEvent(event) })
    });
    said.collect()
}

/// Events for pools whose rollouts have been stopped.
#[must_use]
pub fn stopped(state: &ClusterState) -> Vec<Written> {
    let stopped = state.rollouts().filter_map(|(pool, rollout)| {
        let message = rollout.stopped.clone()?;
        Some(of_pool(("rollout", pool), &rollout.target, ("RolloutStopped", message)))
    });
    stopped.collect()
}

/// Events for pools of which too many nodes ail for any to be replaced.
#[must_use]
pub fn unrepaired(blocked: &BTreeMap<String, String>) -> Vec<Written> {
    let said = blocked.iter().map(|(pool, message)| {
        of_pool(("repair", pool), message, ("NodeRepairBlocked", message.clone()))
    });
    said.collect()
}

/// A warning about a pool.
fn of_pool(
    (matter, pool): (&str, &str),
    content: &str,
    (reason, message): (&str, String),
) -> Written {
    Written {
        key: format!("{matter}/{pool}"),
        content: content.to_owned(),
        action: Action::PublishEvent(PublishEvent {
            about: Some(ObjectRef { kind: ObjectKind::NodePool.into(), key: pool.to_owned() }),
            warning: true,
            reason: reason.to_owned(),
            message,
        }),
    }
}

/// Events for objects that could not be read.
#[must_use]
pub fn refusals(refused: Vec<Refused>) -> Vec<Written> {
    let written = refused.into_iter().map(|Refused { about, error }| Written {
        key: format!("refused/{}/{}", about.kind, about.key),
        content: error.to_string(),
        action: Action::PublishEvent(PublishEvent {
            about: Some(about),
            warning: true,
            reason: "InvalidObject".to_owned(),
            message: error.to_string(),
        }),
    });
    written.collect()
}
