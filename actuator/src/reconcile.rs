//! What is to be done, from what is recorded and what is there.
//!
//! Invariant: pure, and level not edge: the same ledger and inventory give the same actions however
//! they came about; an action under way is not asked for again.

use std::collections::BTreeSet;

use longshore_proto::capacity::v1::InstancePhase;
use longshore_proto::types::v1::{CapacityType, Launch};

use crate::cloud::{Instance, TAG_CLAIM, TAG_CLUSTER, TAG_LAUNCH, TAG_POOL};
use crate::inventory::{Inventory, VISIBLE_WITHIN_MS};
use crate::ledger::{Book, Failure, LaunchRecord, Move, Phase};

/// How long finished launches are kept, in milliseconds: longer than any plan lives, so that a
/// repeated plan finds them.
pub const KEEP_FINISHED_MS: i64 = 3_600_000;

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Ask EC2 for an instance.
    Launch(String),
    /// Make a move in the ledger.
    Record(String, Move),
    /// Take an instance into the ledger that it does not know: it was lost, or kept in memory.
    Import(Box<LaunchRecord>),
    /// Terminate an instance.
    Terminate {
        /// Instance.
        instance_id: String,
        /// Its launch.
        launch_id: String,
    },
    /// Drop a finished launch.
    Forget(String),
}

/// What reconciliation looks at besides ledger and inventory.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// When this leader's term began, in milliseconds since 1970.
    pub leading_since_ms: i64,
    /// Launches and instances that something is being done about.
    pub busy: &'a BTreeSet<String>,
}

/// The actions, launches in the order they were recorded first.
#[must_use]
pub fn reconcile(book: &Book, inventory: &Inventory, situation: &Situation<'_>) -> Vec<Action> {
    // Before the first listing of the term it is not known what the previous leader has done.
    if inventory.listed_ms() < situation.leading_since_ms {
        return Vec::new();
    }
    let found = by_launch(inventory);
    let mut actions: Vec<_> = book
        .launches
        .values()
        .filter(|record| !situation.busy.contains(record.launch_id()))
        .filter_map(|record| {
            let instance = found.get(record.launch_id()).copied();
            step(record, instance, inventory, situation)
        })
        .collect();
    actions.extend(
        inventory
            .iter()
            .filter(|instance| instance.alive() && !known(book, instance, situation))
            .map(|instance| Action::Import(Box::new(imported(instance, situation.now_ms)))),
    );
    actions
}

/// Instances by the launch they stem from; of several, one that is alive.
fn by_launch(inventory: &Inventory) -> std::collections::BTreeMap<&str, &Instance> {
    let mut found = std::collections::BTreeMap::<&str, &Instance>::new();
    for instance in inventory.iter() {
        let slot = found.entry(instance.tag(TAG_LAUNCH)).or_insert(instance);
        if !slot.alive() {
            *slot = instance;
        }
    }
    found
}

fn step(
    record: &LaunchRecord,
    found: Option<&Instance>,
    inventory: &Inventory,
    situation: &Situation<'_>,
) -> Option<Action> {
    let id = record.launch_id().to_owned();
    match record.phase() {
        Phase::Pending => Some(match found {
            Some(instance) => Action::Record(id, adopted(instance)),
            None if record.outcome_unknown() => Action::Launch(id),
            None if record.cancelled => Action::Record(id, cancelled()),
            None if record.attempts == 0 && record.expire_ms <= situation.now_ms => {
                Action::Record(id, expired(record))
            }
            None => Action::Launch(id),
        }),
        Phase::Launched | Phase::Terminating => {
            let instance = inventory.get(&record.instance_id);
            if gone(record, instance, situation.now_ms) {
                return Some(Action::Record(id, Move::Gone));
            }
            let wanted_gone = record.phase() == Phase::Terminating
                && instance.is_none_or(Instance::alive)
                && !situation.busy.contains(&record.instance_id);
            let instance_id = record.instance_id.clone();
            wanted_gone.then_some(Action::Terminate { instance_id, launch_id: id })
        }
        Phase::Terminated | Phase::Failed => {
            let old = record.changed_ms + KEEP_FINISHED_MS <= situation.now_ms;
            // While EC2 lists the instance, forgetting its launch would only import it again.
            (old && found.is_none_or(|instance| !instance.alive())).then_some(Action::Forget(id))
        }
    }
}

/// A launched instance that is terminated, or missing although it must be visible by now.
fn gone(record: &LaunchRecord, instance: Option<&Instance>, now_ms: i64) -> bool {
    match instance {
        Some(instance) => instance.phase == InstancePhase::Terminated,
        None => record.changed_ms + VISIBLE_WITHIN_MS <= now_ms,
    }
}

fn known(book: &Book, instance: &Instance, situation: &Situation<'_>) -> bool {
    let launch_id = instance.tag(TAG_LAUNCH);
    book.launches.contains_key(launch_id)
        || book.of_instance(&instance.instance_id).is_some()
        || situation.busy.contains(launch_id)
}

fn adopted(instance: &Instance) -> Move {
    Move::Launched { instance_id: instance.instance_id.clone(), ec2_request_id: String::new() }
}

fn cancelled() -> Move {
    Move::Fail(Failure {
        reason: "CANCELLED".to_owned(),
        message: "called off before an instance was launched".to_owned(),
        retryable: true,
    })
}

fn expired(record: &LaunchRecord) -> Move {
    Move::Fail(Failure {
        reason: "PLAN_EXPIRED".to_owned(),
        message: format!(
            "plan {} expired before EC2 could be asked; the next plan asks again",
            record.plan_id
        ),
        retryable: true,
    })
}

/// The record that an instance's tags amount to.
#[must_use]
pub fn imported(instance: &Instance, now_ms: i64) -> LaunchRecord {
    let launch = Launch {
        launch_id: instance.tag(TAG_LAUNCH).to_owned(),
        claim: instance.tag(TAG_CLAIM).to_owned(),
        pool: instance.tag(TAG_POOL).to_owned(),
        ..Launch::default()
    };
    let mut record = LaunchRecord::new(launch, instance.tag(TAG_CLUSTER), 0, now_ms);
    record.attempts = 1;
    record.instance_id.clone_from(&instance.instance_id);
    record.set_asked(CapacityType::Unspecified);
    record.set_phase(Phase::Launched);
    record
}

#[cfg(test)]
mod tests;
