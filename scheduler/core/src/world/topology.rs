//! Topology rules of all shapes, and how many pods each domain holds.
//!
//! Invariant: only hard rules are here; a wish never costs money. Rules over single nodes become
//! [`NodeRules`], rules over wider domains become [`Group`]s with a tally for each domain.

use std::collections::{BTreeMap, BTreeSet};

use super::shape::{PodAffinityTerm, PodShape, TopologySpread};
use crate::pack::rules::{NodeRule, NodeRules, RuleKind, Tally};
use crate::reason::TopologyRule;
use crate::vocabulary::labels::HOSTNAME;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::taint::Toleration;

/// A rule over domains wider than a node.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// What it demands.
    pub(crate) rule: GroupRule,
    /// Label key of its domains.
    pub(crate) key: String,
    /// Whether each shape obeys it.
    pub(crate) owners: Vec<bool>,
    /// Whether each shape is counted by it.
    pub(crate) members: Vec<bool>,
    /// Nodes that count; none means all.
    pub(crate) filter: NodeFilter,
    /// Pods in each domain.
    pub(crate) tallies: BTreeMap<String, Tally>,
    /// Domains that a spread was made over.
    pub(crate) universe: BTreeSet<String>,
}

/// What a group demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupRule {
    /// Members of any two domains differ by at most this much.
    Spread {
        /// Largest difference.
        max_skew: i64,
        /// Fewer domains than this count as one empty domain.
        min_domains: i64,
    },
    /// An owner needs a member in its domain.
    Affinity,
    /// An owner bears no other member in its domain.
    AntiAffinity,
}

/// Which nodes a spread rule looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeFilter {
    /// Alternatives of node affinity; none when not honoured.
    pub(crate) alternatives: Option<Vec<Requirements>>,
    /// Tolerations; none when taints are not honoured.
    pub(crate) tolerations: Option<Vec<Toleration>>,
}

/// All rules of a world's shapes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    /// Rules over wide domains.
    pub(crate) groups: Vec<Group>,
    /// Rules over nodes.
    pub(crate) node_rules: NodeRules,
    of_shape: Vec<Vec<usize>>,
}

impl GroupRule {
    /// The kind, for reasons.
    pub(crate) fn kind(self) -> TopologyRule {
        match self {
            Self::Spread { .. } => TopologyRule::Spread,
            Self::Affinity => TopologyRule::Affinity,
            Self::AntiAffinity => TopologyRule::AntiAffinity,
        }
    }
}

/// What makes two constraints the same rule.
#[derive(PartialEq)]
struct Spec<'a> {
    rule: GroupRule,
    key: &'a str,
    filter: NodeFilter,
    selects: Selects<'a>,
}

#[derive(PartialEq)]
enum Selects<'a> {
    Spread(&'a str, &'a TopologySpread),
    Term(&'a str, &'a PodAffinityTerm),
}

impl Selects<'_> {
    fn selects(&self, shape: &PodShape) -> bool {
        match self {
            Self::Spread(own, spread) => spread.selects(own, shape),
            Self::Term(own, term) => term.selects(own, shape),
        }
    }
}

impl Topology {
    /// Collects the rules of the shapes; nothing is counted yet.
    pub(crate) fn of(shapes: &[&PodShape]) -> Self {
        let mut specs: Vec<(Spec<'_>, Vec<bool>)> = Vec::new();
        for (index, shape) in shapes.iter().enumerate() {
            for spec in specs_of(shape) {
                let at = specs.iter().position(|(known, _)| *known == spec).unwrap_or_else(|| {
                    specs.push((spec, vec![false; shapes.len()]));
                    specs.len() - 1
                });
                specs[at].1[index] = true;
            }
        }
        let mut topology = Self::default();
        let mut rules = host_port_rules(shapes);
        for (spec, owners) in specs {
            let members: Vec<bool> = shapes.iter().map(|s| spec.selects.selects(s)).collect();
            if spec.key == HOSTNAME {
                rules.push(NodeRule { kind: node_kind(spec.rule), owners, members });
            } else {
                topology.groups.push(Group {
                    rule: spec.rule,
                    key: spec.key.to_owned(),
                    owners,
                    members,
                    filter: spec.filter,
                    tallies: BTreeMap::new(),
                    universe: BTreeSet::new(),
                });
            }
        }
        topology.node_rules = NodeRules::new(rules, shapes.len());
        let touches = |g: &Group, shape: usize| g.owners[shape] || g.members[shape];
        topology.of_shape = (0..shapes.len())
            .map(|s| {
                (0..topology.groups.len()).filter(|g| touches(&topology.groups[*g], s)).collect()
            })
            .collect();
        topology
    }

    /// Groups that a shape obeys or is counted by.
    pub(crate) fn groups_of(&self, shape: usize) -> &[usize] {
        &self.of_shape[shape]
    }

    /// Counts pods of a shape in the domains that `domain` names; `admits` says whether a filter lets
    /// the node count.
    pub(crate) fn record<'l>(
        &mut self,
        shape: usize,
        count: i64,
        domain: impl Fn(&str) -> Option<&'l str>,
        admits: impl Fn(&NodeFilter) -> bool,
    ) {
        for index in &self.of_shape[shape] {
            let group = &mut self.groups[*index];
            let Some(domain) = domain(&group.key) else { continue };
            if admits(&group.filter) {
                group.record(shape, domain, count);
            }
        }
    }
}

impl Group {
    /// Counts pods of a shape in a domain; `count` may be negative.
    pub(crate) fn record(&mut self, shape: usize, domain: &str, count: i64) {
        let (member, owner) = (self.members[shape], self.owners[shape]);
        if !self.tallies.contains_key(domain) {
            self.tallies.insert(domain.to_owned(), Tally::default());
        }
        if let Some(tally) = self.tallies.get_mut(domain) {
            tally.members += if member { count } else { 0 };
            tally.owners += if owner { count } else { 0 };
        }
    }

    /// Pods in a domain.
    pub(crate) fn tally(&self, domain: &str) -> Tally {
        self.tallies.get(domain).copied().unwrap_or_default()
    }

    /// Members in the emptiest of some domains, as a spread counts it; zero for other rules.
    pub(crate) fn floor<'d>(&self, domains: impl ExactSizeIterator<Item = &'d String>) -> i64 {
        let GroupRule::Spread { min_domains, .. } = self.rule else { return 0 };
        if i64::try_from(domains.len()).unwrap_or(i64::MAX) < min_domains {
            return 0;
        }
        domains.map(|name| self.tally(name).members).min().unwrap_or(0)
    }

    /// True when no domain holds a member.
    pub(crate) fn is_unbegun(&self) -> bool {
        self.tallies.values().all(|tally| tally.members == 0)
    }
}

fn specs_of(shape: &PodShape) -> Vec<Spec<'_>> {
    let own = shape.namespace.as_str();
    let hard = shape.topology_spread.iter().filter(|spread| !spread.schedule_anyway);
    let spreads = hard.map(|spread| Spec {
        rule: GroupRule::Spread {
            max_skew: spread.max_skew.max(1),
            min_domains: spread.min_domains.unwrap_or(1),
        },
        key: &spread.topology_key,
        filter: filter_of(shape, spread),
        selects: Selects::Spread(own, spread),
    });
    let together = shape.required_affinity.iter().map(|t| term_spec(own, t, GroupRule::Affinity));
    let terms = shape.required_anti_affinity.iter();
    let apart = terms.map(|t| term_spec(own, t, GroupRule::AntiAffinity));
    spreads.chain(together).chain(apart).collect()
}

fn term_spec<'a>(own: &'a str, term: &'a PodAffinityTerm, rule: GroupRule) -> Spec<'a> {
    let filter = NodeFilter::default();
    Spec { rule, key: &term.topology_key, filter, selects: Selects::Term(own, term) }
}

fn filter_of(shape: &PodShape, spread: &TopologySpread) -> NodeFilter {
    NodeFilter {
        alternatives: spread.honor_node_affinity.then(|| shape.node_alternatives()),
        tolerations: spread.honor_node_taints.then(|| shape.tolerations.clone()),
    }
}

/// On a node the spread's minimum is zero, since an empty node can always be made.
fn node_kind(rule: GroupRule) -> RuleKind {
    match rule {
        GroupRule::Spread { max_skew, .. } => RuleKind::AtMost(max_skew),
        GroupRule::Affinity => RuleKind::Together,
        GroupRule::AntiAffinity => RuleKind::Apart,
    }
}

/// Shapes with host ports stay apart from every shape whose ports conflict, themselves included.
fn host_port_rules(shapes: &[&PodShape]) -> Vec<NodeRule> {
    let with_ports: Vec<usize> =
        (0..shapes.len()).filter(|shape| !shapes[*shape].host_ports.is_empty()).collect();
    let conflict = |a: usize, b: usize| {
        let ports = &shapes[b].host_ports;
        shapes[a].host_ports.iter().any(|port| ports.iter().any(|other| port.conflicts(other)))
    };
    let rule = |owner: &usize| {
        let only = |shape: usize| shape == *owner;
        let members = |shape: usize| with_ports.contains(&shape) && conflict(*owner, shape);
        NodeRule {
            kind: RuleKind::Apart,
            owners: (0..shapes.len()).map(only).collect(),
            members: (0..shapes.len()).map(members).collect(),
        }
    };
    with_ports.iter().map(rule).collect()
}
