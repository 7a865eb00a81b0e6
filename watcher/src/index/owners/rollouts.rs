//! Deployments that replace their pods: how many of the old ones are about to be deleted.
//!
//! Invariant: pure. A rollout is known from when its Deployment was read, which is when
//! kube-scheduler had failed a new pod of it. What is about to go only falls from then on, with
//! each old pod whose deletion begins, and is nothing once no pod of it has come or gone for a
//! while: the controller may have been told otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Entry, GAP_MS};
use crate::project::owner::Owner;

/// All owners of pods, as far as they are known here.
type Known = BTreeMap<Arc<Owner>, Entry>;

/// A Deployment that replaces its pods.
#[derive(Debug)]
struct Rollout {
    /// Its older ReplicaSets, each with the shape of its pods.
    old: Vec<(Arc<Owner>, String)>,
    /// So many of their pods at least stay until new ones are available.
    stay: usize,
    /// When one of theirs last changed, by the steady clock.
    moved_ms: i64,
}

/// All rollouts under way, by the ReplicaSet that is creating pods.
#[derive(Debug, Default)]
pub(super) struct Rollouts(BTreeMap<Arc<Owner>, Rollout>);

impl Rollouts {
    /// A Deployment has been read while `newest` creates pods. Returns shapes of which something
    /// else may be about to go than before.
    pub(super) fn begin(
        &mut self,
        newest: &Arc<Owner>,
        old: Vec<(Arc<Owner>, String)>,
        stay: usize,
        now_ms: i64,
    ) -> Vec<String> {
        let mut changed: Vec<String> = old.iter().map(|(_, shape)| shape.clone()).collect();
        changed.extend(self.end(|owner, _| owner.is_of_the_same_deployment(newest)));
        self.0.insert(Arc::clone(newest), Rollout { old, stay, moved_ms: now_ms });
        changed
    }

    /// A pod of an owner has come, has changed or is gone. Returns shapes as [`Rollouts::begin`]
    /// does.
    pub(super) fn moved(&mut self, owner: &Arc<Owner>, now_ms: i64) -> Vec<String> {
        let mut changed = Vec::new();
        for (newest, rollout) in &mut self.0 {
            let old = rollout.old.iter().find(|(old, _)| old == owner);
            if newest == owner || old.is_some() {
                rollout.moved_ms = now_ms;
            }
            changed.extend(old.map(|(_, shape)| shape.clone()));
        }
        changed
    }

    /// Rollouts whose pods have ceased to come and go are none any more. Returns shapes as
    /// [`Rollouts::begin`] does.
    pub(super) fn tire(&mut self, now_ms: i64) -> Vec<String> {
        self.end(|_, rollout| rollout.moved_ms + GAP_MS <= now_ms)
    }

    fn end(&mut self, over: impl Fn(&Owner, &Rollout) -> bool) -> Vec<String> {
        let mut changed = Vec::new();
        self.0.retain(|newest, rollout| {
            let over = over(newest, rollout);
            if over {
                changed.extend(rollout.old.iter().map(|(_, shape)| shape.clone()));
            }
            !over
        });
        changed
    }

    /// When the first of them will be none any more.
    pub(super) fn due_ms(&self) -> Option<i64> {
        self.0.values().map(|rollout| rollout.moved_ms + GAP_MS).min()
    }

    /// Pods of a shape that are about to be deleted.
    pub(super) fn going(&self, known: &Known, shape: &str) -> u32 {
        let all = self.0.values().map(|rollout| rollout.going(known, shape));
        u32::try_from(all.sum::<usize>()).unwrap_or(u32::MAX)
    }
}

impl Rollout {
    fn going(&self, known: &Known, shape: &str) -> usize {
        let here = |owner| known.get(owner).map_or(0, Entry::here);
        let all: usize = self.old.iter().map(|(owner, _)| here(owner)).sum();
        let mut left = all.saturating_sub(self.stay);
        let mut of_shape = 0;
        for (owner, own) in &self.old {
            let count = here(owner).min(left);
            left -= count;
            of_shape += if own == shape { count } else { 0 };
        }
        of_shape
    }
}
