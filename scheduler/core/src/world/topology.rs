//! Topology rules of all shapes, and how many pods each domain holds.
//!
//! Invariant: rules over single nodes become [`NodeRules`], rules over wider domains become
//! [`Group`]s with a tally for each domain. Preferences are kept apart from conditions: a
//! preference orders domains and nodes, it never rules one out.

mod collect;
mod group;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

pub(crate) use group::{Group, GroupRule, GroupSpec, NodeFilter, ShapeSet};

use crate::pack::problem::rules::{NodeRule, NodeRules, RuleKind};
use crate::vocabulary::labels::HOSTNAME;
use crate::vocabulary::resources::total;
use crate::world::shape::PodShape;

/// How many of the pods that a spread over hosts counts one node may hold, by the spread's place
/// among all rules; the others allow their skew.
pub(crate) type Heights = BTreeMap<usize, i64>;

/// All rules of a world's shapes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    /// Rules and preferences over wide domains.
    pub(crate) groups: Vec<Group>,
    /// Rules over nodes.
    pub(crate) node_rules: NodeRules,
    /// Preferences over nodes.
    pub(crate) node_preferences: NodeRules,
    of_shape: Rc<Vec<Vec<usize>>>,
}

impl Topology {
    /// Collects the rules of the shapes; nothing is counted yet.
    pub(crate) fn of(shapes: &[&PodShape], heights: &Heights) -> Self {
        let mut groups = Vec::new();
        let (mut rules, mut preferences) = (host_port_rules(shapes), Vec::new());
        for (at, spec) in collect::collect(shapes).into_iter().enumerate() {
            match (spec.key.as_str(), spec.preference) {
                (HOSTNAME, None) => {
                    let kind = match heights.get(&at) {
                        Some(height) => RuleKind::AtMost(*height),
                        None => node_kind(spec.rule),
                    };
                    rules.push(node_rule(&spec, kind, shapes.len()));
                }
                (HOSTNAME, Some(_)) => {
                    preferences.push(node_rule(&spec, node_kind(spec.rule), shapes.len()));
                }
                _ => groups.push(Group::new(spec)),
            }
        }
        let mut of_shape = vec![Vec::new(); shapes.len()];
        for (index, group) in groups.iter().enumerate() {
            let touched: BTreeSet<usize> = group.spec.touched().collect();
            touched.into_iter().for_each(|shape| of_shape[shape].push(index));
        }
        Self {
            groups,
            node_rules: NodeRules::new(rules, shapes.len()),
            node_preferences: NodeRules::new(preferences, shapes.len()),
            of_shape: Rc::new(of_shape),
        }
    }

    /// Groups that a shape obeys or is counted by.
    pub(crate) fn groups_of(&self, shape: usize) -> impl Iterator<Item = &Group> {
        self.of_shape[shape].iter().map(|index| &self.groups[*index])
    }

    /// True when no rule about other pods, or about ports, concerns a shape: room is all that it
    /// takes.
    pub(crate) fn is_plain(&self, shape: usize) -> bool {
        self.node_rules.is_free(shape) && self.of_shape[shape].is_empty()
    }

    /// How far preferences over wide domains are from being granted; smaller is better, for equal
    /// pods.
    pub(crate) fn ungranted(&self) -> i64 {
        let preferences =
            self.groups.iter().filter_map(|group| Some((group.spec.preference?, group)));
        total(preferences.map(|(weight, group)| weight.saturating_mul(group.ungranted())))
    }

    /// Conditions by which pods of a shape need company.
    pub(crate) fn required_affinities(&self, shape: usize) -> impl Iterator<Item = &Group> {
        self.groups_of(shape).filter(move |Group { spec, .. }| {
            spec.preference.is_none()
                && spec.rule == GroupRule::Affinity
                && spec.owners.contains(shape)
        })
    }

    /// Adds domains that the spreads of a shape over one topology key have to level.
    pub(crate) fn widen(
        &mut self,
        shape: usize,
        key: &str,
        domains: impl Fn(&NodeFilter) -> Vec<String>,
    ) {
        for index in &self.of_shape[shape] {
            let group = &mut self.groups[*index];
            let spec = &group.spec;
            if spec.key == key && spec.rule.is_spread() && spec.owners.contains(shape) {
                let new = domains(&spec.filter);
                group.widen(new);
            }
        }
    }

    /// Counts pods of a shape: for each of its groups as many, and in the domain, that `count`
    /// says. The number may be negative.
    pub(crate) fn record<'l>(
        &mut self,
        shape: usize,
        count: impl Fn(&GroupSpec) -> Option<(&'l str, i64)>,
    ) {
        for index in &self.of_shape[shape] {
            let group = &mut self.groups[*index];
            if let Some((domain, count)) = count(&group.spec) {
                group.record(shape, domain, count);
            }
        }
    }

    /// Counts pods of a shape in one domain of one topology key; `count` may be negative.
    pub(crate) fn record_in(&mut self, shape: usize, key: &str, domain: &str, count: i64) {
        for index in &self.of_shape[shape] {
            let group = &mut self.groups[*index];
            if group.spec.key == key {
                group.record(shape, domain, count);
            }
        }
    }
}

/// Hard spreads over hosts, by their place among all rules.
pub(crate) fn host_spreads(shapes: &[&PodShape]) -> Vec<(usize, GroupSpec)> {
    let all = collect::collect(shapes).into_iter().enumerate();
    let over_hosts = |spec: &GroupSpec| {
        spec.rule.is_spread() && spec.preference.is_none() && spec.key == HOSTNAME
    };
    all.filter(|(_, spec)| over_hosts(spec)).collect()
}

fn node_rule(spec: &GroupSpec, kind: RuleKind, shapes: usize) -> NodeRule {
    NodeRule { kind, owners: spec.owners.flags(shapes), members: spec.members.flags(shapes) }
}

/// On a node the spread's minimum is zero, since an empty node can always be made. Whoever knows
/// better gives a height.
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
        let members = with_ports.iter().copied().filter(|shape| conflict(*owner, *shape));
        NodeRule {
            kind: RuleKind::Apart,
            owners: ShapeSet::of([*owner]).flags(shapes.len()),
            members: ShapeSet::of(members).flags(shapes.len()),
        }
    };
    with_ports.iter().map(rule).collect()
}
