//! What is wrong with a node, by its conditions, and for how long that is put up with.
//!
//! Conditions and tolerations are those of Karpenter's provider for EKS: its node monitoring agent
//! sets all but Ready.
//!
//! Invariant: counted from when the condition turned, as the API server has it.

use k8s_openapi::api::core::v1::Node;
use prost_types::Timestamp;

use super::duration;

/// Type and status of a condition, and how long it may last, in seconds.
const AILMENTS: [(&str, &str, i64); 7] = [
    ("Ready", "False", minutes(30)),
    ("Ready", "Unknown", minutes(30)),
    ("AcceleratedHardwareReady", "False", minutes(10)),
    ("StorageReady", "False", minutes(30)),
    ("NetworkingReady", "False", minutes(30)),
    ("KernelReady", "False", minutes(30)),
    ("ContainerRuntimeReady", "False", minutes(30)),
];

const fn minutes(count: i64) -> i64 {
    60 * count
}

/// Something that is wrong with a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Ailment {
    /// In words: condition and status.
    pub what: String,
    /// When it will have lasted for too long.
    pub repair_time: Timestamp,
}

/// What is wrong with a node; of several things, what will have lasted for too long first.
#[must_use]
pub fn of(node: &Node) -> Option<Ailment> {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ailing = conditions.filter_map(|condition| {
        let known = AILMENTS
            .iter()
            .find(|(kind, status, _)| *kind == condition.type_ && *status == condition.status);
        let (kind, status, toleration) = known?;
        let since = condition.last_transition_time.as_ref()?;
        let since = duration::timestamp(since);
        let repair_time = Timestamp { seconds: since.seconds + toleration, ..since };
        Some(Ailment { what: format!("{kind} is {status}"), repair_time })
    });
    ailing.min_by_key(|ailing| (ailing.repair_time.seconds, ailing.repair_time.nanos))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(conditions: &serde_json::Value) -> Node {
        serde_json::from_value(json!({ "status": { "conditions": conditions } })).unwrap()
    }

    fn condition(kind: &str, status: &str, since: &str) -> serde_json::Value {
        json!({ "type": kind, "status": status, "lastTransitionTime": since })
    }

    #[test]
    fn what_will_have_lasted_for_too_long_first_counts() {
        let well = [
            condition("Ready", "True", "2026-01-01T00:00:00Z"),
            condition("MemoryPressure", "False", "2026-01-01T00:00:00Z"),
            condition("DiskPressure", "True", "2026-01-01T00:00:00Z"),
            json!({ "type": "KernelReady", "status": "False" }),
        ];
        assert_eq!(of(&node(&json!(well))), None);
        let ailing = [
            condition("Ready", "Unknown", "2026-01-01T00:00:00Z"),
            condition("AcceleratedHardwareReady", "False", "2026-01-01T00:15:00Z"),
        ];
        let found = of(&node(&json!(ailing))).unwrap();
        assert_eq!(found.what, "AcceleratedHardwareReady is False");
        assert_eq!(found.repair_time.seconds, 1_767_225_600 + 25 * 60);
        let found = of(&node(&json!([ailing[0]]))).unwrap();
        assert_eq!(
            (found.what.as_str(), found.repair_time.seconds),
            ("Ready is Unknown", 1_767_225_600 + 30 * 60)
        );
    }
}
