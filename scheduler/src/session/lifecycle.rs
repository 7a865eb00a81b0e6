//! From wanted to gone: what each claim needs next, given what its region reports.
//!
//! Invariant: a pure function of state. A step is named again on every pass until the state shows
//! it done, so a lost message, a restart or a new leader costs time and nothing else.

use std::collections::BTreeMap;

use longshore_core::vocabulary::ids::ClaimName;
use longshore_proto::capacity::v1::{InstancePhase, InstanceState, InterruptionKind, LaunchPhase};
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{
    DeleteClaim, DisruptClaim, RecordLaunchFailure, RegisterNode, ReleaseClaim,
};
use longshore_proto::types::v1::{NodeClaim, Termination};

use super::joined::Joined;
use super::record;
use crate::region::RegionState;
use crate::wire::time_ms;

/// A claim whose node has not registered after this long is given up, in milliseconds.
const REGISTRATION_TTL_MS: i64 = 15 * 60 * 1000;
/// A node is registered once nothing but karpenter.sh/unregistered repels pods, so that taking this
/// taint off is what opens it, with its pods nominated. Kubernetes takes off its own start-up taints
/// at a time of its choosing; a nomination for a node still closed would be lost by then. After this
/// many milliseconds the node is registered all the same: a network plug-in whose DaemonSet does
/// not tolerate the taint would otherwise never come up.
const START_PATIENCE_MS: i64 = 30 * 1000;
/// A node that is fit waits until a plan knows that, which fills it with pods of nodes that are still to
/// come; and when it has room even so, until fit nodes that have less are open, so that their pods do
/// not go there. At most this many milliseconds.
const OPEN_PATIENCE_MS: i64 = 2 * 1000;
/// A launch that somebody must mend is tried again with a new claim after this, in milliseconds.
const LAUNCH_RETRY_MS: i64 = 60 * 1000;
/// EC2 lists new instances late. The instance of a claim younger than this, in milliseconds, is not
/// given up for being unlisted when nobody has recorded its launch.
const LISTED_WITHIN_MS: i64 = 60 * 1000;
/// An instance without a claim is ended when it is older than this, in milliseconds. Longer than
/// a claim takes from creation to the scheduler's view.
const ORPHAN_AFTER_MS: i64 = 60 * 1000;

/// Why a claim is disrupted that its pool's replicas leave no place for. It goes wherever it stands:
/// nothing has to come in its place.
pub const EXCESS: &str = "Excess";

/// What the lifecycle looks at.
pub struct World<'a> {
    /// The cluster.
    pub cluster_id: &'a str,
    /// Its claims, effects under way included.
    pub claims: &'a BTreeMap<String, NodeClaim>,
    /// Nodes by provider id.
    pub nodes: &'a BTreeMap<String, Joined>,
    /// Pods planned for each claim.
    pub nominations: &'a BTreeMap<String, Vec<String>>,
    /// Claims whose nodes the newest plan knows to be fit, with the turn in which each opens.
    pub turns: &'a BTreeMap<ClaimName, i64>,
    /// Whether pods find their nodes in whichever order these open.
    pub pins_pods: bool,
    /// The cluster's region.
    pub region: &'a RegionState,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Launch an instance for the claim of this name.
    Launch(String),
    /// End an instance.
    Terminate(Termination),
    /// Tell the watcher.
    Direct {
        /// Claim it is about.
        claim: String,
        /// What to do.
        action: Box<Action>,
    },
}

/// Everything that claims and instances need next.
#[must_use]
pub fn steps(world: &World<'_>) -> Vec<Step> {
    if !world.region.synced {
        return Vec::new();
    }
    let claims = world.claims.values().filter_map(|claim| world.claim_step(claim));
    claims.chain(world.orphans()).collect()
}

/// EC2 id inside a provider id; empty when there is none.
#[must_use]
pub fn instance_id(provider_id: &str) -> &str {
    provider_id.rsplit('/').next().unwrap_or_default()
}

impl World<'_> {
    fn claim_step(&self, claim: &NodeClaim) -> Option<Step> {
        if claim.deleting {
            self.deleting(claim)
        } else if claim.disruption_reason == EXCESS {
            Some(delete(claim, EXCESS, "its NodePool asks for fewer replicas"))
        } else if claim.provider_id.is_empty() {
            self.launching(claim)
        } else {
            self.running(claim)
        }
    }

    fn launching(&self, claim: &NodeClaim) -> Option<Step> {
        let Some(launch) = self.region.launches.get(&claim.launch_id) else {
            return Some(Step::Launch(claim.name.clone()));
        };
        match launch.phase() {
            LaunchPhase::Unspecified | LaunchPhase::Pending => None,
            LaunchPhase::Launched => {
                let instance = self.region.instances.get(&launch.instance_id)?;
                let action = record::launch(self.cluster_id, claim, instance, self.region);
                Some(direct(claim, Action::RecordLaunch(action)))
            }
            LaunchPhase::Failed => {
                let retry_due = self.age_ms(claim) > LAUNCH_RETRY_MS;
                let failure = RecordLaunchFailure {
                    claim: claim.name.clone(),
                    reason: launch.reason.clone(),
                    message: launch.message.clone(),
                    delete: launch.retryable || retry_due,
                };
                Some(direct(claim, Action::RecordLaunchFailure(failure)))
            }
            LaunchPhase::Terminated => Some(delete(
                claim,
                "InstanceTerminated",
                "the instance ended before it was recorded",
            )),
        }
    }

    fn running(&self, claim: &NodeClaim) -> Option<Step> {
        let id = instance_id(&claim.provider_id);
        let interrupted = self.region.interruptions.get(id).map(|announced| announced.kind());
        if let Some(kind) = interrupted.filter(|kind| *kind != InterruptionKind::Rebalance) {
            return Some(delete(claim, "Interrupted", interruption_text(kind)));
        }
        if self.is_gone(claim) {
            return Some(delete(claim, "InstanceTerminated", "EC2 no longer has the instance"));
        }
        if claim.register_time.is_none() {
            return self.registering(claim);
        }
        if !claim.disruption_reason.is_empty() {
            return self.disrupting(claim);
        }
        None
    }

    fn registering(&self, claim: &NodeClaim) -> Option<Step> {
        if let Some(node) = self.nodes.get(&claim.provider_id) {
            if !self.may_open(claim, node) {
                return None;
            }
            let pods = self.nominations.get(&claim.name).cloned().unwrap_or_default();
            let (claim_name, node) = (claim.name.clone(), node.name.clone());
            let register = RegisterNode { claim: claim_name, node, pods };
            return Some(direct(claim, Action::RegisterNode(register)));
        }
        (self.age_ms(claim) > REGISTRATION_TTL_MS).then(|| {
            let message = "no node registered within 15 minutes; check user data, security groups \
                           and that the node role may join the cluster";
            delete(claim, "RegistrationTimeout", message)
        })
    }

    fn may_open(&self, claim: &NodeClaim, node: &Joined) -> bool {
        let Some(fit_ms) = node.fit_ms else {
            return self.now_ms - node.create_ms >= START_PATIENCE_MS;
        };
        let turn = |claim: &NodeClaim| self.turns.get(claim.name.as_str()).copied();
        let goes_first = |other: &NodeClaim, own: i64| {
            other.register_time.is_none()
                && !other.deleting
                && turn(other).is_some_and(|theirs| theirs < own)
        };
        let first = |own| !self.claims.values().any(|other| goes_first(other, own));
        self.now_ms - fit_ms >= OPEN_PATIENCE_MS
            || turn(claim).is_some_and(|own| self.pins_pods || own == 0 || first(own))
    }

    /// Replacements first, then the claim goes; without a replacement it stays.
    fn disrupting(&self, claim: &NodeClaim) -> Option<Step> {
        let replacements = || claim.replaced_by.iter().map(|name| self.claims.get(name));
        if replacements().any(|replacement| replacement.is_none_or(|claim| claim.deleting)) {
            let cancel =
                DisruptClaim { claim: claim.name.clone(), cancel: true, ..Default::default() };
            return Some(direct(claim, Action::DisruptClaim(cancel)));
        }
        let ready = replacements().flatten().all(|claim| claim.initialize_time.is_some());
        ready.then(|| delete(claim, &claim.disruption_reason, "its pods fit elsewhere"))
    }

    fn deleting(&self, claim: &NodeClaim) -> Option<Step> {
        if self.is_gone(claim) {
            let release = ReleaseClaim { claim: claim.name.clone() };
            return Some(direct(claim, Action::ReleaseClaim(release)));
        }
        let launch = self.region.launches.get(&claim.launch_id);
        let known = launch.map_or("", |launch| launch.instance_id.as_str());
        let id = if known.is_empty() { instance_id(&claim.provider_id) } else { known };
        let empty = claim.drained || !self.nodes.contains_key(&claim.provider_id);
        let ending = self.region.instances.get(id).is_some_and(is_ending);
        (empty && !ending && !id.is_empty()).then(|| {
            Step::Terminate(Termination {
                instance_id: id.to_owned(),
                launch_id: claim.launch_id.clone(),
                claim: claim.name.clone(),
                traceparent: claim.traceparent.clone(),
            })
        })
    }

    /// True when no instance exists for the claim and none can appear any more.
    fn is_gone(&self, claim: &NodeClaim) -> bool {
        let launch = self.region.launches.get(&claim.launch_id);
        let instance = self.region.instances.get(instance_id(&claim.provider_id));
        let launched = launch.and_then(|launch| self.region.instances.get(&launch.instance_id));
        if let Some(instance) = instance.or(launched) {
            return instance.phase() == InstancePhase::Terminated;
        }
        match launch.map(longshore_proto::capacity::v1::LaunchState::phase) {
            Some(LaunchPhase::Pending | LaunchPhase::Launched | LaunchPhase::Unspecified) => false,
            Some(LaunchPhase::Failed | LaunchPhase::Terminated) => true,
            None => claim.provider_id.is_empty() || self.age_ms(claim) > LISTED_WITHIN_MS,
        }
    }

    /// Instances of this cluster that no claim stands for.
    fn orphans(&self) -> impl Iterator<Item = Step> + '_ {
        let alive = |instance: &&InstanceState| {
            matches!(instance.phase(), InstancePhase::Pending | InstancePhase::Running)
        };
        let old = |instance: &&InstanceState| {
            let launched = instance.launch_time.as_ref().map_or(self.now_ms, time_ms);
            self.now_ms - launched > ORPHAN_AFTER_MS
        };
        self.region
            .instances
            .values()
            .filter(|instance| instance.cluster_id == self.cluster_id)
            .filter(|instance| !self.claims.contains_key(&instance.claim))
            .filter(alive)
            .filter(old)
            .map(|instance| {
                Step::Terminate(Termination {
                    instance_id: instance.instance_id.clone(),
                    launch_id: instance.launch_id.clone(),
                    claim: instance.claim.clone(),
                    traceparent: String::new(),
                })
            })
    }

    fn age_ms(&self, claim: &NodeClaim) -> i64 {
        claim.create_time.as_ref().map_or(0, |created| self.now_ms - time_ms(created))
    }
}

fn is_ending(instance: &InstanceState) -> bool {
    matches!(instance.phase(), InstancePhase::ShuttingDown | InstancePhase::Terminated)
}

fn direct(claim: &NodeClaim, action: Action) -> Step {
    Step::Direct { claim: claim.name.clone(), action: Box::new(action) }
}

fn delete(claim: &NodeClaim, reason: &str, message: &str) -> Step {
    let delete = DeleteClaim {
        claim: claim.name.clone(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        assumes: None,
    };
    direct(claim, Action::DeleteClaim(delete))
}

const fn interruption_text(kind: InterruptionKind) -> &'static str {
    match kind {
        InterruptionKind::Spot => "EC2 takes the spot instance back within two minutes",
        InterruptionKind::StateChange => "the instance was stopped or terminated from outside",
        InterruptionKind::ScheduledChange => "EC2 has scheduled maintenance for the instance",
        InterruptionKind::Rebalance | InterruptionKind::Unspecified => "EC2 announced a risk",
    }
}

#[cfg(test)]
mod tests;
