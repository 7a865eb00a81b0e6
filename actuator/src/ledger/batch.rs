//! One call to EC2 for several launches, and which of its instances is whose.
//!
//! Invariant: a batch is recorded after each of its launches: one that is there has all of them,
//! and a launch that waits for one that is not there was never asked for. What it says never
//! changes. No instance is given to two launches, and no launch gets two.

use std::collections::BTreeSet;

use longshore_runtime::planted;
use sha2::{Digest, Sha256};

use super::book::{Book, Draft};
use super::record::{BatchRecord, LaunchRecord, Phase};
use super::state::Move;
use crate::cloud::Order;

/// Most launches in one call. EC2 takes thousands; what one lost answer, one refusal or one killed
/// process is about stays small, and so does its record: 10 KiB of ids.
pub const LAUNCHES_PER_CALL_MAX: usize = 200;

/// Hexadecimal digits of a batch's id: enough that two never meet, and few enough for a client
/// token.
const ID_DIGITS: usize = 32;

/// Begins the made-up launch ids of instances of which it is not known which launch of their batch
/// they are for.
const UNCLAIMED: &str = "unclaimed-";

impl BatchRecord {
    /// The call.
    #[must_use]
    pub fn call(&self) -> Order {
        let count = u32::try_from(self.launch_ids.len()).unwrap_or(u32::MAX);
        let order = self.order.clone().unwrap_or_default();
        order.call(self.batch_id.clone(), self.capacity_type(), count)
    }

    /// Its launches that wait for the answer, in order.
    pub fn waiting<'a>(&'a self, book: &'a Book) -> impl Iterator<Item = &'a LaunchRecord> {
        let known = self.launch_ids.iter().filter_map(|id| book.launches.get(id));
        known.map(|record| &**record).filter(|record| record.waits_for(&self.batch_id))
    }
}

/// Id of the next call for these launches. It stands for exactly these at exactly their attempts:
/// the same launches asked for again by somebody who lost the ledger get the same id, and with it
/// the same answer.
#[must_use]
pub fn batch_id<'a>(launches: impl IntoIterator<Item = &'a LaunchRecord>) -> String {
    let mut hash = Sha256::new();
    for launch in launches {
        hash.update(format!("{}-{}\n", launch.launch_id(), launch.attempts + 1));
    }
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("b-{}", digits.chars().take(ID_DIGITS).collect::<String>())
}

/// The launch id under which an instance of a batch is known while nobody can tell whose it is.
#[must_use]
pub fn unclaimed_id(instance_id: &str) -> String {
    format!("{UNCLAIMED}{instance_id}")
}

/// The whole outcome of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Instances that it led to, those that are to be taken first in front.
    pub instance_ids: Vec<String>,
    /// Request id; empty when they were found by their tags.
    pub ec2_request_id: String,
}

/// What came of a call for each of its launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Awarded {
    /// Launches with the instance that each has got.
    pub launched: Vec<(String, String)>,
    /// Launches for which there is none: their call is over.
    pub refused: Vec<String>,
    /// Made-up launches of instances that are claimed now.
    pub dropped: Vec<String>,
}

/// Gives the instances of an answer that no record has yet to the launches that wait for it, in
/// order of their ids, wanted ones first. The others are refused.
pub fn award(
    book: &Book,
    draft: &mut Draft,
    (token, launch_ids): (&str, &[String]),
    answer: &Answer,
    now_ms: i64,
) -> Awarded {
    let mut waiting: Vec<_> = launch_ids
        .iter()
        .filter_map(|id| draft.launch(book, id))
        .filter(|record| record.outcome_unknown() && record.client_token() == token)
        .map(|record| (record.cancelled, record.launch_id().to_owned()))
        .collect();
    waiting.sort();
    let mut free = free(book, draft, &answer.instance_ids).into_iter();
    let mut awarded = Awarded::default();
    for (_, launch_id) in waiting {
        let Some(instance_id) = free.next() else {
            // Legal: it waits.
            let _ = draft.step(book, &launch_id, &Move::Refused { exhausted: false }, now_ms);
            awarded.refused.push(launch_id);
            continue;
        };
        let step = Move::Launched {
            instance_id: instance_id.clone(),
            ec2_request_id: answer.ec2_request_id.clone(),
        };
        let _ = draft.step(book, &launch_id, &step, now_ms);
        awarded.dropped.extend(claim(book, draft, (&launch_id, &instance_id), now_ms));
        awarded.launched.push((launch_id, instance_id));
    }
    awarded
}

/// Those that no record has. One that was taken into the ledger for want of knowing whose it is may
/// be claimed.
fn free(book: &Book, draft: &Draft, instance_ids: &[String]) -> Vec<String> {
    let drafted: BTreeSet<_> =
        draft.launches.values().flatten().map(|record| record.instance_id.as_str()).collect();
    let taken = |id: &String| {
        let record = book.of_instance(id).and_then(|r| draft.launch(book, r.launch_id()));
        let held = record.is_some_and(|record| !may_be_claimed(record));
        held || (record.is_none() && drafted.contains(id.as_str()))
    };
    let free = instance_ids.iter().filter(|id| !taken(id) || planted::is("S33"));
    free.cloned().collect()
}

/// True for a record that was only made up, and whose instance nobody has asked to end.
fn may_be_claimed(record: &LaunchRecord) -> bool {
    record.phase() == Phase::Launched && record.launch_id() == unclaimed_id(&record.instance_id)
}

impl Book {
    /// True for an instance that no launch is recorded to have.
    #[must_use]
    pub fn may_be_claimed(&self, instance_id: &str) -> bool {
        self.of_instance(instance_id).is_none_or(|record| may_be_claimed(record))
    }
}

/// Drops the made-up launch of an instance, with what was announced of it handed on.
fn claim(
    book: &Book,
    draft: &mut Draft,
    (launch_id, instance_id): (&str, &str),
    now_ms: i64,
) -> Option<String> {
    let made_up = unclaimed_id(instance_id);
    let announced = draft.launch(book, &made_up)?.interruptions.clone();
    for interruption in announced {
        let step = Move::Interrupted { kind: interruption.kind(), time_ms: interruption.time_ms };
        let _ = draft.step(book, launch_id, &step, now_ms);
    }
    draft.launches.insert(made_up.clone(), None);
    Some(made_up)
}

#[cfg(test)]
mod tests;
