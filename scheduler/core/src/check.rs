//! A second opinion on every plan: kube-scheduler's predicates, limits, budgets and the bound,
//! applied pod by pod and node by node.
//!
//! Invariant: slow, simple and independent. Nothing is shared with the planner but how facts are
//! read (which labels something sold has, what a claim draws on limits, whom pods may wait for), so
//! a mistake in its decisions is not repeated here. A violation names the part of the plan that it
//! is about; [`cut`] takes it out.

pub(crate) mod affinity;
mod capacity;
mod census;
mod cost;
mod cut;
mod disruption;
mod nodes;
mod predicates;
mod replicas;
mod topology;

use std::fmt;

use crate::answer::Plan;
use crate::question::PlanInput;
use census::Census;
pub use cut::cut;
pub use cut::part::Part;
use nodes::Nodes;

/// Something wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Which rule is broken.
    pub rule: Rule,
    /// By what, for people.
    pub detail: String,
    /// What would have to go, all of it; nothing when the plan as a whole is to blame.
    pub about: Vec<Part>,
}

/// Rules that a plan must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Every pod to place is placed or unplaced, once; every move belongs to a node that goes.
    Complete,
    /// Targets exist and may take pods; launches have 1 to 60 candidates, on offer, least cost
    /// first.
    Target,
    /// Requests fit what a node has, DaemonSets included.
    Resources,
    /// Taints are tolerated.
    Taints,
    /// Node selector, node affinity and volumes are met by whatever candidate is bought.
    NodeAffinity,
    /// No host port is taken twice.
    HostPorts,
    /// Hard topology spread.
    Spread,
    /// Required pod affinity.
    Affinity,
    /// Required pod anti-affinity, of new pods and of those already there.
    AntiAffinity,
    /// NodePool limits and reservations.
    Limits,
    /// As many values of a label stay open as `minValues` asks for.
    MinValues,
    /// NodePool disruption budgets.
    NodeBudget,
    /// PodDisruptionBudgets.
    DisruptionBudget,
    /// do-not-disrupt on pods and nodes, consolidateAfter, and nodes that are not ours.
    Disruptable,
    /// Pools with replicas keep as many nodes, and no others get a node that no pod waits for.
    Replicas,
    /// A consolidation saves cost whichever candidates are bought.
    Saving,
    /// The lower bound holds.
    Bound,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}

/// Everything wrong with a plan, in order of rule; empty for a sound one.
#[must_use]
pub fn check(plan: &Plan, input: &PlanInput) -> Vec<Violation> {
    let mut findings = Findings::default();
    let nodes = Nodes::after(plan, input, &mut findings);
    predicates::check(&nodes, &mut findings);
    let census = Census::of(&nodes);
    topology::check(&census, &mut findings);
    affinity::check(&census, &mut findings);
    capacity::check(plan, input, &mut findings);
    disruption::check(plan, input, &mut findings);
    replicas::check(plan, input, &mut findings);
    findings.0.sort();
    findings.0.dedup();
    findings.0
}

/// What has been found so far.
#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, rule: Rule, (about, detail): (Vec<Part>, String)) {
        self.0.push(Violation { rule, detail, about });
    }

    /// Adds what is found unless the rule holds.
    fn require(&mut self, holds: bool, rule: Rule, found: impl FnOnce() -> (Vec<Part>, String)) {
        if !holds {
            self.add(rule, found());
        }
    }
}
