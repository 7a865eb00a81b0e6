//! From wanted to gone: what each claim needs next, given what its region reports.
//!
//! Invariant: a pure function of state. A step is named again on every pass until the state shows
//! it done, so a lost message, a restart or a new leader costs time and nothing else. Absence is no
//! evidence by itself: what rests on it says so, and waits for a second source.

mod ending;
mod opening;
mod orphans;
mod passing;
mod presence;
mod repair;

use std::collections::{BTreeMap, BTreeSet};

use longshore_core::vocabulary::ids::ClaimName;
use longshore_proto::capacity::v1::{InterruptionKind, LaunchPhase};
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{DeleteClaim, DisruptClaim, RecordLaunchFailure, RegisterNode};
use longshore_proto::provider_id::instance_id;
use longshore_proto::types::v1::{NodeClaim, NodePool, Termination};
use longshore_runtime::planted;
use prost_types::{Duration, Timestamp};

pub use self::passing::{given_up, passing, unknown};
use self::presence::Presence;
pub use self::repair::blocked;
use super::joined::Joined;
use super::record;
use super::sightings::Sightings;
use super::tombstones::Tombstones;
use super::verdict::Verdict;
use crate::region::RegionState;
use crate::wire::time_ms;

/// A claim whose node has not registered after this long is given up, in milliseconds; one whose
/// node has never been ready, too.
const REGISTRATION_TTL_MS: i64 = 15 * 60 * 1000;
/// A claim of another autoscaler for which no instance is known after this long is given up, in
/// milliseconds: nobody launches for it any more. Karpenter gives its launches as long.
const LAUNCH_TTL_MS: i64 = 5 * 60 * 1000;
/// The part of such a time that the session must have seen itself, as a divisor: the age of a claim
/// is told by the clocks of other hosts.
const SEEN_PART: i64 = 3;
/// A launch that somebody must mend is tried again with a new claim after this, in milliseconds.
const LAUNCH_RETRY_MS: i64 = 60 * 1000;
/// How long the pods of a spot instance that EC2 takes back have: of two minutes, what is left when
/// the announcement has gone its way.
const SPOT_DRAIN: Duration = Duration { seconds: 110, nanos: 0 };
/// Why a claim is disrupted that its pool's replicas leave no place for. It goes wherever it
/// stands: nothing has to come in its place.
pub const EXCESS: &str = "Excess";

/// What the lifecycle looks at.
pub struct World<'a> {
    /// The cluster.
    pub cluster_id: &'a str,
    /// Its claims, effects under way included.
    pub claims: &'a BTreeMap<String, NodeClaim>,
    /// Its claims as they were seen last.
    pub watched: &'a BTreeMap<String, NodeClaim>,
    /// Nodes by provider id.
    pub nodes: &'a BTreeMap<String, Joined>,
    /// Pods planned for each claim.
    pub nominations: &'a BTreeMap<String, Vec<String>>,
    /// Claims whose nodes the newest plan knows to be fit, with the turn in which each opens.
    pub turns: &'a BTreeMap<ClaimName, i64>,
    /// Whether pods find their nodes in whichever order these open.
    pub pins_pods: bool,
    /// Whether the newest plan's pods need not be told their nodes.
    pub any_order: bool,
    /// The cluster's region.
    pub region: &'a RegionState,
    /// Pools of the cluster.
    pub pools: &'a BTreeMap<String, NodePool>,
    /// What there is and cannot be read.
    pub tombstones: &'a Tombstones,
    /// Since when states have lasted that must not last.
    pub sightings: &'a Sightings,
    /// Whether claims that are marked for disruption may go now.
    pub verdicts: &'a BTreeMap<String, Verdict>,
    /// Claims whose launch may be on its way to the region.
    pub asked: &'a BTreeSet<String>,
    /// Whether the view has been whole for long enough to say that something is not there.
    pub settled: bool,
    /// Time of day, in milliseconds since 1970.
    pub now_ms: i64,
    /// Milliseconds of the session.
    pub session_ms: i64,
}

/// What a step rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Somebody said so who knows.
    Told,
    /// Nothing but the absence of what is named: a claim, or an instance.
    Absence(String),
}

/// A step with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// What to do.
    pub step: Step,
    /// Why it may be done.
    pub evidence: Evidence,
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

impl Step {
    /// What goes first: what EC2 or a person has ended already, then the rest in its order.
    #[must_use]
    pub fn urgency(&self) -> u8 {
        let urgent = match self {
            Self::Direct { action, .. } => is_urgent(action),
            Self::Terminate(_) => true,
            Self::Launch(_) => false,
        };
        u8::from(!urgent)
    }
}

/// True for what must not wait behind anything else.
#[must_use]
pub fn is_urgent(action: &Action) -> bool {
    match action {
        Action::DeleteClaim(delete) => delete.assumes.is_none(),
        Action::ReleaseClaim(_) => true,
        Action::DisruptClaim(disrupt) => disrupt.cancel,
        Action::CreateClaim(_)
        | Action::RecordLaunch(_)
        | Action::RecordLaunchFailure(_)
        | Action::RegisterNode(_)
        | Action::NominatePods(_)
        | Action::PinPods(_)
        | Action::SetNodeClassStatus(_)
        | Action::PublishEvent(_)
        | Action::SetNodePoolStatus(_)
        | Action::SetConditions(_)
        | Action::NoteDrift(_) => false,
    }
}

/// Name of the need that an action serves.
#[must_use]
pub const fn need(action: &Action) -> &'static str {
    match action {
        Action::CreateClaim(_) => "create",
        Action::RecordLaunch(_) => "record",
        Action::RecordLaunchFailure(_) => "failure",
        Action::RegisterNode(_) => "register",
        Action::NominatePods(_) => "nominate",
        Action::PinPods(_) => "pin",
        Action::DisruptClaim(_) => "disrupt",
        Action::DeleteClaim(_) => "delete",
        Action::ReleaseClaim(_) => "release",
        Action::SetNodeClassStatus(_) => "class-status",
        Action::PublishEvent(_) => "event",
        Action::SetNodePoolStatus(_) => "pool-status",
        Action::SetConditions(_) => "conditions",
        Action::NoteDrift(_) => "drift",
    }
}

/// Everything that claims and instances need next.
#[must_use]
pub fn steps(world: &World<'_>) -> Vec<Due> {
    if !world.region.synced {
        return Vec::new();
    }
    let claims = world.claims.values().filter_map(|claim| world.claim_step(claim));
    let gathers = world.gathers_nodes();
    let claims = claims.filter(|due| !gathers || !world.is_gathered(&due.step));
    claims.chain(world.orphans()).collect()
}

impl World<'_> {
    fn claim_step(&self, claim: &NodeClaim) -> Option<Due> {
        if claim.deleting {
            return self.deleting(claim);
        }
        if let Some(kind) = self.region.interruption(instance_id(&claim.provider_id)) {
            return told(interrupted(claim, kind));
        }
        if claim.disruption_reason == EXCESS && !self.is_held(claim) {
            return told(delete(claim, EXCESS, "its NodePool asks for fewer replicas"));
        }
        if claim.provider_id.is_empty() { self.launching(claim) } else { self.running(claim) }
    }

    fn lasted_ms(&self, state: &str, name: &str) -> i64 {
        self.sightings.lasted_ms(&format!("{state}/{name}"), self.session_ms)
    }

    fn node(&self, claim: &NodeClaim) -> Option<&Joined> {
        self.nodes.get(&claim.provider_id).filter(|_| !claim.provider_id.is_empty())
    }

    /// True when the claim must not be ended by choice or on absence: something about it cannot be
    /// read.
    fn is_held(&self, claim: &NodeClaim) -> bool {
        let node = self.node(claim).map(|node| node.name.as_str());
        let held = self.tombstones.whole().is_some() || self.tombstones.holds(claim, node);
        held && !planted::is("S3")
    }

    fn launching(&self, claim: &NodeClaim) -> Option<Due> {
        if claim.launch_id.is_empty() {
            return self.adopting(claim);
        }
        let Some(launch) = self.region.launches.get(&claim.launch_id) else {
            return told(Step::Launch(claim.name.clone()));
        };
        match launch.phase() {
            LaunchPhase::Unspecified | LaunchPhase::Pending => None,
            LaunchPhase::Launched => {
                let instance = self.region.instances.get(&launch.instance_id)?;
                let action = record::launch(self.cluster_id, claim, instance, self.region);
                told(direct(claim, Action::RecordLaunch(action)))
            }
            LaunchPhase::Failed => {
                let retry_due = self.lasted_ms("launching", &claim.name) > LAUNCH_RETRY_MS;
                let failure = RecordLaunchFailure {
                    claim: claim.name.clone(),
                    reason: launch.reason.clone(),
                    message: launch.message.clone(),
                    delete: launch.retryable || retry_due,
                };
                told(direct(claim, Action::RecordLaunchFailure(failure)))
            }
            LaunchPhase::Terminated => {
                let message = "the instance ended before it was recorded";
                let step = delete(claim, "InstanceTerminated", message);
                let instance = self.region.instances.get(&launch.instance_id);
                let vanished = instance.is_some_and(|instance| instance.vanished);
                if vanished { absent(claim, step) } else { told(step) }
            }
        }
    }

    /// A claim that another autoscaler made and did not see through to its end.
    fn adopting(&self, claim: &NodeClaim) -> Option<Due> {
        if let Some(instance) = self.instance(claim) {
            let action = record::launch(self.cluster_id, claim, instance, self.region);
            return told(direct(claim, Action::RecordLaunch(action)));
        }
        let made = claim.create_time.as_ref();
        let given_up = self.is_overdue("launching", claim, made, LAUNCH_TTL_MS);
        given_up.then_some(()).filter(|()| !self.is_held(claim))?;
        let message = "another autoscaler made it, and no instance is known that is tagged with it";
        told(delete(claim, "NotLaunched", message))
    }

    fn running(&self, claim: &NodeClaim) -> Option<Due> {
        let text = "EC2 no longer has the instance";
        match self.presence(claim) {
            Presence::Ended => return told(delete(claim, "InstanceTerminated", text)),
            Presence::Vanished if self.is_confirmed_gone(claim) => {
                return absent(claim, delete(claim, "InstanceTerminated", text));
            }
            Presence::Vanished | Presence::Alive | Presence::Never | Presence::Unknown => {}
        }
        if claim.register_time.is_none() {
            return self.registering(claim);
        }
        if let Some(repair) = self.repairing(claim) {
            return Some(repair);
        }
        let astray = self.lasted_ms("astray", &claim.name) > passing::ASTRAY_PATIENCE_MS;
        if astray && !planted::is("S17a") {
            return told(cancel(claim));
        }
        if !claim.disruption_reason.is_empty() {
            return self.disrupting(claim);
        }
        let unready =
            self.is_overdue("unready", claim, claim.register_time.as_ref(), REGISTRATION_TTL_MS);
        unready.then_some(()).filter(|()| self.settled && !self.is_held(claim))?;
        let message = "its node has not been ready for 15 minutes since it joined; look at its kubelet \
                       and network plug-in";
        absent(claim, delete(claim, "InitializationTimeout", message))
    }

    fn registering(&self, claim: &NodeClaim) -> Option<Due> {
        if let Some(node) = self.node(claim) {
            if !self.may_open(claim, node) {
                return None;
            }
            let pods = self.nominations.get(&claim.name).cloned().unwrap_or_default();
            let (claim_name, node) = (claim.name.clone(), node.name.clone());
            let any_order = self.any_order;
            let register = RegisterNode { claim: claim_name, node, pods, any_order };
            return told(direct(claim, Action::RegisterNode(register)));
        }
        let made = claim.create_time.as_ref();
        let over = self.is_overdue("registering", claim, made, REGISTRATION_TTL_MS);
        (over && !self.is_held(claim))
        .then(|| {
            let message = "no node registered within 15 minutes; check user data, security groups \
                           and that the node role may join the cluster";
            delete(claim, "RegistrationTimeout", message)
        })
        .and_then(told)
    }

    fn age_ms(&self, claim: &NodeClaim) -> i64 {
        claim.create_time.as_ref().map_or(0, |created| self.now_ms - time_ms(created))
    }

    /// True when a claim has been in a state for too long: as seen here for all of the time, or by
    /// when that began and as seen here for a part of it, since sessions come and go.
    fn is_overdue(
        &self,
        state: &str,
        claim: &NodeClaim,
        since: Option<&Timestamp>,
        ttl_ms: i64,
    ) -> bool {
        let seen_ms = self.lasted_ms(state, &claim.name);
        let age_ms = since.map_or(0, |since| self.now_ms - time_ms(since));
        seen_ms > ttl_ms || (age_ms > ttl_ms && seen_ms > ttl_ms / SEEN_PART)
    }
}

fn direct(claim: &NodeClaim, action: Action) -> Step {
    Step::Direct { claim: claim.name.clone(), action: Box::new(action) }
}

/// A step that somebody has given the word for.
const fn told(step: Step) -> Option<Due> {
    Some(Due { step, evidence: Evidence::Told })
}

/// A step that rests on the absence of a claim's instance alone, which the watcher is told to
/// remember.
fn absent(claim: &NodeClaim, mut step: Step) -> Option<Due> {
    if let Step::Direct { action, .. } = &mut step {
        if let Action::DeleteClaim(delete) = &mut **action {
            delete.on_absence = true;
        } else if let Action::ReleaseClaim(release) = &mut **action {
            release.on_absence = true;
        }
    }
    Some(Due { step, evidence: Evidence::Absence(claim.name.clone()) })
}

fn deletion(claim: &NodeClaim, reason: &str) -> DeleteClaim {
    DeleteClaim { claim: claim.name.clone(), reason: reason.to_owned(), ..DeleteClaim::default() }
}

fn delete(claim: &NodeClaim, reason: &str, message: &str) -> Step {
    let delete = DeleteClaim { message: message.to_owned(), ..deletion(claim, reason) };
    direct(claim, Action::DeleteClaim(delete))
}

/// Ends a claim whose instance EC2 takes away: past the time that it leaves, no budget helps.
fn interrupted(claim: &NodeClaim, kind: InterruptionKind) -> Step {
    let drain_within = (kind == InterruptionKind::Spot).then_some(SPOT_DRAIN);
    let message = interruption_text(kind).to_owned();
    let delete = DeleteClaim { message, drain_within, ..deletion(claim, "Interrupted") };
    direct(claim, Action::DeleteClaim(delete))
}

fn cancel(claim: &NodeClaim) -> Step {
    let cancel = DisruptClaim { claim: claim.name.clone(), cancel: true, ..Default::default() };
    direct(claim, Action::DisruptClaim(cancel))
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
