//! Claims that begin to go, and claims that are gone.
//!
//! Invariant: looked at after every step in which anything of the cluster has changed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::going::{INTERRUPTED, reason_of};
use super::pods::moment_ms;
use super::{CLAIMS, CLASSES, Judge, POOLS, Seen};
use crate::clock::EPOCH_MS;
use crate::region::Record;

/// Reason of a deletion that rests on the instance's absence.
pub(super) const GONE: &str = "InstanceTerminated";

/// From a pool's deletion to the last claim that a plan of before makes for it, in milliseconds.
const POOL_GOES_MS: i64 = 150_000;

impl Judge {
    /// Looks at all claims.
    pub fn look(&self) {
        self.look_at_journals();
        for cluster in &self.clusters {
            self.note_ailing(cluster);
            let revisions = [CLAIMS, POOLS, CLASSES].map(|kind| cluster.handle.revision_of(kind));
            let before = self.lock().revisions.insert(cluster.label.clone(), revisions);
            if before != Some(revisions) {
                self.look_at(cluster);
            }
        }
    }

    fn look_at(&self, cluster: &Seen) {
        self.note_limits(cluster);
        self.note_sizes(cluster);
        self.note_classes(cluster);
        let (mut fresh, mut going, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        {
            let mut state = self.lock();
            let before = state.claims.remove(&cluster.label).unwrap_or_default();
            let mut now = BTreeMap::new();
            // Few claims change between two looks: only what begins to go is copied.
            cluster.handle.visit(CLAIMS, |claim| {
                let name = claim["metadata"]["name"].as_str().unwrap_or_default();
                let deleting = !claim["metadata"]["deletionTimestamp"].is_null();
                let known = before.get(name).copied();
                if known.is_none() {
                    state.ever.insert((cluster.label.clone(), name.to_owned()));
                    fresh.push((name.to_owned(), pool_of(claim)));
                }
                if deleting && known != Some(true) {
                    going.push(claim.clone());
                }
                now.insert(name.to_owned(), deleting);
            });
            gone.extend(before.into_iter().filter(|(name, _)| !now.contains_key(name)));
            state.claims.insert(cluster.label.clone(), now);
        }
        fresh.iter().for_each(|(name, pool)| self.of_a_pool_that_stays(cluster, name, pool));
        going.iter().for_each(|claim| self.is_going(cluster, claim));
        gone.iter().for_each(|(name, went)| self.is_gone(cluster, name, *went));
    }

    /// A claim is new: its pool must not have been on its way out for long.
    fn of_a_pool_that_stays(&self, cluster: &Seen, name: &str, pool: &str) {
        let mut since = None;
        cluster.handle.visit(POOLS, |found| {
            if found["metadata"]["name"] == pool {
                since = moment_ms(&found["metadata"]["deletionTimestamp"]);
            }
        });
        let going_ms = since.map(|since_ms| EPOCH_MS + self.journal.elapsed_ms() - since_ms);
        if going_ms.is_some_and(|going_ms| going_ms > POOL_GOES_MS) {
            let text = format!("claim {name} of {}: {pool} has been going", cluster.label);
            self.violate("a pool that goes got a node", text);
        }
    }

    fn is_going(&self, cluster: &Seen, claim: &Value) {
        let name = claim["metadata"]["name"].as_str().unwrap_or_default();
        let by_user = (cluster.label.clone(), name.to_owned());
        if self.lock().deleted_by_users.contains(&by_user) || is_orphan(cluster, claim) {
            return;
        }
        let reason = reason_of(claim);
        self.journal.note(&format!("claim {name} of {} begins to go: {reason}", cluster.label));
        self.within_budget(cluster, claim, &reason);
        self.is_empty(cluster, claim, &reason);
        self.ails(cluster, claim, &reason);
        let Some((running, announced)) = self.instance_of(cluster, name) else { return };
        let denied = self.is_denied(cluster, name);
        self.within_breaker(cluster, name, &reason, !denied);
        if running && reason == GONE && !denied {
            let text = format!("claim {name} of {} goes as {reason}; it runs", cluster.label);
            self.violate("a running instance was taken for gone", text);
        }
        if running && reason == INTERRUPTED && !announced {
            let text =
                format!("claim {name} of {} goes as {reason}; nobody said so", cluster.label);
            self.violate("an interruption was imagined", text);
        }
        if running && reason.is_empty() {
            let text = format!("claim {name} of {} goes without a reason", cluster.label);
            self.violate("ended without a reason", text);
        }
    }

    fn is_gone(&self, cluster: &Seen, name: &str, went: bool) {
        let by_user = (cluster.label.clone(), name.to_owned());
        let by_user = self.lock().deleted_by_users.contains(&by_user);
        // Between two looks it began to go and went: nothing but its instance's absence is as
        // quick.
        if !went && !by_user && self.is_denied(cluster, name) {
            self.within_breaker(cluster, name, GONE, false);
        }
        self.journal.note(&format!("claim {name} of {} is gone", cluster.label));
        if let Some((true, _)) = self.instance_of(cluster, name)
            && !self.is_denied(cluster, name)
        {
            let text = format!("claim {name} of {} was let go; its instance runs", cluster.label);
            self.violate("released while the instance runs", text);
        }
    }

    /// Whether EC2 has denied the instance of a claim.
    fn is_denied(&self, cluster: &Seen, claim: &str) -> bool {
        let state = self.lock();
        let owner = (cluster.name.clone(), claim.to_owned());
        state.denied.iter().any(|id| state.owners.get(id) == Some(&owner))
    }

    /// When EC2 takes back the instance of a claim, where it has announced that.
    pub(super) fn reclaimed_ms(&self, cluster: &Seen, claim: &str) -> Option<i64> {
        let moments = self.of_records(cluster, claim, |record| record.reclaimed_ms);
        moments.into_iter().flatten().min()
    }

    /// Whether the instance of a claim runs, and whether EC2 has announced its end.
    fn instance_of(&self, cluster: &Seen, claim: &str) -> Option<(bool, bool)> {
        let said = |record: &Record| (record.alive(), record.announced_ms.is_some());
        let found = self.of_records(cluster, claim, said).into_iter();
        found.reduce(|one, other| (one.0 || other.0, one.1 || other.1))
    }

    /// What EC2's records of a claim's instances say, but for copies of others.
    fn of_records<T>(&self, cluster: &Seen, claim: &str, said: impl Fn(&Record) -> T) -> Vec<T> {
        let Some(region) = self.regions.get(cluster.site) else { return Vec::new() };
        let owner = (cluster.name.clone(), claim.to_owned());
        let copies = self.lock().copies.clone();
        region.with(|model, _| {
            let found = model.instances.values();
            let found = found.filter(|record| !copies.contains(&record.seen.instance_id));
            let found = found.filter(|record| self.owner(&record.seen.instance_id) == owner);
            found.map(said).collect()
        })
    }
}

/// Whether the pool that owns a claim is gone, so that the cluster's own garbage collector deletes
/// it.
fn is_orphan(cluster: &Seen, claim: &Value) -> bool {
    let owner = &claim["metadata"]["ownerReferences"][0]["uid"];
    let mut found = owner.is_null();
    cluster.handle.visit(POOLS, |pool| found |= pool["metadata"]["uid"] == *owner);
    !found
}

/// The pool of a claim.
pub(super) fn pool_of(claim: &Value) -> String {
    claim["metadata"]["labels"]["karpenter.sh/nodepool"].as_str().unwrap_or_default().to_owned()
}
