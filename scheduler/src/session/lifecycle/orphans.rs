//! Instances of the cluster that no claim stands for.
//!
//! Invariant: one is ended only when the cluster's view is whole and settled, nothing that cannot be read
//! may be its claim, we launched it ourselves, and it has been without a claim for long: by EC2's clock, and
//! by what the session itself has seen.

use longshore_proto::capacity::v1::InstanceState;
use longshore_proto::types::v1::Termination;
use longshore_runtime::planted;

use super::{Due, Evidence, Step, World, instance_id};
use crate::wire::time_ms;

/// An instance without a claim is ended when it is older than this, and has been seen without one for as
/// long, in milliseconds. Longer than a claim takes from creation to the scheduler's view.
pub(super) const ORPHAN_AFTER_MS: i64 = 60 * 1000;
/// The same where a ready node of the cluster runs on the instance.
pub(super) const NODE_ORPHAN_AFTER_MS: i64 = 10 * 60 * 1000;

/// Key of the state that must not last.
pub(super) fn key(instance: &InstanceState) -> String {
    format!("orphan/{}", instance.instance_id)
}

impl World<'_> {
    /// Living instances that we launched and for which no claim is to be seen.
    pub(super) fn unclaimed(&self) -> impl Iterator<Item = &InstanceState> {
        let adopted = |instance: &InstanceState| {
            instance.adopted || instance.launch_id.is_empty() && !planted::is("S2")
        };
        let own = self.region.living_of(self.cluster_id);
        own.filter(move |instance| !adopted(instance) && !self.claims.contains_key(&instance.claim))
    }

    /// The ends of those that have been so for long enough.
    pub(super) fn orphans(&self) -> impl Iterator<Item = Due> {
        let frozen = self.tombstones.whole().is_some() || !self.settled;
        let frozen = frozen && !planted::is("S3");
        let due = self.unclaimed().filter(move |instance| !frozen && self.is_orphan(instance));
        due.map(|instance| Due {
            step: Step::Terminate(Termination {
                instance_id: instance.instance_id.clone(),
                launch_id: instance.launch_id.clone(),
                claim: instance.claim.clone(),
                traceparent: String::new(),
            }),
            evidence: Evidence::Absence(instance.instance_id.clone()),
        })
    }

    fn is_orphan(&self, instance: &InstanceState) -> bool {
        let launched_ms = instance.launch_time.as_ref().map_or(self.now_ms, time_ms);
        if self.now_ms - launched_ms <= ORPHAN_AFTER_MS {
            return false;
        }
        if planted::is("S3") {
            return true;
        }
        let ours = |provider_id: &String| instance_id(provider_id) == instance.instance_id;
        let node = self.nodes.iter().find(|(provider_id, _)| ours(provider_id));
        let serves = node.is_some_and(|(_, node)| node.ready);
        let wait_ms = if serves { NODE_ORPHAN_AFTER_MS } else { ORPHAN_AFTER_MS };
        let seen_ms = self.sightings.lasted_ms(&key(instance), self.session_ms);
        seen_ms >= wait_ms && !self.tombstones.hides_claim(&instance.claim)
    }
}
