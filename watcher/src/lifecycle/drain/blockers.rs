//! What keeps a node from being drained: for the scheduler, for the claim's conditions, for Events.
//!
//! Invariant: only what does not pass by itself is a blocker: a pod that ends within its grace is
//! none. The claim says so once it has lasted, so that an ordinary drain writes nothing.

use kube::ResourceExt as _;
use longshore_proto::time::timestamp;
use longshore_proto::types::v1::{Blocker, BlockingRule};

use super::{Step, is_late, is_protected};
use crate::api::NodeClaim;
use crate::api::keys::conditions;
use crate::index::{Index, Now, PodEntry};
use crate::names;

/// A pod may end this much later than it should, in milliseconds.
const LATE_AFTER_MS: i64 = 5_000;
/// What has lasted this long is written to the claim, in milliseconds.
const LASTS_MS: i64 = 10_000;
/// Most blockers that a claim names.
const NAMED_MAX: usize = 3;

/// What keeps the node of one claim.
pub(super) struct Blockers<'a> {
    claim: &'a NodeClaim,
    all: Vec<(i64, Blocker)>,
}

impl<'a> Blockers<'a> {
    /// Nothing yet.
    pub(super) const fn of(claim: &'a NodeClaim) -> Self {
        Self { claim, all: Vec::new() }
    }

    /// Since when the claim goes, in milliseconds since 1970.
    fn began_ms(&self) -> i64 {
        self.claim.metadata.deletion_timestamp.as_ref().map_or(0, |at| at.0.as_millisecond())
    }

    fn add(&mut self, since_ms: i64, rule: BlockingRule, object: String, message: String) {
        let since = Some(timestamp(since_ms));
        let owner = String::new();
        self.all.push((since_ms, Blocker { object, rule: rule.into(), owner, message, since }));
    }

    /// What cannot be read may be a pod on the node, or the node with all its pods.
    pub(super) fn unreadable(&mut self, object: &str) {
        let message = format!(
            "{object} cannot be read, so it is not known whether pods are left on the node; mend or \
             delete it"
        );
        self.add(self.began_ms(), BlockingRule::Unreadable, object.to_owned(), message);
    }

    /// Pods that do not leave by themselves.
    pub(super) fn of_pods(&mut self, index: &Index, waiting: &[&PodEntry], now: Now) {
        for pod in waiting {
            let Some((since_ms, rule, message)) = self.of_pod(index, pod, now) else { continue };
            let object = format!("Pod/{}/{}", pod.row.namespace, pod.row.name);
            self.add(since_ms, rule, object, message);
            if let (Some((_, blocker)), Some(shape)) =
                (self.all.last_mut(), index.shape(&pod.row.shape_id))
            {
                blocker.owner.clone_from(&shape.owner);
            }
        }
    }

    fn of_pod(
        &self,
        index: &Index,
        pod: &PodEntry,
        now: Now,
    ) -> Option<(i64, BlockingRule, String)> {
        if pod.row.deleting {
            let by_ms = pod.facts.deletion.as_ref()?.by_ms;
            let message = "it should have ended, and its kubelet has not said that it has; look at \
                           its containers and its node";
            let late = is_late(&pod.facts, LATE_AFTER_MS, now);
            return late.then(|| (by_ms, BlockingRule::Stuck, message.to_owned()));
        }
        if is_protected(pod, now.wall_ms) {
            let message = format!(
                "it refuses eviction by its annotation {} or {}; remove that, or wait until the pod \
                 ends",
                names::DO_NOT_DISRUPT,
                names::DO_NOT_EVICT
            );
            return Some((self.began_ms(), BlockingRule::DoNotDisrupt, message));
        }
        let refusal = index.refusal(&pod.row.uid)?;
        Some((refusal.since_ms, refusal.rule, refusal.message.clone()))
    }

    /// Volumes that are waited for, as VolumeAttachment and PersistentVolume.
    pub(super) fn of_volumes<'v>(
        &mut self,
        attached: impl Iterator<Item = &'v (&'v str, &'v str)>,
    ) {
        for (name, volume) in attached {
            let message = format!(
                "volume {volume} is still attached; its pods cannot start elsewhere until it is detached"
            );
            let object = format!("VolumeAttachment/{name}");
            self.add(self.began_ms(), BlockingRule::VolumeAttached, object, message);
        }
    }

    /// What is to be done about them: tell the scheduler what it does not know, and people what has
    /// lasted.
    pub(super) fn told(mut self, index: &Index, now_ms: i64) -> Vec<Step> {
        self.all.sort_by(|(a_ms, a), (b_ms, b)| (a_ms, &a.object).cmp(&(b_ms, &b.object)));
        let claim = self.claim.name_any();
        let mut steps = Vec::new();
        let lasts = self.all.iter().take_while(|(since_ms, _)| now_ms - since_ms >= LASTS_MS);
        let lasting: Vec<&Blocker> = lasts.map(|(_, blocker)| blocker).collect();
        steps.extend(self.condition(&lasting));
        steps.extend(self.all.iter().filter_map(|(_, blocker)| event(&claim, blocker)));
        let blockers: Vec<Blocker> = self.all.into_iter().map(|(_, blocker)| blocker).collect();
        if index.blockers(&claim) != blockers.as_slice() {
            steps.push(Step::NoteBlockers { claim, blockers });
        }
        steps
    }

    /// The condition that names them, unless the claim has it already.
    fn condition(&self, lasting: &[&Blocker]) -> Option<Step> {
        let first = lasting.first()?;
        let (kind, reason) = match first.rule() {
            BlockingRule::VolumeAttached => {
                (conditions::VOLUMES_DETACHED, "AwaitingVolumeDetachment")
            }
            BlockingRule::Unspecified
            | BlockingRule::DoNotDisrupt
            | BlockingRule::Budget
            | BlockingRule::TwoBudgets
            | BlockingRule::Stuck
            | BlockingRule::Unreadable => (conditions::DRAINED, "Draining"),
        };
        let text = |blocker: &&Blocker| format!("{}: {}", blocker.object, blocker.message);
        let named: Vec<String> = lasting.iter().take(NAMED_MAX).map(text).collect();
        let mut message = named.join("; ");
        if lasting.len() > NAMED_MAX {
            message += &format!("; and {} more", lasting.len() - NAMED_MAX);
        }
        let mut said = self.claim.status.iter().flat_map(|status| &status.conditions);
        let known = said.any(|c| c.type_ == kind && (c.status == "True" || c.message == message));
        let claim = self.claim.name_any();
        (!known).then_some(Step::SayKept { claim, kind, reason, message })
    }
}

/// The Event about one of them; evictions that are refused are told where they are tried.
fn event(claim: &str, blocker: &Blocker) -> Option<Step> {
    let reason = match blocker.rule() {
        BlockingRule::Unspecified | BlockingRule::Budget | BlockingRule::TwoBudgets => return None,
        BlockingRule::DoNotDisrupt | BlockingRule::Stuck | BlockingRule::Unreadable => {
            "FailedDraining"
        }
        BlockingRule::VolumeAttached => "AwaitingVolumeDetachment",
    };
    let (claim, object) = (claim.to_owned(), blocker.object.clone());
    let note = format!("{object}: {}", blocker.message);
    Some(Step::Blocked { claim, object, reason, note })
}
