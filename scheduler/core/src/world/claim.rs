//! A node wanted for a cluster, from before its launch until its instance is gone.
//!
//! Invariant: every timer is derived from the timestamps kept here.

use crate::vocabulary::catalogue::CapacityType;
use crate::vocabulary::ids::{
    ClaimName, InstanceTypeName, NodeName, PoolName, ReservationId, Zone,
};
use crate::vocabulary::labels::{Labels, RESERVATION_ID};
use crate::vocabulary::pool::DisruptionReason;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::resources::Resources;
use crate::vocabulary::taint::Taint;

/// A NodeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeClaim {
    /// Name.
    pub name: ClaimName,
    /// Pool it belongs to.
    pub pool: PoolName,
    /// Node class it is launched from.
    pub node_class: String,
    /// What the instance must satisfy.
    pub requirements: Requirements,
    /// Requests of the pods it was made for, DaemonSets included.
    pub requests: Resources,
    /// Labels the node will carry.
    pub labels: Labels,
    /// Taints the node will carry.
    pub taints: Vec<Taint>,
    /// Taints that something removes after start-up.
    pub startup_taints: Vec<Taint>,
    /// Most that a candidate may cost; none means no ceiling.
    pub max_price_micro_usd_per_hour: Option<i64>,
    /// `spec.providerID`; empty before launch.
    pub provider_id: String,
    /// Node that registered for it.
    pub node: Option<NodeName>,
    /// Instance type, once launched.
    pub instance_type: Option<InstanceTypeName>,
    /// Zone name, once launched.
    pub zone: Option<Zone>,
    /// Capacity type, once launched.
    pub capacity_type: Option<CapacityType>,
    /// Allocatable as foreseen at launch or reported since; zero before launch.
    pub allocatable: Resources,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When its node registered.
    pub registered_ms: Option<i64>,
    /// When its node initialised.
    pub initialized_ms: Option<i64>,
    /// When a pod was last bound to or left its node.
    pub last_pod_event_ms: Option<i64>,
    /// True once deletion has begun.
    pub deleting: bool,
    /// True when its pods have left and nothing but the end of its instance is waited for: it
    /// counts no more as a node of its pool for the pool's budgets.
    pub drained: bool,
    /// Claims that replace this one; it is deleted when all of them are initialised.
    pub replaced_by: Vec<ClaimName>,
    /// True when it was made in place of others, so that its pods have been moved once.
    pub replacement: bool,
    /// Why it is being disrupted already; none when it is not.
    pub disrupted: Option<DisruptionReason>,
    /// True when its instance is about to be taken away.
    pub interrupted: bool,
    /// True when it no longer matches its pool or node class.
    pub drifted: bool,
    /// True when `karpenter.sh/do-not-disrupt` is set on it.
    pub do_not_disrupt: bool,
    /// Age at which it expires, in milliseconds; none means never.
    pub expire_after_ms: Option<i64>,
    /// Longest drain, in milliseconds; none means as long as it takes.
    pub termination_grace_ms: Option<i64>,
}

impl NodeClaim {
    /// True when the instance is on its way out: nothing new belongs there, and what runs there
    /// needs another place.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.deleting
            || self.interrupted
            || self.disrupted.is_some()
            || !self.replaced_by.is_empty()
    }

    /// True when it is to go by choice, and may as well stay: what it was to save is not worth
    /// buying a node.
    #[must_use]
    pub fn may_stay(&self) -> bool {
        let chosen = [DisruptionReason::Empty, DisruptionReason::Underutilized];
        let chosen = self.disrupted.is_some_and(|reason| chosen.contains(&reason));
        chosen && !self.deleting && !self.interrupted
    }

    /// True when neither is launched yet and both may become the same things: a burst has hundreds
    /// of these.
    #[must_use]
    pub fn may_become_the_same(&self, other: &Self) -> bool {
        self.instance_type.is_none()
            && other.instance_type.is_none()
            && self.pool == other.pool
            && self.max_price_micro_usd_per_hour == other.max_price_micro_usd_per_hour
            && self.requests == other.requests
            && self.allocatable == other.allocatable
            && self.labels == other.labels
            && self.taints == other.taints
            && self.requirements == other.requirements
    }

    /// False for another reservation than the one that its instance runs in, once that is known.
    #[must_use]
    pub fn runs_in(&self, reservation: Option<&ReservationId>) -> bool {
        let own = self.labels.get(RESERVATION_ID);
        reservation.is_none_or(|id| own.is_none_or(|own| own == id.as_str()))
    }

    /// When its age reaches `expire_after_ms`, in milliseconds since 1970.
    #[must_use]
    pub fn expires_ms(&self) -> Option<i64> {
        self.expire_after_ms.map(|age_ms| self.created_ms.saturating_add(age_ms))
    }

    /// When nothing about its pods has happened for `quiet_ms`: counted from the last pod event, or
    /// from initialisation when there was none. None before initialisation.
    #[must_use]
    pub fn quiet_since_ms(&self, quiet_ms: i64) -> Option<i64> {
        let start_ms = self.initialized_ms?.max(self.last_pod_event_ms.unwrap_or(i64::MIN));
        Some(start_ms.saturating_add(quiet_ms))
    }
}
