//! Everything about a pod that decides where it may run, shared by all pods of a workload.
//!
//! Invariant: two pods of one shape are interchangeable to the planner.

use std::collections::BTreeSet;

use crate::vocabulary::ids::ShapeId;
use crate::vocabulary::labels::{Labels, NODE_POOL};
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::requirements::selector::LabelSelector;
use crate::vocabulary::resources::Resources;
use crate::vocabulary::taint::Toleration;

/// What a pod needs of a node and of its neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodShape {
    /// Content hash.
    pub id: ShapeId,
    /// Namespace.
    pub namespace: String,
    /// Labels that selectors may look at.
    pub labels: Labels,
    /// What one pod requests; `pods` is 1.
    pub requests: Resources,
    /// `spec.nodeSelector`.
    pub node_selector: Labels,
    /// Required node affinity: alternatives, each a conjunction. Empty means no constraint.
    pub required_node_terms: Vec<Requirements>,
    /// Preferred node affinity.
    pub preferred_node_terms: Vec<PreferredTerm>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Topology spread constraints.
    pub topology_spread: Vec<TopologySpread>,
    /// Required pod affinity.
    pub required_affinity: Vec<PodAffinityTerm>,
    /// Required pod anti-affinity.
    pub required_anti_affinity: Vec<PodAffinityTerm>,
    /// Preferred pod affinity.
    pub preferred_affinity: Vec<PodAffinityTerm>,
    /// Preferred pod anti-affinity.
    pub preferred_anti_affinity: Vec<PodAffinityTerm>,
    /// Host ports in use.
    pub host_ports: Vec<HostPort>,
    /// What volumes add to the node's requirements: alternatives, each a conjunction.
    pub volume_terms: Vec<Requirements>,
    /// Scheduling priority.
    pub priority: i32,
    /// Owner as `Kind/name`; empty for bare pods.
    pub owner: String,
    /// True for pods of a DaemonSet: overhead on every node, never a reason to launch.
    pub is_daemon: bool,
    /// Why these pods can never be scheduled (a missing volume claim ...); none when they can.
    pub unschedulable: Option<String>,
    /// Who schedules these pods; empty for kube-scheduler.
    pub scheduler: String,
}

/// A conjunction that is wanted, not required.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreferredTerm {
    /// 1 to 100; larger is wanted more.
    pub weight: i32,
    /// All of them must hold for the term to count.
    pub requirements: Requirements,
}

/// Bounds how unevenly matching pods spread over a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologySpread {
    /// Largest allowed difference to the emptiest domain; at least 1.
    pub max_skew: i64,
    /// Node label whose values are the domains.
    pub topology_key: String,
    /// True for ScheduleAnyway: a preference, not a condition.
    pub schedule_anyway: bool,
    /// Pods counted, in the pod's own namespace; `matchLabelKeys` are merged in.
    pub selector: LabelSelector,
    /// Number of domains below which the minimum counts as zero.
    pub min_domains: Option<i64>,
    /// True when nodes that the pod's node affinity excludes are not counted (the default).
    pub honor_node_affinity: bool,
    /// True when nodes whose taints the pod does not tolerate are not counted.
    pub honor_node_taints: bool,
}

/// Relates a pod to other pods by topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodAffinityTerm {
    /// Node label whose equal values mean the same place.
    pub topology_key: String,
    /// Pods it relates to; none selects none.
    pub selector: Option<LabelSelector>,
    /// Namespaces of those pods.
    pub namespaces: Namespaces,
    /// 1 to 100 in preferred lists, 0 in required ones.
    pub weight: i32,
}

/// Namespaces that a term speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Namespaces {
    /// The pod's own.
    #[default]
    Own,
    /// Every one.
    All,
    /// These.
    Listed(Vec<String>),
}

/// A port that a pod occupies on its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// Port number.
    pub port: u16,
    /// TCP, UDP or SCTP.
    pub protocol: String,
    /// Host address; empty means every address.
    pub host_ip: String,
}

impl HostPort {
    /// True when both cannot be open on one node.
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        let any = |ip: &str| matches!(ip, "" | "0.0.0.0" | "::");
        self.port == other.port
            && self.protocol == other.protocol
            && (self.host_ip == other.host_ip || any(&self.host_ip) || any(&other.host_ip))
    }
}

impl PodAffinityTerm {
    /// True when the term of a pod in `own` selects a pod of `shape`.
    #[must_use]
    pub fn selects(&self, own: &str, shape: &PodShape) -> bool {
        let namespace = match &self.namespaces {
            Namespaces::Own => shape.namespace == own,
            Namespaces::All => true,
            Namespaces::Listed(names) => names.contains(&shape.namespace),
        };
        namespace && self.selector.as_ref().is_some_and(|s| s.selects(&shape.labels))
    }
}

impl TopologySpread {
    /// True when the constraint of a pod in `own` counts a pod of `shape`.
    #[must_use]
    pub fn selects(&self, own: &str, shape: &PodShape) -> bool {
        shape.namespace == own && self.selector.selects(&shape.labels)
    }
}

impl PodShape {
    /// Labels by whose values its rules and preferences about other pods tell nodes apart, each
    /// once.
    #[must_use]
    pub fn topology_keys(&self) -> BTreeSet<&str> {
        let spreads = self.topology_spread.iter().map(|spread| spread.topology_key.as_str());
        let terms = [
            &self.required_affinity,
            &self.required_anti_affinity,
            &self.preferred_affinity,
            &self.preferred_anti_affinity,
        ];
        let terms = terms.into_iter().flatten().map(|term| term.topology_key.as_str());
        spreads.chain(terms).collect()
    }

    /// True when its pods belong to their node: DaemonSet and mirror pods.
    #[must_use]
    pub fn stays_with_node(&self) -> bool {
        self.is_daemon || self.owner.starts_with("Node/")
    }

    /// True when a pod that goes comes again under its name: those of a StatefulSet, which want the
    /// room that they had.
    #[must_use]
    pub fn returns(&self) -> bool {
        self.owner.starts_with("StatefulSet/")
    }

    /// The owner, or the shape itself where nobody owns its pods.
    #[must_use]
    pub fn workload(&self) -> &str {
        if self.owner.is_empty() { self.id.as_str() } else { &self.owner }
    }

    /// Its pods as the subject of a reason.
    #[must_use]
    pub fn subject(&self) -> String {
        format!("Pods/{}/{}", self.namespace, self.workload())
    }

    /// True when its pods refuse every node that a NodePool makes: they are not ours to place.
    #[must_use]
    pub fn opts_out(&self) -> bool {
        let refuses = |wanted: &Requirements| {
            let pool = wanted.get(NODE_POOL);
            pool.is_some_and(|pool| pool.listed().is_some_and(BTreeSet::is_empty))
        };
        let alternatives = self.node_alternatives();
        !alternatives.is_empty() && alternatives.iter().all(refuses)
    }

    /// Alternatives for the node: selector, one required term and one volume term each. Never
    /// empty unless the terms contradict the selector in every combination.
    #[must_use]
    pub fn node_alternatives(&self) -> Vec<Requirements> {
        let affinity = self.affinity_alternatives();
        if self.volume_terms.is_empty() { affinity } else { each_of(&affinity, &self.volume_terms) }
    }

    /// The same without volumes: what a spread over nodes looks at.
    #[must_use]
    pub fn affinity_alternatives(&self) -> Vec<Requirements> {
        let selector = [Requirements::from_labels(&self.node_selector)];
        let none = [Requirements::new()];
        let terms = &self.required_node_terms;
        each_of(&selector, if terms.is_empty() { &none } else { terms })
    }
}

/// One of each in every combination that does not contradict itself.
fn each_of(some: &[Requirements], others: &[Requirements]) -> Vec<Requirements> {
    let mut combinations = Vec::new();
    for all in some.iter().flat_map(|one| others.iter().map(move |other| one.and(other))) {
        if !all.is_contradictory() && !combinations.contains(&all) {
            combinations.push(all);
        }
    }
    combinations
}
