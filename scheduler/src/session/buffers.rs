//! Status of capacity buffers: whether there is room for them.
//!
//! Invariant: `Provisioning` is true exactly when the newest plan finds room for all of a buffer on
//! nodes that are in service. Whether a buffer can be read at all is the watcher's to say.

use longshore_core::answer::{Buffered, Plan};
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{Condition, SetConditions};
use longshore_proto::types::v1::{ObjectKind, ObjectRef};

use super::status::Written;

/// Directives that write the conditions of all buffers.
#[must_use]
pub fn written(plan: &Plan) -> Vec<Written> {
    let written = plan.buffers.iter().map(|(key, room)| {
        let (met, reason, message) = verdict(room);
        let about = ObjectRef { kind: ObjectKind::CapacityBuffer.into(), key: key.to_string() };
        let condition = Condition {
            r#type: "Provisioning".to_owned(),
            status: Some(met),
            reason: reason.to_owned(),
            message,
        };
        Written {
            key: format!("conditions/{}/{}", about.kind, about.key),
            content: format!("{reason} {}", condition.message),
            action: Action::SetConditions(SetConditions {
                about: Some(about),
                conditions: vec![condition],
            }),
        }
    });
    written.collect()
}

fn verdict(room: &Buffered) -> (bool, &'static str, String) {
    let Buffered { in_service, coming, unplaced, reason } = room;
    let all = in_service + coming + unplaced;
    match (*coming, *unplaced) {
        _ if all == 0 => (false, "BufferEmpty", "it asks for no room".to_owned()),
        (0, 0) => (true, "FitsExistingCapacity", String::new()),
        (_, 0) => {
            let message = format!("{coming} of {all} replicas wait for nodes that are coming");
            (false, "RequiresNewCapacity", message)
        }
        _ => {
            let message = format!("{unplaced} of {all} replicas have no room: {reason}");
            (false, "RequiresNewCapacity", message)
        }
    }
}

#[cfg(test)]
mod tests {
    use longshore_core::reason::{Obstacle, Reason};

    use super::*;

    #[test]
    fn only_room_in_service_counts_as_there() {
        let verdict = |in_service, coming, unplaced| {
            let reason = Reason {
                subject: "Pods/a/b".to_owned(),
                obstacle: Obstacle::NoPool,
                causes: Vec::new(),
            };
            verdict(&Buffered { in_service, coming, unplaced, reason })
        };
        assert_eq!(verdict(3, 0, 0), (true, "FitsExistingCapacity", String::new()));
        assert_eq!(verdict(0, 0, 0).1, "BufferEmpty");
        let (met, reason, message) = verdict(2, 1, 0);
        assert_eq!((met, reason), (false, "RequiresNewCapacity"));
        assert!(message.starts_with("1 of 3 replicas wait"), "{message}");
        let message = verdict(1, 1, 1).2;
        assert!(
            message.contains("1 of 3") && message.contains("there is no NodePool"),
            "{message}"
        );
    }
}
