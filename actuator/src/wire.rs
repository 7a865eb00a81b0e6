//! Ledger records and instances as clients see them.
//!
//! Invariant: the only place that makes wire messages of them.

use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::capacity::v1::{InstancePhase, InstanceState, Interruption, LaunchState};
use longshore_proto::time::timestamp;
use longshore_runtime::planted;

use crate::board::Board;
use crate::cloud::{Instance, TAG_BATCH, TAG_CLAIM, TAG_CLUSTER, TAG_LAUNCH, TAG_POOL};
use crate::ledger::{LaunchRecord, unclaimed_id};

/// Shows a launch and what was announced about its instance.
pub fn show_launch(board: &Board, record: &LaunchRecord) {
    // The launch of another autoscaler's instance is of our own making: its instance is shown
    // alone.
    if !record.adopted {
        board.post(Change::Launch(launch_state(record)));
    }
    for announced in &record.interruptions {
        board.post(Change::Interruption(Interruption {
            instance_id: record.instance_id.clone(),
            cluster_id: record.cluster_id.clone(),
            claim: record.claim().to_owned(),
            kind: announced.kind,
            time: Some(timestamp(announced.time_ms)),
        }));
    }
}

/// Shows that an instance has vanished, as far as is known of it.
pub fn show_vanished(board: &Board, instance: Option<&Instance>, record: Option<&LaunchRecord>) {
    let state = match (instance, record) {
        (Some(instance), _) => instance_state(instance),
        (None, Some(record)) => recorded_instance(record),
        (None, None) => return,
    };
    let phase = InstancePhase::Terminated.into();
    let vanished = !planted::is("S4");
    board.post(Change::Instance(InstanceState { phase, vanished, ..state }));
}

/// An instance as far as its launch's record says.
fn recorded_instance(record: &LaunchRecord) -> InstanceState {
    let launch_id = if record.adopted { "" } else { record.launch_id() };
    InstanceState {
        instance_id: record.instance_id.clone(),
        launch_id: launch_id.to_owned(),
        cluster_id: record.cluster_id.clone(),
        claim: record.claim().to_owned(),
        pool: record.launch.as_ref().map_or(String::new(), |launch| launch.pool.clone()),
        adopted: record.adopted,
        ..InstanceState::default()
    }
}

/// Shows an instance.
pub fn show_instance(board: &Board, instance: &Instance) {
    board.post(Change::Instance(instance_state(instance)));
}

fn launch_state(record: &LaunchRecord) -> LaunchState {
    LaunchState {
        launch_id: record.launch_id().to_owned(),
        cluster_id: record.cluster_id.clone(),
        claim: record.claim().to_owned(),
        phase: record.wire_phase().into(),
        instance_id: record.instance_id.clone(),
        ec2_request_id: record.ec2_request_id.clone(),
        reason: record.reason.clone(),
        message: record.message.clone(),
        retryable: record.retryable,
        attempts: record.attempts,
    }
}

fn instance_state(instance: &Instance) -> InstanceState {
    // One of a call for several launches is ours, whichever of them it is for.
    let of_batch = !instance.tag(TAG_BATCH).is_empty();
    let launch_id = match instance.tag(TAG_LAUNCH) {
        "" if of_batch => unclaimed_id(&instance.instance_id),
        tagged => tagged.to_owned(),
    };
    InstanceState {
        instance_id: instance.instance_id.clone(),
        adopted: launch_id.is_empty(),
        launch_id,
        cluster_id: instance.tag(TAG_CLUSTER).to_owned(),
        claim: instance.tag(TAG_CLAIM).to_owned(),
        pool: instance.tag(TAG_POOL).to_owned(),
        instance_type: instance.instance_type.clone(),
        zone: instance.zone.clone(),
        zone_id: instance.zone_id.clone(),
        capacity_type: instance.capacity_type.into(),
        reservation_id: instance.reservation_id.clone(),
        phase: instance.phase.into(),
        private_dns_name: instance.private_dns_name.clone(),
        image_id: instance.image_id.clone(),
        launch_time: Some(timestamp(instance.launch_ms)),
        vanished: false,
        subnet_id: instance.subnet_id.clone(),
        security_group_ids: instance.security_group_ids.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_of_which_only_the_call_is_known_is_ours() {
        let tagged = |key: &str| {
            let tags = [(key.to_owned(), "x".to_owned())].into();
            instance_state(&Instance { tags, ..Instance::unseen("i-1") })
        };
        let told = [TAG_LAUNCH, TAG_BATCH, TAG_POOL].map(|key| {
            let state = tagged(key);
            (state.launch_id, state.adopted)
        });
        let text = str::to_owned;
        assert_eq!(
            told,
            [(text("x"), false), (text("unclaimed-i-1"), false), (String::new(), true)]
        );
    }
}
