//! The answer of [`plan`](crate::plan): what to launch, where pods go, what to take out of service.
//!
//! Invariant: all lists are in a documented order that depends on content only.

pub(crate) mod any_order;
pub(crate) mod assemble;
mod certain;
pub(crate) mod compose;
pub(crate) mod opening;
pub mod steps;

use std::collections::BTreeMap;

use crate::bound::LowerBound;
use crate::reason::Reason;
use crate::vocabulary::catalogue::{CapacityType, Catalogue, InstanceType, Offering};
use crate::vocabulary::ids::{
    ClaimName, InstanceTypeName, NodeName, ObjectKey, PodUid, PoolName, ReservationId, ShapeId,
    Zone, ZoneId,
};
use crate::vocabulary::labels::Labels;
use crate::vocabulary::pool::DisruptionReason;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::resources::Resources;
use crate::vocabulary::taint::Taint;

pub use certain::certain;

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Where each pod that can be placed goes, in order of UID. Pods that only move because of a
    /// consolidation in `disruptions` are listed there instead.
    pub placements: Vec<Placement>,
    /// Nodes to launch; other lists refer to them by index.
    pub launches: Vec<NewNode>,
    /// Pods that cannot be placed and why, one entry for each shape.
    pub unplaced: Vec<Unplaced>,
    /// Nodes to take out of service.
    pub disruptions: Vec<Disruption>,
    /// Claims whose nodes are fit to be opened to pods, with their turn. Opened in this order,
    /// those of one turn together, nodes get the pods that are wanted there.
    pub turns: BTreeMap<ClaimName, i64>,
    /// True when pods need not be told their nodes: in whichever order they are bound, all planned
    /// places are of use to those that are left.
    pub any_order: bool,
    /// What becomes of the pods of each capacity buffer.
    pub buffers: BTreeMap<ObjectKey, Buffered>,
    /// Price of all launches, each at its first candidate.
    pub launch_price_micro_usd_per_hour: i64,
    /// What they cost by the objective; their price when that has no weights.
    pub launch_cost_micro_usd_per_hour: i64,
    /// Price of all nodes that pools own once the plan has been carried out.
    pub fleet_price_micro_usd_per_hour: i64,
    /// No nodes that carry the launched pods cost less than this.
    pub bound: LowerBound,
    /// How far the launches' cost lies above the bound, in millionths of the bound.
    pub gap_ppm: i64,
    /// Earliest time at which waiting alone changes the plan (consolidateAfter, expiry), in
    /// milliseconds since 1970; none when nothing is waited for.
    pub wake_ms: Option<i64>,
}

impl Plan {
    /// Where it puts pods, and where it moves those of nodes that go.
    pub fn places(&self) -> impl Iterator<Item = &Placement> {
        let moves = self.disruptions.iter().flat_map(|disruption| &disruption.moves);
        self.placements.iter().chain(moves)
    }

    /// For each launch, whether it is wanted though no pod waits for it: it takes the place of a
    /// node that goes, as `goes` says of each disruption, or it stands for itself. What would
    /// replace a node that stays does neither.
    pub fn standing(&self, goes: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut standing: Vec<bool> = self.launches.iter().map(|node| node.standing).collect();
        for (at, disruption) in self.disruptions.iter().enumerate() {
            for replacement in &disruption.replacements {
                standing[*replacement] = goes(at);
            }
        }
        standing
    }
}

/// How much of a capacity buffer there is room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffered {
    /// Pods that would fit on nodes in service.
    pub in_service: i64,
    /// Pods that will fit on nodes that are coming or are launched by this plan.
    pub coming: i64,
    /// Pods without room.
    pub unplaced: i64,
    /// Why; [`Obstacle::None`](crate::reason::Obstacle::None) when all have room.
    pub reason: Reason,
}

/// Where one pod goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// The pod.
    pub pod: PodUid,
    /// Where.
    pub target: Target,
}

/// A place for a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// An existing node.
    Node(NodeName),
    /// A claim whose node has not registered yet.
    Claim(ClaimName),
    /// A planned node: index into [`Plan::launches`].
    New(usize),
}

impl Target {
    /// Name of the node or claim; none for a planned node.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Node(node) => Some(node.as_str()),
            Self::Claim(claim) => Some(claim.as_str()),
            Self::New(_) => None,
        }
    }
}

/// A node to launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// Pool it belongs to.
    pub pool: PoolName,
    /// Node class to launch from.
    pub node_class: String,
    /// Everything the instance must satisfy: the pool's requirements and its pods', with the types,
    /// zones and capacity types of the candidates.
    pub requirements: Requirements,
    /// Acceptable offerings, the one of least cost first; 1 to 60. The set is closed.
    pub candidates: Vec<Candidate>,
    /// Requests of its pods and of the DaemonSets that will run on it.
    pub requests: Resources,
    /// Labels for the node, those of the instance type apart.
    pub labels: Labels,
    /// Annotations for the node.
    pub annotations: BTreeMap<String, String>,
    /// Taints for the node.
    pub taints: Vec<Taint>,
    /// Start-up taints for the node.
    pub startup_taints: Vec<Taint>,
    /// Pods it is launched for, in order of UID.
    pub pods: Vec<PodUid>,
    /// True when it is wanted although no pod waits for it: a replica of its pool, or room of a
    /// buffer.
    pub standing: bool,
    /// True when it is launched in place of nodes that a disruption of this plan takes away.
    pub replacement: bool,
    /// Highest price of a candidate when the list is recomputed later.
    pub max_price_micro_usd_per_hour: i64,
}

impl NewNode {
    /// What the plan counts on paying for it, in micro-dollars per hour: its first candidate's
    /// price.
    #[must_use]
    pub fn price(&self) -> i64 {
        self.candidates.first().map_or(0, |candidate| candidate.price_micro_usd_per_hour)
    }

    /// What the plan counts on its costing by the objective, in micro-dollars per hour.
    #[must_use]
    pub fn cost(&self) -> i64 {
        self.candidates.first().map_or(0, |candidate| candidate.cost_micro_usd_per_hour)
    }
}

/// An offering that a plan has priced and found acceptable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// What it costs by the objective.
    pub cost_micro_usd_per_hour: i64,
    /// Price the plan used.
    pub price_micro_usd_per_hour: i64,
    /// Type name.
    pub instance_type: InstanceTypeName,
    /// Zone name.
    pub zone: Zone,
    /// Zone id.
    pub zone_id: ZoneId,
    /// How it is bought.
    pub capacity_type: CapacityType,
    /// Reservation it draws from.
    pub reservation: Option<ReservationId>,
}

impl Candidate {
    /// What it is in a catalogue; none when that does not have it.
    pub(crate) fn found<'c>(
        &self,
        catalogue: &'c Catalogue,
    ) -> Option<(&'c InstanceType, &'c Offering)> {
        let instance = catalogue.types.get(&self.instance_type)?;
        let is_it = |offering: &&Offering| {
            offering.zone == self.zone
                && offering.capacity_type == self.capacity_type
                && offering.reservation_id() == self.reservation.as_ref()
        };
        Some((instance, instance.offerings.iter().find(is_it)?))
    }
}

/// Pods of one shape that cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// Their shape.
    pub shape: ShapeId,
    /// The pods, in order of UID.
    pub pods: Vec<PodUid>,
    /// Why.
    pub reason: Reason,
}

/// Nodes to take out of service together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disruption {
    /// Their claims.
    pub claims: Vec<ClaimName>,
    /// Their nodes, in the same order.
    pub nodes: Vec<NodeName>,
    /// Why.
    pub reason: DisruptionReason,
    /// Launches that must be initialised before the claims are deleted, as indexes.
    pub replacements: Vec<usize>,
    /// Where their pods go, in order of UID.
    pub moves: Vec<Placement>,
    /// Price of the nodes less that of the replacements; below zero where a saving in cost is paid
    /// for.
    pub saving_micro_usd_per_hour: i64,
}
