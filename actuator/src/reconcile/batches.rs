//! Calls for several launches, and instances of which only their call is known.
//!
//! Invariant: an instance is left alone while a launch may yet get it; ended only when every launch
//! of its call is there to say that it has another, or none; and taken into the ledger otherwise,
//! so that whoever knows the claims decides.

use std::collections::BTreeSet;

use longshore_runtime::planted;

use super::{Action, KEEP_FINISHED_MS, Situation, imported, launched, waits};
use crate::cloud::{Instance, TAG_BATCH, TAG_LAUNCH};
use crate::inventory::Inventory;
use crate::ledger::{BatchRecord, Book, Key, LaunchRecord};

/// Calls that are to be looked at again, and those that are over for long.
pub(super) fn calls(book: &Book, inventory: &Inventory, situation: &Situation<'_>) -> Vec<Action> {
    let readable = book.batches.values().filter(|batch| !is_frozen(book, batch));
    readable.filter_map(|batch| call(book, inventory, (batch, situation))).collect()
}

/// One of the launches stands for all that wait for the answer.
fn call(
    book: &Book,
    inventory: &Inventory,
    (batch, situation): (&BatchRecord, &Situation<'_>),
) -> Option<Action> {
    let waiting: Vec<_> = batch.waiting(book).map(LaunchRecord::launch_id).collect();
    if let Some(first) = waiting.first() {
        let busy = waiting.iter().any(|id| situation.busy.contains(*id));
        let action = Action::Launch((*first).to_owned());
        return (!busy && !waits(&action, situation)).then_some(action);
    }
    let old = batch.made_ms + KEEP_FINISHED_MS <= situation.now_ms;
    let unclaimed = |instance: &Instance| {
        instance.alive()
            && instance.tag(TAG_BATCH) == batch.batch_id
            && book.of_instance(&instance.instance_id).is_none()
    };
    (old && !inventory.iter().any(unclaimed)).then(|| Action::ForgetBatch(batch.batch_id.clone()))
}

/// True when a launch of it cannot be read: it may have any of the instances.
fn is_frozen(book: &Book, batch: &BatchRecord) -> bool {
    batch.launch_ids.iter().any(|id| book.unreadable.contains_key(&Key::Launch(id.clone())))
}

/// True for an instance of a call for several launches that may be one's which still waits for the
/// answer. Nobody is told of it before that is decided.
#[must_use]
pub fn undecided(book: &Book, instance: &Instance) -> bool {
    let id = instance.tag(TAG_BATCH);
    if id.is_empty()
        || planted::is("S33b")
        || !instance.tag(TAG_LAUNCH).is_empty()
        || book.of_instance(&instance.instance_id).is_some()
    {
        return false;
    }
    let frozen = book.unreadable.contains_key(&Key::Batch(id.to_owned()));
    let waits =
        |batch: &BatchRecord| is_frozen(book, batch) || batch.waiting(book).next().is_some();
    frozen || book.batches.get(id).is_some_and(|batch| waits(batch))
}

/// What becomes of an instance that no launch is known to have and none waits for: of a call that
/// got through after it was given up, or a copy. `given` are launches that got one in this look.
pub(super) fn unclaimed(
    book: &Book,
    instance: &Instance,
    situation: &Situation<'_>,
    given: &mut BTreeSet<String>,
) -> Option<Action> {
    let import = || Action::Import(Box::new(imported(instance, situation.now_ms)));
    let Some(batch) = book.batches.get(instance.tag(TAG_BATCH)) else { return Some(import()) };
    let members: Vec<_> = batch.launch_ids.iter().filter_map(|id| book.launches.get(id)).collect();
    if members.len() < batch.launch_ids.len() {
        return Some(import());
    }
    let needs = |record: &&&std::sync::Arc<LaunchRecord>| {
        let id = record.launch_id();
        record.may_be_asked() && !situation.busy.contains(id) && !given.contains(id)
    };
    if let Some(record) = members.iter().find(needs) {
        let launch_id = record.launch_id().to_owned();
        given.insert(launch_id.clone());
        return Some(Action::Record(launch_id, launched(instance)));
    }
    let launch_id = batch.launch_ids.first().cloned().unwrap_or_default();
    let action = Action::Terminate { instance_id: instance.instance_id.clone(), launch_id };
    (!waits(&action, situation)).then_some(action)
}

#[cfg(test)]
mod tests;
