//! Owners that are creating pods: how many of theirs are still to come, by the shape of these, and
//! how many go for them.
//!
//! Invariant: pure. An owner is read when kube-scheduler has failed a pod of it, and what is to
//! come only falls from then on: by each pod that comes, and to nothing once no pod has come for a
//! while, one comes that is unlike the others, or none of them is left. A pod that goes adds none:
//! the owner may have been scaled down.

mod rollouts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longshore_proto::types::v1::PodShape;
use longshore_proto::types::v1::object::Kind;

use rollouts::Rollouts;

use super::{Index, PodEntry, Source};
use crate::project::owner::Owner;

/// An owner is still creating pods while they come within this time of each other, in milliseconds:
/// controllers create hundreds a second, and busy ones pause for less.
const GAP_MS: i64 = 2_000;
/// An owner is not read again sooner than this, in milliseconds, whatever becomes of its pods.
const AGAIN_MS: i64 = 10_000;
const _: () = assert!(GAP_MS < AGAIN_MS);
/// Most owners that wait to be read. One that finds no room is asked for when it fares so with
/// another pod.
const UNREAD_MAX: usize = 64;
/// Most owners of which more pods are expected at one time.
const CREATING_MAX: usize = 256;

/// What is known of an owner that has pods.
#[derive(Debug, Default)]
struct Entry {
    /// Its pods.
    pods: usize,
    /// Those among them whose deletion has begun.
    leaving: usize,
    /// When the last of them came, by the steady clock.
    came_ms: i64,
    /// When it was last wanted to be read.
    asked_ms: Option<i64>,
    /// Shape of the pod that made it so.
    shape: String,
    /// Pods that are still to come.
    left: usize,
}

/// What counts of a pod for its owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    shape: &'a str,
    leaving: bool,
    failed: bool,
}

impl<'a> From<&'a PodEntry> for Member<'a> {
    fn from(pod: &'a PodEntry) -> Self {
        let failed = pod.waits() && pod.row.unschedulable;
        Self { shape: &pod.row.shape_id, leaving: pod.row.deleting, failed }
    }
}

/// All owners of pods.
#[derive(Debug, Default)]
pub(super) struct Owners {
    known: BTreeMap<Arc<Owner>, Entry>,
    /// Owners to be read.
    unread: BTreeSet<Arc<Owner>>,
    /// Owners that are being read or are to be.
    asked: BTreeSet<Arc<Owner>>,
    /// Owners of which more pods are expected.
    creating: BTreeSet<Arc<Owner>>,
    /// Deployments that replace their pods.
    rollouts: Rollouts,
    /// Shapes of which something else may be expected than before.
    changed: BTreeSet<String>,
}

impl Owners {
    /// The owner as others refer to it, so that it is kept once.
    pub(super) fn shared(&self, owner: Owner) -> Arc<Owner> {
        let owner = Arc::new(owner);
        self.known.get_key_value(&owner).map_or(owner, |(known, _)| Arc::clone(known))
    }

    /// A pod has come, or has changed from what it was `before`.
    fn see(
        &mut self,
        owner: &Arc<Owner>,
        (before, now): (Option<Member<'_>>, Member<'_>),
        now_ms: i64,
    ) {
        let entry = self.known.entry(Arc::clone(owner)).or_default();
        match before {
            Some(before) => entry.leaving -= usize::from(before.leaving),
            None => (entry.pods, entry.came_ms) = (entry.pods + 1, now_ms),
        }
        entry.leaving += usize::from(now.leaving);
        let left = match before {
            Some(before) if before.shape == now.shape => entry.left,
            None if entry.shape == now.shape => entry.left.saturating_sub(1),
            Some(_) | None => 0,
        };
        self.expect(owner, left);
        self.changed.extend(self.rollouts.moved(owner, now_ms));
        if now.failed && !before.is_some_and(|before| before.failed) {
            self.ask(owner, now.shape, now_ms);
        }
    }

    /// A pod is gone.
    fn lose(&mut self, owner: &Arc<Owner>, member: Member<'_>, now_ms: i64) {
        self.changed.extend(self.rollouts.moved(owner, now_ms));
        let Some(entry) = self.known.get_mut(owner) else { return };
        entry.pods -= 1;
        entry.leaving -= usize::from(member.leaving);
        if entry.pods == 0 {
            self.expect(owner, 0);
            self.answered(owner);
            self.known.remove(owner);
            self.unread.remove(owner);
        }
    }

    /// Has an owner read, unless it was just now.
    fn ask(&mut self, owner: &Arc<Owner>, shape: &str, now_ms: i64) {
        let full = self.unread.len() >= UNREAD_MAX;
        let Some(entry) = self.known.get_mut(owner).filter(|_| !full) else { return };
        if entry.asked_ms.is_none_or(|asked_ms| asked_ms + AGAIN_MS <= now_ms) {
            entry.asked_ms = Some(now_ms);
            if entry.left == 0 {
                self.changed.insert(std::mem::replace(&mut entry.shape, shape.to_owned()));
            }
            self.changed.insert(entry.shape.clone());
            self.unread.insert(Arc::clone(owner));
            self.asked.insert(Arc::clone(owner));
        }
    }

    /// Nothing is asked of an owner any more.
    fn answered(&mut self, owner: &Arc<Owner>) {
        let known = self.known.get(owner).filter(|_| self.asked.remove(owner));
        self.changed.extend(known.map(|entry| entry.shape.clone()));
    }

    /// The next owner to be read: none that has ceased to create pods meanwhile.
    fn take_unread(&mut self, now_ms: i64) -> Option<Arc<Owner>> {
        while let Some(owner) = self.unread.pop_first() {
            if self.known.get(&owner).is_some_and(|entry| entry.creates(now_ms)) {
                return Some(owner);
            }
            self.answered(&owner);
        }
        None
    }

    /// An owner has been read: how many unfinished pods it wants, none when it may not create what
    /// is like those that are there.
    fn read(&mut self, owner: &Arc<Owner>, wanted: Option<usize>, now_ms: i64) {
        self.answered(owner);
        // One that was not asked has come into being since: an answer about pods that have all gone
        // is none about these.
        let asked = |entry: &&Entry| entry.asked_ms.is_some();
        let Some(entry) = self.known.get(owner).filter(asked) else { return };
        let waits = owner.kind.waits_for_the_leaving();
        let here = if waits { entry.pods } else { entry.here() };
        let wanted = wanted.filter(|_| entry.creates(now_ms));
        self.expect(owner, wanted.unwrap_or(0).saturating_sub(here));
    }

    /// Other ReplicaSets of an owner's Deployment that have pods.
    fn older(&self, owner: &Owner) -> impl Iterator<Item = &Arc<Owner>> {
        let known = self.known.keys();
        known.filter(|other| other.uid != owner.uid && other.is_of_the_same_deployment(owner))
    }

    /// Expects so many more pods of an owner.
    fn expect(&mut self, owner: &Arc<Owner>, left: usize) {
        let full = self.creating.len() >= CREATING_MAX && !self.creating.contains(owner);
        let left = if full { 0 } else { left };
        let Some(entry) = self.known.get_mut(owner).filter(|entry| entry.left != left) else {
            return;
        };
        entry.left = left;
        self.changed.insert(entry.shape.clone());
        if left > 0 {
            self.creating.insert(Arc::clone(owner));
        } else {
            self.creating.remove(owner);
        }
    }

    /// Expects nothing any more of owners whose pods have ceased to come.
    fn tire(&mut self, now_ms: i64) {
        let tired =
            |owner: &&Arc<Owner>| self.known.get(*owner).is_none_or(|entry| !entry.creates(now_ms));
        let tired: Vec<_> = self.creating.iter().filter(tired).cloned().collect();
        tired.iter().for_each(|owner| self.expect(owner, 0));
        self.changed.extend(self.rollouts.tire(now_ms));
    }

    /// When the first of those that are expected will not be any more.
    fn due_ms(&self) -> Option<i64> {
        let creating = self.creating.iter().filter_map(|owner| self.known.get(owner));
        creating.map(|entry| entry.came_ms + GAP_MS).chain(self.rollouts.due_ms()).min()
    }

    /// Pods of a shape that are expected of all owners.
    fn coming(&self, shape: &str) -> u32 {
        let creating = self.creating.iter().filter_map(|owner| self.known.get(owner));
        let left: usize = creating.filter(|entry| entry.shape == shape).map(|e| e.left).sum();
        u32::try_from(left).unwrap_or(u32::MAX)
    }

    /// True while an owner is asked how many more pods of a shape are to come.
    fn counts(&self, shape: &str) -> bool {
        let mut asked = self.asked.iter().filter_map(|owner| self.known.get(owner));
        asked.any(|entry| entry.shape == shape)
    }

    /// A shape as the scheduler is told of it.
    pub(super) fn foretell(&self, shape: PodShape) -> PodShape {
        let (coming, counting) = (self.coming(&shape.shape_id), self.counts(&shape.shape_id));
        let going = self.rollouts.going(&self.known, &shape.shape_id);
        PodShape { coming, counting, going, ..shape }
    }
}

impl Entry {
    /// Its pods but for those whose deletion has begun.
    const fn here(&self) -> usize {
        self.pods - self.leaving
    }

    /// True while its pods come one after the other.
    const fn creates(&self, now_ms: i64) -> bool {
        now_ms < self.came_ms + GAP_MS
    }
}

impl Index {
    /// A pod has come, or has changed from what it was `before`.
    pub(super) fn see_member(&mut self, before: Option<&PodEntry>, uid: &str) {
        let Some(pod) = self.pods.get(uid).map(AsRef::as_ref) else { return };
        let same = before.filter(|before| before.owner == pod.owner);
        let left = before.filter(|before| before.owner != pod.owner);
        if let Some((left, owner)) = left.and_then(|left| Some((left, left.owner.as_ref()?))) {
            self.owners.lose(owner, left.into(), self.seen.steady_ms);
        }
        let Some(owner) = &pod.owner else { return self.tell_coming() };
        // What is there when the watcher starts has not just failed.
        let failed = Member::from(pod).failed && self.listed.contains(&Source::Pod);
        let now = Member { failed, ..Member::from(pod) };
        self.owners.see(owner, (same.map(Member::from), now), self.seen.steady_ms);
        self.tell_coming();
    }

    /// A pod is gone.
    pub(super) fn lose_member(&mut self, pod: &PodEntry) {
        if let Some(owner) = &pod.owner {
            self.owners.lose(owner, pod.into(), self.seen.steady_ms);
            self.tell_coming();
        }
    }

    /// True when an owner wants to be read.
    #[must_use]
    pub fn has_unread_owners(&self) -> bool {
        !self.owners.unread.is_empty()
    }

    /// The next owner to read, whose pods kube-scheduler fails while they come.
    pub fn take_unread_owner(&mut self) -> Option<Arc<Owner>> {
        let owner = self.owners.take_unread(self.seen.steady_ms);
        self.tell_coming();
        owner
    }

    /// An owner has been read; `wanted` is how many unfinished pods it wants, none when nothing is
    /// to be expected.
    pub fn owner_read(&mut self, owner: &Arc<Owner>, wanted: Option<usize>) {
        self.owners.read(owner, wanted, self.seen.steady_ms);
        self.tell_coming();
    }

    /// True when an owner's pods take the place of others of its Deployment.
    #[must_use]
    pub fn is_rollout(&self, owner: &Owner) -> bool {
        self.owners.older(owner).next().is_some()
    }

    /// The Deployment of an owner that creates pods has been read: of those that it replaces, so
    /// many stay until new ones are available.
    pub fn deployment_read(&mut self, newest: &Arc<Owner>, stay: usize) {
        let of = |owner: &Arc<Owner>| {
            let pod = self.pods.values().find(|pod| pod.owner.as_ref() == Some(owner))?;
            Some((Arc::clone(owner), pod.row.shape_id.to_string()))
        };
        let old = self.owners.older(newest).filter_map(of).collect();
        let changed = self.owners.rollouts.begin(newest, old, stay, self.seen.steady_ms);
        self.owners.changed.extend(changed);
        self.tell_coming();
    }

    /// When pods will have ceased to come or go that are expected to now, by the steady clock;
    /// none when none are expected to.
    #[must_use]
    pub fn expects_until_ms(&self) -> Option<i64> {
        self.owners.due_ms()
    }

    /// Expects no more pods of owners whose pods have ceased to come.
    pub fn expect_less(&mut self) {
        self.owners.tire(self.seen.steady_ms);
        self.tell_coming();
    }

    /// Shows what is expected of the shapes of which that has changed.
    fn tell_coming(&mut self) {
        for id in std::mem::take(&mut self.owners.changed) {
            let Some(used) = self.shapes.get_mut(id.as_str()) else { continue };
            used.shape = self.owners.foretell(std::mem::take(&mut used.shape));
            self.view.put(Kind::PodShape(used.shape.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
