//! Instances of the cluster that no claim stands for.
//!
//! Invariant: one is ended only when the cluster's view is whole and settled, nothing that cannot
//! be read may be its claim, and it has been without a claim for long: by EC2's clock, and by what
//! the session itself has seen. Of those that another autoscaler launched, one on which a node
//! serves is left alone.

use longshore_proto::capacity::v1::InstanceState;
use longshore_proto::provider_id::instance_id;
use longshore_proto::types::v1::Termination;
use longshore_runtime::planted;

use super::super::joined::Joined;
use super::super::unclaimed::{self, is_adopted};
use super::{Due, Evidence, Step, World};
use crate::wire::time_ms;

/// An instance without a claim is ended when it is older than this, and has been seen without one
/// for as long, in milliseconds. Longer than a claim takes from creation to the scheduler's view.
pub(super) const ORPHAN_AFTER_MS: i64 = 60 * 1000;
/// The same of what another autoscaler launched: as often as Karpenter looks for such.
pub(super) const ADOPTED_ORPHAN_AFTER_MS: i64 = 2 * 60 * 1000;
/// The same where a node of the cluster serves on the instance: one that is ready, and was let into
/// service.
pub(super) const NODE_ORPHAN_AFTER_MS: i64 = 10 * 60 * 1000;

/// Key of the state that must not last.
pub(super) fn key(instance: &InstanceState) -> String {
    format!("orphan/{}", instance.instance_id)
}

impl World<'_> {
    /// Living instances for which no claim is to be seen, and that may end for that.
    pub(super) fn unclaimed(&self) -> impl Iterator<Item = &InstanceState> {
        let found = unclaimed::unclaimed(self.cluster_id, self.claims, self.region);
        found.filter(|instance| !self.is_left_alone(instance))
    }

    /// True for what another autoscaler launched when a node serves on it. People may have taken
    /// its claim away to keep it, and the other autoscaler would have ended it already, had it run
    /// since.
    fn is_left_alone(&self, instance: &InstanceState) -> bool {
        let open = self.node_on(instance).is_some_and(|node| node.open);
        is_adopted(instance) && open && !planted::is("S2")
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
            evidence: self.evidence(instance),
        })
    }

    /// What speaks against an orphan: that the claim which it is tagged with has another instance,
    /// which lives; or nothing but the absence of its claim.
    fn evidence(&self, instance: &InstanceState) -> Evidence {
        let tagged = self.claims.get(&instance.claim);
        let own = tagged.map(|claim| instance_id(&claim.provider_id)).unwrap_or_default();
        if self.region.living_of(self.cluster_id).any(|other| other.instance_id == own) {
            Evidence::Told
        } else {
            Evidence::Absence(instance.instance_id.clone())
        }
    }

    fn is_orphan(&self, instance: &InstanceState) -> bool {
        let launched_ms = instance.launch_time.as_ref().map_or(self.now_ms, time_ms);
        if self.now_ms - launched_ms <= ORPHAN_AFTER_MS {
            return false;
        }
        if planted::is("S3") {
            return true;
        }
        let serves = self.node_on(instance).is_some_and(|node| node.ready && node.open);
        let adopted = is_adopted(instance) && !planted::is("S2");
        let wait_ms = match (serves, adopted) {
            (true, _) => NODE_ORPHAN_AFTER_MS,
            (false, true) => ADOPTED_ORPHAN_AFTER_MS,
            (false, false) => ORPHAN_AFTER_MS,
        };
        let seen_ms = self.sightings.lasted_ms(&key(instance), self.session_ms);
        // One of our launches is tagged with its claim from the beginning.
        let hidden = match adopted {
            true => self.tombstones.hides_claims(),
            false => self.tombstones.hides_claim(&instance.claim),
        };
        seen_ms >= wait_ms && !hidden
    }

    fn node_on(&self, instance: &InstanceState) -> Option<&Joined> {
        let on = |provider_id: &String| instance_id(provider_id) == instance.instance_id;
        self.nodes.iter().find(|(provider_id, _)| on(provider_id)).map(|(_, node)| node)
    }
}
