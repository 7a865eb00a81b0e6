//! Why a pod cannot be placed: a tree from the pod over each pool to the first thing that fails.
//!
//! Invariant: every leaf names what failed, how close it came, and what would admit the pod.

use std::fmt;

use crate::vocabulary::ids::InstanceTypeName;
use crate::vocabulary::requirement::Requirement;
use crate::vocabulary::resources::display_amount;
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
    /// The pod is not ours to place yet: kube-scheduler still works on it, or it is gated or ending.
    NotWaiting,
    /// The sender of the pod says that it can never be scheduled.
    Declared {
        /// Why, in the sender's words.
        why: String,
    },
    /// The pod's own requirements contradict each other.
    Contradiction,
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
    /// Everything that would fit is sold out, or not sold in a zone the pool may use.
    NoOffering {
        /// How many instance types would fit.
        types: usize,
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
    /// A topology rule (spread, affinity, anti-affinity) leaves no domain.
    Topology {
        /// Which rule.
        rule: TopologyRule,
        /// Label key of the topology.
        key: String,
    },
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
            Obstacle::Declared { .. } => "UNSCHEDULABLE",
            Obstacle::Contradiction => "REQUIREMENTS_CONTRADICTORY",
            Obstacle::NoPool => "NO_NODE_POOL",
            Obstacle::NoPoolAdmits => "NO_NODE_POOL_ADMITS",
            Obstacle::PoolNotReady { .. } => "NODE_POOL_NOT_READY",
            Obstacle::NoCatalogue => "CATALOGUE_UNKNOWN",
            Obstacle::FixedReplicas => "NODE_POOL_IS_STATIC",
            Obstacle::Taint { .. } => "TAINT_NOT_TOLERATED",
            Obstacle::Requirement { .. } => "REQUIREMENTS_INCOMPATIBLE",
            Obstacle::NoInstanceType { .. } => "NO_INSTANCE_TYPE_MATCHES",
            Obstacle::TooLarge { .. } => "REQUESTS_TOO_LARGE",
            Obstacle::NoOffering { .. } => "NO_OFFERING_AVAILABLE",
            Obstacle::Limit { .. } => "NODE_POOL_LIMIT_REACHED",
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

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("nothing stands in the way"),
            Self::NotWaiting => f.write_str(
                "kube-scheduler has not marked it unschedulable; it is new, gated, preempting or ending",
            ),
            Self::Declared { why } => f.write_str(why),
            Self::Contradiction => f.write_str(
                "node selector, node affinity and volumes contradict each other; no node can meet all",
            ),
            Self::NoPool => f.write_str("there is no NodePool; create one"),
            Self::NoPoolAdmits => f.write_str("no NodePool can make a node for it"),
            Self::PoolNotReady { why } => write!(f, "not ready: {why}"),
            Self::NoCatalogue => {
                f.write_str("the region has not reported its instance types yet; wait for its actuator")
            }
            Self::FixedReplicas => f.write_str(
                "keeps spec.replicas nodes and makes none for pods; raise its replicas, or allow another \
                 NodePool",
            ),
            Self::Taint { taint } => write!(f, "taint {taint}; add a toleration for it to the pod"),
            Self::Requirement { key, wanted, offered } => {
                write_requirement(f, key, wanted, offered.as_ref())
            }
            Self::NoInstanceType { key, wanted } => write!(
                f,
                "no instance type has {key} {wanted} together with the other requirements; widen them"
            ),
            Self::TooLarge { resource, requested, largest, instance_type } => write!(
                f,
                "requests {resource} {}, but the largest matching type {instance_type} has {} left for \
                 pods; request less or allow larger types",
                display_amount(resource, *requested),
                display_amount(resource, *largest)
            ),
            Self::NoOffering { types } => write!(
                f,
                "{types} instance types would fit, but none of them can be bought now in an allowed \
                 zone and capacity type; allow more zones or capacity types"
            ),
            Self::Limit { resource, limit, used, needed } => write!(
                f,
                "limit {resource} {} is reached: {} in use, the smallest node adds {}; raise the limit",
                display_amount(resource, *limit),
                display_amount(resource, *used),
                display_amount(resource, *needed)
            ),
            Self::Topology { rule, key } => write_topology(f, *rule, key),
        }
    }
}

fn write_requirement(
    f: &mut fmt::Formatter<'_>,
    key: &str,
    wanted: &Requirement,
    offered: Option<&Requirement>,
) -> fmt::Result {
    match offered {
        Some(offered) => {
            write!(f, "pod wants {key} {wanted}, pool allows {key} {offered}; change one of them")
        }
        None => write!(
            f,
            "pod wants {key} {wanted}, which the pool does not define; add it to the pool's labels or \
             requirements"
        ),
    }
}

fn write_topology(f: &mut fmt::Formatter<'_>, rule: TopologyRule, key: &str) -> fmt::Result {
    match rule {
        TopologyRule::Spread => write!(
            f,
            "topology spread over {key} leaves no domain within maxSkew; raise maxSkew or allow more \
             domains"
        ),
        TopologyRule::Affinity => write!(
            f,
            "pod affinity over {key} finds no domain with a matching pod where it could run"
        ),
        TopologyRule::AntiAffinity => {
            write!(f, "pod anti-affinity over {key} leaves no free domain; allow more domains")
        }
    }
}
