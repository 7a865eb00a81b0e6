//! The last steps of a claim: disruption, drain, the end of its instance, release.
//!
//! Invariant: a node goes by choice only after a second look, and while it holds no more than was
//! looked at; an instance is ended only when its claim is seen to go, and a claim is let go only
//! when its instance is gone.

use longshore_proto::capacity::v1::{InstancePhase, InstanceState, LaunchPhase};
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{Assumption, ReleaseClaim};
use longshore_proto::provider_id::instance_id;
use longshore_proto::types::v1::{NodeClaim, Termination};
use longshore_runtime::planted;

use super::presence::Presence;
use super::{Due, Step, World, absent, cancel, delete, deletion, direct, told};
use crate::session::verdict::Verdict;

/// Reasons for which a node goes whatever that costs.
const FORCED: [&str; 2] = ["Drifted", "Expired"];
/// A disruption whose node has not gone after this long is called off, in milliseconds: its
/// replacement does not come up, or its pods find no place.
pub(super) const DISRUPTION_TTL_MS: i64 = 12 * 60 * 1000;
/// A node that must go, and has been marked for this long, goes before those that were marked after
/// it, in milliseconds: their pods would take the room that its own wait for, time and again.
pub(super) const FIRST_AFTER_MS: i64 = 2 * 60 * 1000;
/// It is not waited for any more after this long, in milliseconds: it does not wait for room.
pub(super) const FIRST_UNTIL_MS: i64 = 6 * 60 * 1000;

impl World<'_> {
    /// Replacements first, and a second look at its pods; then the claim goes. Otherwise it stays.
    pub(super) fn disrupting(&self, claim: &NodeClaim) -> Option<Due> {
        let named = claim.replaced_by.iter().filter_map(|name| self.claims.get(name));
        let replacements: Vec<_> = named.filter(|by| !by.deleting).collect();
        // Many are replaced together. Where some of what was bought is not to be had, those go
        // whose pods have a place all the same, which the second look finds; with none, nobody
        // does.
        if replacements.is_empty() && !claim.replaced_by.is_empty() {
            return told(cancel(claim));
        }
        let ready = replacements.iter().all(|by| by.initialize_time.is_some());
        if planted::is("S17") && ready {
            return told(delete(claim, &claim.disruption_reason, "its pods fit elsewhere"));
        }
        let late = self.lasted_ms("disrupted", &claim.name) > DISRUPTION_TTL_MS;
        if late && !planted::is("S18") {
            return told(cancel(claim));
        }
        if self.is_held(claim) || self.tombstones.choice().is_some() {
            return None;
        }
        match self.verdicts.get(&claim.name) {
            None | Some(Verdict::Wait) => None,
            Some(Verdict::Cancel) => told(cancel(claim)),
            Some(Verdict::Go(_)) if self.yields(claim) => None,
            Some(Verdict::Go(pods)) => {
                let assumes = pods.clone().map(|pods| Assumption { pods });
                ready
                    .then(|| {
                        let mut delete = deletion(claim, &claim.disruption_reason);
                        "its pods fit elsewhere".clone_into(&mut delete.message);
                        delete.assumes = assumes;
                        direct(claim, Action::DeleteClaim(delete))
                    })
                    .and_then(told)
            }
        }
    }

    /// True while another node has waited for longer that must go.
    fn yields(&self, claim: &NodeClaim) -> bool {
        let marked_ms = |claim: &NodeClaim| self.lasted_ms("disrupted", &claim.name);
        let own_ms = marked_ms(claim);
        self.claims.values().any(|other| {
            let waits = FORCED.contains(&other.disruption_reason.as_str()) && !other.deleting;
            let other_ms = if waits { marked_ms(other) } else { 0 };
            other_ms > own_ms && (FIRST_AFTER_MS..FIRST_UNTIL_MS).contains(&other_ms)
        })
    }

    pub(super) fn deleting(&self, claim: &NodeClaim) -> Option<Due> {
        // A deletion that was asked for may be refused, and the claim lives on.
        let seen = self.watched.get(&claim.name).is_some_and(|claim| claim.deleting);
        if !seen && !planted::is("S34") {
            return None;
        }
        let release = || direct(claim, Action::ReleaseClaim(release_of(claim)));
        match self.presence(claim) {
            Presence::Ended => return told(release()),
            Presence::Vanished if self.is_confirmed_gone(claim) => return absent(claim, release()),
            // What an earlier session asked for may not have reached the region yet.
            Presence::Never if self.settled && !self.asked.contains(&claim.name) => {
                return told(release());
            }
            Presence::Never | Presence::Vanished => return None,
            Presence::Alive | Presence::Unknown => {}
        }
        let launch = self.region.launches.get(&claim.launch_id);
        let known = launch.map_or("", |launch| launch.instance_id.as_str());
        let id = if known.is_empty() { instance_id(&claim.provider_id) } else { known };
        // A node that was in service is drained first, also when its Node is not to be seen.
        let unused = claim.register_time.is_none() && self.node(claim).is_none();
        let empty = claim.drained || (unused && self.tombstones.whole().is_none());
        let ending = self.region.instances.get(id).is_some_and(is_ending);
        // A launch that has led to nothing yet is ended by its own id.
        let pending = launch.is_some_and(|launch| launch.phase() == LaunchPhase::Pending);
        let known = !id.is_empty() || (pending && !planted::is("S9"));
        let step = (empty && !ending && known).then(|| {
            Step::Terminate(Termination {
                instance_id: id.to_owned(),
                launch_id: claim.launch_id.clone(),
                claim: claim.name.clone(),
                traceparent: claim.traceparent.clone(),
            })
        });
        step.and_then(told)
    }
}

fn release_of(claim: &NodeClaim) -> ReleaseClaim {
    ReleaseClaim { claim: claim.name.clone(), on_absence: false }
}

fn is_ending(instance: &InstanceState) -> bool {
    matches!(instance.phase(), InstancePhase::ShuttingDown | InstancePhase::Terminated)
}
