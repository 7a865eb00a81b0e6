//! What is to be done, from what is recorded and what is there.
//!
//! Invariant: pure, and level not edge: the same ledger and inventory give the same actions however
//! they came about; an action under way is not asked for again. What is there and not wanted is
//! ended.

mod batches;

use std::collections::{BTreeMap, BTreeSet};

use longshore_proto::types::v1::{CapacityType, Launch};
use longshore_runtime::planted;

pub use batches::undecided;

use crate::cloud::{Instance, TAG_BATCH, TAG_CLAIM, TAG_CLUSTER, TAG_LAUNCH, TAG_POOL};
use crate::inventory::Inventory;
use crate::ledger::{Book, Failure, Key, LaunchRecord, Move, Phase, unclaimed_id};

/// How long finished launches are kept, in milliseconds: longer than any plan lives, so that a
/// repeated plan finds them.
pub const KEEP_FINISHED_MS: i64 = 3_600_000;

/// How far other hosts' clocks may be off, in milliseconds. Times that they set hold only beyond
/// it.
pub const SKEW_MAX_MS: i64 = 600_000;

/// Begins the made-up launch ids of instances that another autoscaler launched.
const ADOPTED: &str = "adopted-";

/// Begins what one calls the tagging of an instance.
const TAGGING: &str = "tag/";

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Ask EC2 for an instance; of launches that wait for the answer to one call, one stands for
    /// all.
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
    /// Write the tags of its launch on an instance that was launched with others.
    Tag {
        /// Instance.
        instance_id: String,
        /// Its launch.
        launch_id: String,
    },
    /// Take back that a call for several launches was about to be made: it was never recorded
    /// whole.
    Unasked(String),
    /// Drop a finished launch.
    Forget(String),
    /// Drop a call for several launches that is over.
    ForgetBatch(String),
}

/// What reconciliation looks at besides ledger and inventory.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// Launches and instances that something is being done about.
    pub busy: &'a BTreeSet<String>,
    /// Launches and instances that are to be left alone for a moment, since EC2 did not do as
    /// asked.
    pub waiting: &'a BTreeSet<String>,
}

/// The actions, launches in the order they were recorded first.
#[must_use]
pub fn reconcile(book: &Book, inventory: &Inventory, situation: &Situation<'_>) -> Vec<Action> {
    // Before the first listing of the term it is not known what the previous leader has done.
    if !inventory.complete() {
        return Vec::new();
    }
    let found = by_launch(inventory);
    let mut actions = Vec::new();
    for record in book.launches.values() {
        let id = record.launch_id();
        let found = found.get(id).map_or(&[][..], Vec::as_slice);
        let look = Look { record, found, book, inventory, situation };
        if !situation.busy.contains(id) {
            actions.extend(look.step().filter(|action| !waits(action, situation)));
            actions.extend(look.surplus().filter(|action| !waits(action, situation)));
        }
    }
    actions.extend(batches::calls(book, inventory, situation));
    let mut given = BTreeSet::new();
    for instance in inventory.iter() {
        if !instance.alive() || known(book, instance, situation) {
            continue;
        }
        if is_of_batch(instance) {
            actions.extend(batches::unclaimed(book, instance, situation, &mut given));
        } else {
            actions.push(Action::Import(Box::new(imported(instance, situation.now_ms))));
        }
    }
    actions
}

/// What one calls the tagging of an instance, beside its termination.
#[must_use]
pub fn tag_key(instance_id: &str) -> String {
    format!("{TAGGING}{instance_id}")
}

/// The instance whose tagging is called so.
#[must_use]
pub fn tagged_instance(key: &str) -> Option<&str> {
    key.strip_prefix(TAGGING)
}

/// Instances by the launch they stem from, those that are alive first.
fn by_launch(inventory: &Inventory) -> BTreeMap<&str, Vec<&Instance>> {
    let mut found = BTreeMap::<&str, Vec<&Instance>>::new();
    for instance in inventory.iter().filter(|instance| !instance.tag(TAG_LAUNCH).is_empty()) {
        found.entry(instance.tag(TAG_LAUNCH)).or_default().push(instance);
    }
    for instances in found.values_mut() {
        instances.sort_by_key(|instance| !instance.alive());
    }
    found
}

/// True for a call to EC2 about something that is to be left alone for a moment.
fn waits(action: &Action, situation: &Situation<'_>) -> bool {
    let id = match action {
        Action::Launch(id) => id.clone(),
        Action::Terminate { instance_id, .. } => instance_id.clone(),
        Action::Tag { instance_id, .. } => tag_key(instance_id),
        Action::Record(..)
        | Action::Import(_)
        | Action::Unasked(_)
        | Action::Forget(_)
        | Action::ForgetBatch(_) => return false,
    };
    situation.waiting.contains(&id) || situation.busy.contains(&id)
}

/// One launch, and what there is of it.
struct Look<'a> {
    record: &'a LaunchRecord,
    found: &'a [&'a Instance],
    book: &'a Book,
    inventory: &'a Inventory,
    situation: &'a Situation<'a>,
}

impl Look<'_> {
    fn step(&self) -> Option<Action> {
        let record = self.record;
        match record.phase() {
            Phase::Pending => self.pending(),
            Phase::Launched | Phase::Terminating => {
                if self.inventory.ended(&record.instance_id) {
                    let vanished = self.inventory.vanished(&record.instance_id);
                    return Some(self.record(Move::Gone { vanished }));
                }
                let instance = self.inventory.get(&record.instance_id);
                if record.phase() == Phase::Launched {
                    return instance.filter(|found| self.lacks_tags(found)).map(|_| self.tag());
                }
                instance.is_none_or(Instance::alive).then(|| self.terminate(&record.instance_id))
            }
            Phase::Terminated | Phase::Failed => {
                if let Some(instance) = self.back() {
                    let instance_id = instance.instance_id.clone();
                    return Some(self.record(Move::Found { instance_id }));
                }
                let old = record.changed_ms + KEEP_FINISHED_MS <= self.situation.now_ms;
                // While EC2 shows an instance, forgetting its launch would only import it again.
                let alive = self.found.iter().any(|instance| instance.alive());
                (old && !alive).then(|| Action::Forget(record.launch_id().to_owned()))
            }
        }
    }

    fn pending(&self) -> Option<Action> {
        let record = self.record;
        if let Some(instance) = self.found.first() {
            return Some(self.record(launched(instance)));
        }
        if record.outcome_unknown() && !record.batch_id.is_empty() {
            return self.unasked();
        }
        if record.outcome_unknown() {
            return Some(Action::Launch(record.launch_id().to_owned()));
        }
        if record.cancelled {
            return Some(self.record(cancelled()));
        }
        let late = self.situation.now_ms.saturating_sub(record.expire_ms);
        if record.attempts == 0 && late >= SKEW_MAX_MS {
            return Some(self.record(expired(record)));
        }
        Some(Action::Launch(record.launch_id().to_owned()))
    }

    /// A launch that waits for a call which was to be made for it and others. One that is not there
    /// was never made: whoever was about to was stopped before all of it was recorded.
    fn unasked(&self) -> Option<Action> {
        let batch_id = &self.record.batch_id;
        let there = self.book.batches.contains_key(batch_id)
            || self.book.unreadable.contains_key(&Key::Batch(batch_id.clone()));
        (!there).then(|| Action::Unasked(self.record.launch_id().to_owned()))
    }

    /// True when EC2 shows the instance without the tags of its launch, and it is known whose it
    /// is.
    fn lacks_tags(&self, instance: &Instance) -> bool {
        let told = !self.record.adopted && !self.record.claim().is_empty();
        told && instance.alive() && self.inventory.untagged(&instance.instance_id)
    }

    fn tag(&self) -> Action {
        let launch_id = self.record.launch_id().to_owned();
        Action::Tag { instance_id: self.record.instance_id.clone(), launch_id }
    }

    /// The instance of a finished launch, when it lives.
    fn back(&self) -> Option<&Instance> {
        if planted::is("S7") {
            return None;
        }
        if self.record.instance_id.is_empty() {
            return self.found.first().copied().filter(|instance| instance.alive());
        }
        self.inventory.get(&self.record.instance_id).filter(|instance| instance.alive())
    }

    /// Instances that live beside the one the launch led to: of several calls that got through, or
    /// copies of its tags. Nobody is told of them and no node may join as them.
    fn surplus(&self) -> impl Iterator<Item = Action> {
        let record = self.record;
        let settled = !record.instance_id.is_empty() && !planted::is("S8a");
        let others = self.found.iter().filter(move |instance| {
            settled && instance.alive() && instance.instance_id != record.instance_id
        });
        others.map(|instance| self.terminate(&instance.instance_id))
    }

    fn record(&self, step: Move) -> Action {
        Action::Record(self.record.launch_id().to_owned(), step)
    }

    fn terminate(&self, instance_id: &str) -> Action {
        let launch_id = self.record.launch_id().to_owned();
        Action::Terminate { instance_id: instance_id.to_owned(), launch_id }
    }
}

fn known(book: &Book, instance: &Instance, situation: &Situation<'_>) -> bool {
    let launch_id = instance.tag(TAG_LAUNCH);
    let by_launch = book.launches.contains_key(launch_id)
        || book.unreadable.contains_key(&Key::Launch(launch_id.to_owned()))
        || situation.busy.contains(launch_id);
    (!launch_id.is_empty() && by_launch)
        || book.of_instance(&instance.instance_id).is_some()
        || undecided(book, instance)
}

/// True for an instance of which only the call is known.
fn is_of_batch(instance: &Instance) -> bool {
    instance.tag(TAG_LAUNCH).is_empty() && !instance.tag(TAG_BATCH).is_empty()
}

fn launched(instance: &Instance) -> Move {
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

/// The record that an instance's tags amount to. One of another autoscaler gets an id of its own,
/// and so does one of a call for several launches of which nobody remembers whose it is.
#[must_use]
pub fn imported(instance: &Instance, now_ms: i64) -> LaunchRecord {
    let adopted = instance.tag(TAG_LAUNCH).is_empty() && instance.tag(TAG_BATCH).is_empty();
    let launch_id = if adopted {
        format!("{ADOPTED}{}", instance.instance_id)
    } else if is_of_batch(instance) {
        unclaimed_id(&instance.instance_id)
    } else {
        instance.tag(TAG_LAUNCH).to_owned()
    };
    let launch = Launch {
        launch_id,
        claim: instance.tag(TAG_CLAIM).to_owned(),
        pool: instance.tag(TAG_POOL).to_owned(),
        ..Launch::default()
    };
    let mut record = LaunchRecord::new(launch, instance.tag(TAG_CLUSTER), 0, now_ms);
    record.attempts = 1;
    record.adopted = adopted;
    instance.tag(TAG_BATCH).clone_into(&mut record.batch_id);
    record.instance_id.clone_from(&instance.instance_id);
    record.set_asked(CapacityType::Unspecified);
    record.set_phase(Phase::Launched);
    record
}

#[cfg(test)]
mod tests;
