//! Why a pod cannot be placed: a tree from the pod over each pool to the first thing that fails.
//!
//! Invariant: every leaf names what failed, how close it came, and what would admit the pod.

mod text;

use std::fmt;

use crate::vocabulary::catalogue::CapacityType;
use crate::vocabulary::ids::{InstanceTypeName, Zone};
use crate::vocabulary::requirements::requirement::Requirement;
use crate::vocabulary::taint::Taint;

/// One node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What it speaks of, as `Kind/name`.
    pub subject: String,
    /// What stands in the way.
    pub obstacle: Obstacle,
    /// What that comes from.
    pub causes: Vec<Reason>,
}

/// What stands in the way of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Nothing does: the pod can be placed or has been.
    None,
    /// The pod is not ours to place yet: kube-scheduler still works on it, or it is gated or
    /// ending.
    NotWaiting,
    /// The pod asks not to run on any node that a NodePool makes.
    OptedOut,
    /// The sender of the pod says that it can never be scheduled.
    Declared {
        /// Why, in the sender's words.
        why: String,
    },
    /// The pod's own requirements contradict each other.
    Contradiction {
        /// Label key of which no value will do.
        key: String,
        /// What is wanted of it, by selector, affinity and volumes; nothing when one of them by
        /// itself allows no value.
        wanted: Vec<Requirement>,
    },
    /// There is no pool.
    NoPool,
    /// Every pool refuses the pod; the causes say why.
    NoPoolAdmits,
    /// The pool may not launch anything now.
    PoolNotReady {
        /// Why.
        why: String,
    },
    /// The pool's catalogue is not known yet.
    NoCatalogue,
    /// The pool keeps a number of nodes of its own, and makes none for pods.
    FixedReplicas,
    /// More replicas are asked for than are kept.
    TooManyReplicas {
        /// How many are asked for.
        wanted: i64,
        /// How many would be kept.
        most: i64,
    },
    /// A taint of the pool is not tolerated.
    Taint {
        /// The taint.
        taint: Taint,
    },
    /// The pod wants of a label what the pool rules out.
    Requirement {
        /// Label key.
        key: String,
        /// What the pod wants.
        wanted: Requirement,
        /// What the pool offers; none when it does not define the label.
        offered: Option<Requirement>,
    },
    /// No instance type of the pool meets the requirements of pod and pool together.
    NoInstanceType {
        /// Label key that ruled out the last types standing.
        key: String,
        /// What is wanted of it.
        wanted: Requirement,
        /// The type that comes closest; none when the catalogue has no types.
        closest: Option<ClosestType>,
    },
    /// Even the largest matching instance type is too small.
    TooLarge {
        /// Resource that is short.
        resource: String,
        /// What the pod requests.
        requested: i64,
        /// The most that a matching type has left for pods.
        largest: i64,
        /// That type.
        instance_type: InstanceTypeName,
    },
    /// Not even the DaemonSets of a node fit on the largest matching instance type.
    DaemonSets {
        /// Resource that is short.
        resource: String,
        /// What they request in all.
        requested: i64,
        /// What the type has.
        largest: i64,
        /// The type.
        instance_type: InstanceTypeName,
    },
    /// Everything that would fit is sold out, or not sold in a zone the pool may use.
    NoOffering {
        /// How many instance types would fit.
        types: usize,
        /// What is on sale and misses least, the cheapest of these; none when all are sold out.
        closest: Option<ClosestOffering>,
    },
    /// The pool's limit leaves no room for a node that would fit.
    Limit {
        /// Resource name, or `nodes`.
        resource: String,
        /// The limit.
        limit: i64,
        /// What the pool's nodes and claims already have.
        used: i64,
        /// The least that one more node would add.
        needed: i64,
    },
    /// Fewer values of a label could be kept open for the launch than the pool's `minValues` asks
    /// for.
    MinValues {
        /// Label key.
        key: String,
        /// How many the pool asks for.
        wanted: u32,
        /// How many the types that would hold the pod have.
        reachable: usize,
    },
    /// Only reservations would serve, and nothing is left of them.
    Reservations {
        /// How many reservations.
        reservations: usize,
    },
    /// The pool leaves labels open in more combinations than are looked at.
    TooManyValues {
        /// How many are.
        most: usize,
    },
    /// The place that was planned for it did not stand up to the check.
    Refused {
        /// What the check found.
        found: String,
    },
    /// The planner has failed on it, which is a defect; the rest is planned without it.
    PlannerFails {
        /// What the planner said.
        said: String,
    },
    /// A topology rule (spread, affinity, anti-affinity) leaves no domain.
    Topology {
        /// Which rule.
        rule: TopologyRule,
        /// Label key of the topology.
        key: String,
        /// For a spread, the emptiest domain, which can take no more and so holds all others down.
        held_by: Option<String>,
    },
}

/// The instance type that misses fewest of some requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosestType {
    /// Its name.
    pub instance_type: InstanceTypeName,
    /// Label key of the first requirement that it misses.
    pub key: String,
    /// What it has instead; none when it does not have the label.
    pub value: Option<String>,
    /// How many requirements it misses.
    pub misses: usize,
}

/// An offering on sale that fewest things rule out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosestOffering {
    /// Its type.
    pub instance_type: InstanceTypeName,
    /// How it is bought.
    pub capacity_type: CapacityType,
    /// Where.
    pub zone: Zone,
    /// What rules it out, in order; empty when it is something else.
    pub ruled_out_by: Vec<RuledOut>,
}

/// Why an offering that is on sale may not be bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuledOut {
    /// Pool or pod do not allow its zone.
    Zone,
    /// Pool or pod do not allow its capacity type.
    CapacityType,
    /// The node class has no subnet in its zone.
    Subnet,
}

/// Kinds of topology rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopologyRule {
    /// `topologySpreadConstraints` with DoNotSchedule.
    Spread,
    /// Required pod affinity.
    Affinity,
    /// Required pod anti-affinity, of the pod or of a pod already there.
    AntiAffinity,
}

impl Obstacle {
    /// Nobody is there whom the pod has to join on its node.
    pub(crate) fn lonely() -> Self {
        let key = crate::labels::HOSTNAME.to_owned();
        Self::Topology { rule: TopologyRule::Affinity, key, held_by: None }
    }
}

impl Reason {
    /// A leaf.
    #[must_use]
    pub fn leaf(subject: String, obstacle: Obstacle) -> Self {
        Self { subject, obstacle, causes: Vec::new() }
    }

    /// Stable machine-readable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.obstacle {
            Obstacle::None => "PLACEABLE",
            Obstacle::NotWaiting => "NOT_WAITING",
            Obstacle::OptedOut => "OPTED_OUT",
            Obstacle::MinValues { .. } => "MIN_VALUES_UNREACHABLE",
            Obstacle::Reservations { .. } => "RESERVATIONS_USED_UP",
            Obstacle::TooManyValues { .. } => "TOO_MANY_LABEL_VALUES",
            Obstacle::Declared { .. } => "UNSCHEDULABLE",
            Obstacle::Contradiction { .. } => "REQUIREMENTS_CONTRADICTORY",
            Obstacle::NoPool => "NO_NODE_POOL",
            Obstacle::NoPoolAdmits => "NO_NODE_POOL_ADMITS",
            Obstacle::PoolNotReady { .. } => "NODE_POOL_NOT_READY",
            Obstacle::NoCatalogue => "CATALOGUE_UNKNOWN",
            Obstacle::FixedReplicas => "NODE_POOL_IS_STATIC",
            Obstacle::TooManyReplicas { .. } => "TOO_MANY_REPLICAS",
            Obstacle::Taint { .. } => "TAINT_NOT_TOLERATED",
            Obstacle::Requirement { .. } => "REQUIREMENTS_INCOMPATIBLE",
            Obstacle::NoInstanceType { .. } => "NO_INSTANCE_TYPE_MATCHES",
            Obstacle::TooLarge { .. } => "REQUESTS_TOO_LARGE",
            Obstacle::DaemonSets { .. } => "DAEMONSETS_TOO_LARGE",
            Obstacle::NoOffering { .. } => "NO_OFFERING_AVAILABLE",
            Obstacle::Limit { .. } => "NODE_POOL_LIMIT_REACHED",
            Obstacle::Refused { .. } => "PLACE_REFUSED",
            Obstacle::PlannerFails { .. } => "PLANNER_FAILS",
            Obstacle::Topology { .. } => "TOPOLOGY_UNSATISFIABLE",
        }
    }

    /// The same for people, without the causes.
    #[must_use]
    pub fn message(&self) -> String {
        self.obstacle.to_string()
    }

    fn write_tree(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        write!(f, "{:indent$}{}: {}", "", self.subject, self.obstacle, indent = 2 * depth)?;
        for cause in &self.causes {
            writeln!(f)?;
            cause.write_tree(f, depth + 1)?;
        }
        Ok(())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_tree(f, 0)
    }
}
