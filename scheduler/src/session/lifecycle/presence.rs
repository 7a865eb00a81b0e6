//! Whether the instance of a claim is there, as far as the region has said so.
//!
//! Invariant: gone is only what the actuator calls terminated. What it does not list is unknown,
//! however old it is: an instance may have been launched by somebody else, or be listed late.

use longshore_proto::capacity::v1::{InstancePhase, InstanceState, LaunchPhase, LaunchState};
use longshore_proto::provider_id::instance_id;
use longshore_proto::types::v1::NodeClaim;
use longshore_runtime::planted;

use super::World;

/// What is known of a claim's instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is there, or may come yet.
    Alive,
    /// It has ended, and somebody saw that.
    Ended,
    /// EC2 does not know it any more, and nobody saw it end.
    Vanished,
    /// None was ever asked for, as far as the region knows.
    Never,
    /// Nothing is known of it.
    Unknown,
}

impl World<'_> {
    /// The instance of a claim, when the region lists one.
    pub(super) fn instance(&self, claim: &NodeClaim) -> Option<&InstanceState> {
        let instances = &self.region.instances;
        let recorded = instances.get(instance_id(&claim.provider_id));
        let launch = self.region.launches.get(&claim.launch_id);
        let launched = || instances.get(launch.map(|launch| launch.instance_id.as_str())?);
        let adopted = || {
            let mut own = self.region.instances_of(self.cluster_id);
            let orphaned = claim.launch_id.is_empty() && claim.provider_id.is_empty();
            orphaned.then(|| own.find(|instance| instance.claim == claim.name)).flatten()
        };
        recorded.or_else(launched).or_else(adopted)
    }

    /// What is known of a claim's instance.
    pub(super) fn presence(&self, claim: &NodeClaim) -> Presence {
        if let Some(instance) = self.instance(claim) {
            let over = instance.phase() == InstancePhase::Terminated;
            return match (over, instance.vanished && !planted::is("S4")) {
                (false, _) => Presence::Alive,
                (true, false) => Presence::Ended,
                (true, true) => Presence::Vanished,
            };
        }
        let launch = self.region.launches.get(&claim.launch_id).map(LaunchState::phase);
        let unrecorded = claim.provider_id.is_empty();
        match launch {
            Some(LaunchPhase::Pending | LaunchPhase::Launched | LaunchPhase::Unspecified) => {
                Presence::Alive
            }
            Some(LaunchPhase::Terminated) => Presence::Ended,
            // A failed launch made no instance; a claim that has one all the same is not
            // understood.
            Some(LaunchPhase::Failed) if unrecorded => Presence::Ended,
            None if unrecorded => Presence::Never,
            None if planted::is("S2") && self.age_ms(claim) > 60_000 => Presence::Ended,
            Some(LaunchPhase::Failed) | None => Presence::Unknown,
        }
    }

    /// True when the cluster agrees that an instance has vanished: its node is not there or not
    /// well.
    pub(super) fn is_confirmed_gone(&self, claim: &NodeClaim) -> bool {
        let well = self.node(claim).is_some_and(|node| node.ready);
        self.settled && !well && !self.is_held(claim)
    }
}
