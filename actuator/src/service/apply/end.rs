//! Terminations: whether an instance is the claim's that names it, and what ending it amounts to.
//!
//! Invariant: a cluster ends what is recorded or tagged as its own, or what its claim names and
//! nothing that is recorded or tagged speaks against. What is lost may come back in parts: a record
//! or a tag that is empty says nothing, one that names somebody else is the last word.

use std::time::Duration;

use longshore_proto::capacity::v1::Refusal;
use longshore_proto::reason::Reason;
use longshore_proto::types::v1::Termination;
use longshore_runtime::planted;
use tokio::time::timeout;

use super::{Plan, frozen, refuse};
use crate::cloud::{Found, Instance, TAG_CLAIM, TAG_CLUSTER, TAG_LAUNCH};
use crate::inventory::cluster_name;
use crate::leader::{Leader, lock};
use crate::ledger::{Book, Draft, LaunchRecord, Move, Phase};
use crate::policy::Denied;

/// How long EC2 may take to say what there is of instances that are to end; whoever asks waits for
/// it, and asks again.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(10);

/// Instances that are to end with what the inventory has of each.
pub(super) fn with_instances(
    leader: &Leader,
    terminations: Vec<Termination>,
) -> Vec<(Termination, Option<Instance>)> {
    let inventory = leader.inventory.borrow();
    let known = |termination: Termination| {
        let instance = inventory.get(&termination.instance_id).cloned();
        (termination, instance)
    };
    terminations.into_iter().map(known).collect()
}

/// What EC2 says by id of instances that neither the inventory nor the ledger knows: those that
/// lost both their tags and their record.
pub(super) async fn look_up(
    leader: &Leader,
    terminations: &[(Termination, Option<Instance>)],
) -> Found {
    let ids = lost(&leader.ledger.book(), terminations);
    if ids.is_empty() {
        return Found::default();
    }
    match timeout(LOOK_UP_WITHIN, leader.cloud().instances_by_id(&ids)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => unanswered(&error.to_string()),
        Err(late) => unanswered(&late.to_string()),
    }
}

fn lost(book: &Book, terminations: &[(Termination, Option<Instance>)]) -> Vec<String> {
    let lost = terminations.iter().filter(|(asked, instance)| {
        instance.is_none() && !asked.instance_id.is_empty() && recorded(book, asked).is_none()
    });
    lost.map(|(asked, _)| asked.instance_id.clone()).collect()
}

fn unanswered(why: &str) -> Found {
    tracing::warn!(why, "instances without tags that are to end could not be looked up");
    Found::default()
}

/// Id of the record that a termination is about: by its launch, else by its instance.
fn recorded(book: &Book, asked: &Termination) -> Option<String> {
    if book.launches.contains_key(&asked.launch_id) {
        return Some(asked.launch_id.clone());
    }
    book.of_instance(&asked.instance_id).map(|record| record.launch_id().to_owned())
}

impl Plan {
    pub(super) fn terminate(
        &self,
        book: &Book,
        draft: &mut Draft,
        termination: Termination,
        instance: Option<&Instance>,
    ) -> Option<Refusal> {
        if let Some(frozen) = frozen(book, &termination.launch_id) {
            return Some(frozen);
        }
        let drafted = draft.launches.contains_key(&termination.launch_id);
        let id = recorded(book, &termination);
        let id = id.or_else(|| drafted.then(|| termination.launch_id.clone()));
        let Some(record) = id.and_then(|id| draft.launch(book, &id).cloned()) else {
            return self.terminate_unknown(book, draft, termination, instance);
        };
        if !self.is_of(&record, &termination, instance) {
            let Termination { instance_id, claim, .. } = termination;
            let message = format!(
                "instance {instance_id} of claim {claim:?} does not stem from launch {}, which \
                 led to {:?} for claim {:?} of cluster {:?}",
                record.launch_id(),
                record.instance_id,
                record.claim(),
                record.cluster_id
            );
            return Some(refuse(instance_id, Reason::LaunchMismatch, message));
        }
        // One that is asked for again ends nothing more.
        let again = record.finished() || record.phase() == Phase::Terminating;
        if let Some(denied) = (!again).then(|| self.permit_end()).and_then(Result::err) {
            return Some(refuse(termination.instance_id, Reason::Forbidden, denied.to_string()));
        }
        let alive = instance.filter(|found| found.alive()).map(|found| found.instance_id.clone());
        if record.cluster_id.is_empty() {
            draft.put(LaunchRecord { cluster_id: self.cluster_id.clone(), ..(*record).clone() });
        }
        // Legal in each of these phases. Reconciliation ends what is beside the launch's own
        // instance.
        for step in ending(&record, alive, termination.traceparent) {
            if let Err(illegal) = draft.step(book, record.launch_id(), &step, self.now_ms) {
                let (id, text) = (termination.instance_id, illegal.to_string());
                return Some(refuse(id, Reason::LaunchMismatch, text));
            }
        }
        None
    }

    /// Whether the cluster may end one more.
    fn permit_end(&self) -> Result<(), Denied> {
        lock(&self.rates).terminate(&self.limits, &self.cluster_id, self.now_ms)
    }

    /// True when what is recorded is the launch, or the instance, of the claim that a termination
    /// names.
    fn is_of(
        &self,
        record: &LaunchRecord,
        asked: &Termination,
        instance: Option<&Instance>,
    ) -> bool {
        let Termination { instance_id, launch_id, claim, .. } = asked;
        // A record that was made from tags of which some were missing names no cluster.
        let own = record.cluster_id == self.cluster_id || record.cluster_id.is_empty();
        let foreign = instance.is_some_and(|found| self.is_foreign(found));
        let named = record.instance_id == *instance_id || instance_id.is_empty();
        let tagged = instance.is_some_and(|found| self.stems(found, record.launch_id()));
        let lives = tagged && !planted::is("S7");
        let untold = record.claim().is_empty() && instance.is_none_or(|it| may_be_of(it, claim));
        let by_claim = !claim.is_empty() && (record.claim() == claim || untold);
        let by_launch = !record.adopted && record.launch_id() == launch_id;
        let by_claim = by_claim || self.is_nobodys(record, asked, instance);
        own && !foreign && (named || lives) && (by_launch || by_claim)
    }

    /// True for another autoscaler's instance that was never tagged with a claim, asked for as
    /// such: the launch of one that was stopped before it noted what came of it.
    fn is_nobodys(
        &self,
        record: &LaunchRecord,
        asked: &Termination,
        instance: Option<&Instance>,
    ) -> bool {
        let unnamed = asked.claim.is_empty() && asked.launch_id.is_empty();
        let own = record.adopted && record.cluster_id == self.cluster_id;
        let listed = instance.is_some_and(|found| {
            found.instance_id == record.instance_id && found.tag(TAG_CLAIM).is_empty()
        });
        unnamed && own && listed && record.claim().is_empty()
    }

    /// True when an instance's tags say that it stems from a launch of this cluster.
    fn stems(&self, instance: &Instance, launch_id: &str) -> bool {
        instance.tag(TAG_LAUNCH) == launch_id && instance.tag(TAG_CLUSTER) == self.cluster_id
    }

    /// True when an instance's tags say that it is another cluster's.
    fn is_foreign(&self, instance: &Instance) -> bool {
        let cluster = instance.tag(TAG_CLUSTER);
        !cluster.is_empty() && cluster != self.cluster_id
    }

    /// An instance that the ledger does not know. Its tags say whose it is, or nothing of it is
    /// left but what the claim says: then EC2 is asked by its id, and nothing that it shows may
    /// speak against the claim.
    fn terminate_unknown(
        &self,
        book: &Book,
        draft: &mut Draft,
        termination: Termination,
        listed: Option<&Instance>,
    ) -> Option<Refusal> {
        let Termination { instance_id, launch_id, claim, traceparent } = termination;
        let by_id = || self.found.instances.iter().find(|found| found.instance_id == instance_id);
        let seen = listed.or_else(by_id);
        let denied = !claim.is_empty() && self.found.unknown.contains(&instance_id);
        if !seen.map_or(denied, |found| self.agrees(book, found, &launch_id, &claim)) {
            let message = format!(
                "no launch {launch_id:?} is recorded, and instance {instance_id:?} cannot be told to be of \
                 it, of cluster {} and of claim {claim:?}: its tags name another, or EC2 could not be \
                 asked; give it its tags back or end it by hand, the claim goes then",
                self.cluster_id
            );
            let id = if instance_id.is_empty() { launch_id } else { instance_id };
            return Some(refuse(id, Reason::LaunchMismatch, message));
        }
        if let Err(denied) = self.permit_end() {
            return Some(refuse(instance_id, Reason::Forbidden, denied.to_string()));
        }
        let mut record = self.remembered(seen, &instance_id, &launch_id, &claim);
        record.termination_traceparent = traceparent;
        record.ending = true;
        record.set_phase(Phase::Terminating);
        draft.put(record);
        None
    }

    /// True when an instance is the claim's as far as its tags say: none of them names another.
    fn agrees(&self, book: &Book, instance: &Instance, launch_id: &str, claim: &str) -> bool {
        if self.stems(instance, launch_id) && !launch_id.is_empty() {
            return true;
        }
        let tagged = instance.tag(TAG_LAUNCH);
        let launched = tagged.is_empty() || tagged == launch_id;
        // The claim may have lost the id of its launch, and the instance not.
        let launched = launched || (launch_id.is_empty() && instance.tag(TAG_CLAIM) == claim);
        let facts = book.clusters.get(&self.cluster_id).and_then(|known| known.facts.as_ref());
        let called = |name| facts.is_some_and(|facts| facts.name == name);
        let own = match instance.tag(TAG_CLUSTER) {
            "" => cluster_name(instance).is_none_or(called),
            tagged => tagged == self.cluster_id,
        };
        own && launched && !claim.is_empty() && may_be_of(instance, claim)
    }

    /// The record of an instance that was lost, by its tags and by what its claim says where these
    /// are silent.
    fn remembered(
        &self,
        instance: Option<&Instance>,
        instance_id: &str,
        launch_id: &str,
        claim: &str,
    ) -> LaunchRecord {
        let mut known = instance.cloned().unwrap_or_else(|| Instance::unseen(instance_id));
        for (key, value) in
            [(TAG_LAUNCH, launch_id), (TAG_CLUSTER, &self.cluster_id), (TAG_CLAIM, claim)]
        {
            if known.tag(key).is_empty() && !value.is_empty() {
                known.tags.insert(key.to_owned(), value.to_owned());
            }
        }
        crate::reconcile::imported(&known, self.now_ms)
    }
}

/// True unless an instance is tagged with another claim. One that was not tagged with any is the
/// claim's that names it: Karpenter writes that tag some time after the launch.
fn may_be_of(instance: &Instance, claim: &str) -> bool {
    let tagged = instance.tag(TAG_CLAIM);
    tagged.is_empty() || tagged == claim
}

/// The moves that end a launch, whatever is recorded of it; `alive` is an instance of it that
/// lives.
fn ending(record: &LaunchRecord, alive: Option<String>, traceparent: String) -> Vec<Move> {
    let terminate = Move::Terminate { traceparent };
    match (record.phase(), alive) {
        (Phase::Pending, _) | (Phase::Failed, None) => vec![Move::Cancel],
        (Phase::Failed, Some(instance_id)) => vec![Move::Found { instance_id }],
        (Phase::Terminated, Some(instance_id)) if record.instance_id == instance_id => {
            vec![Move::Found { instance_id }, terminate]
        }
        (Phase::Launched | Phase::Terminating | Phase::Terminated, _) => vec![terminate],
    }
}

#[cfg(test)]
mod tests;
