//! Rules between pods: spread, affinity and anti-affinity, by counting pods in domains.
//!
//! Invariant: a node that could end up in several domains counts in each of them where that is worse.
//! Wishes are not checked.

use std::collections::{BTreeMap, BTreeSet};

use super::census::Census;
use super::nodes::NodeAfter;
use super::{Findings, Rule};
use crate::vocabulary::labels::HOSTNAME;
use crate::world::shape::{PodAffinityTerm, PodShape, TopologySpread};

/// Pods of one shape on one node.
struct Group<'c> {
    node: usize,
    /// Index of the shape.
    kind: usize,
    shape: &'c PodShape,
    arrived: bool,
}

pub(super) fn check(census: &Census<'_>, findings: &mut Findings) {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (node, crowd) in census.crowds.iter().enumerate() {
        for (kind, count) in crowd {
            let shape = census.shapes[*kind];
            groups.push(Group { node, kind: *kind, shape, arrived: count.arrived > 0 });
        }
    }
    // Pods of one shape are judged together, so that each rule is counted out once.
    groups.sort_by_key(|group| group.kind);
    for same in groups.chunk_by(|a, b| a.kind == b.kind) {
        let shape = same[0].shape;
        for term in &shape.required_anti_affinity {
            apart(census, same, term, findings);
        }
        let arrived: Vec<&Group<'_>> = same.iter().filter(|group| group.arrived).collect();
        for term in shape.required_affinity.iter().filter(|_| !arrived.is_empty()) {
            together(census, &arrived, term, findings);
        }
        let hard = shape.topology_spread.iter().filter(|rule| !rule.schedule_anyway);
        for rule in hard.filter(|_| !arrived.is_empty()) {
            spread(census, &arrived, rule, findings);
        }
    }
}

/// Pods that were there before are kube-scheduler's business, whatever it thought; a conflict counts
/// when a pod that the plan brings is part of it.
fn apart(census: &Census<'_>, same: &[Group<'_>], term: &PodAffinityTerm, findings: &mut Findings) {
    let shape = same[0].shape;
    let selected = census.select(|other| term.selects(&shape.namespace, other));
    let own = i64::from(term.selects(&shape.namespace, shape));
    let domains = census.domains(&term.topology_key);
    for group in same {
        for domain in &domains[group.node] {
            let found = census.sum(&term.topology_key, domain, &selected);
            let news = group.arrived || found.arrived > 0;
            findings.require(found.all <= own || !news, Rule::AntiAffinity, || {
                format!("{} on {}: {} is not free", shape.id, census.name(group.node), domain)
            });
        }
    }
}

/// A pod counts as company when it meets all terms at once.
fn together(
    census: &Census<'_>,
    arrived: &[&Group<'_>],
    term: &PodAffinityTerm,
    findings: &mut Findings,
) {
    let (key, shape) = (term.topology_key.as_str(), arrived[0].shape);
    let meets = |other: &PodShape| {
        shape.required_affinity.iter().all(|term| term.selects(&shape.namespace, other))
    };
    let selected = census.select(meets);
    let own = i64::from(meets(shape));
    let keys = shape.required_affinity.iter().map(|term| census.domains(&term.topology_key));
    let keys: Vec<_> = keys.collect();
    let everywhere = census.total(&selected, |at| keys.iter().any(|all| !all[at].is_empty()));
    let domains = census.domains(key);
    for group in arrived {
        let domains = &domains[group.node];
        let certain = domains.first().filter(|_| domains.len() == 1);
        let near = certain.map_or(0, |domain| census.sum(key, domain, &selected).all);
        let first = own == 1 && near == everywhere;
        findings.require(certain.is_some() && (near > own || first), Rule::Affinity, || {
            format!("{} on {}: no company in {key}", shape.id, census.name(group.node))
        });
    }
}

fn spread(
    census: &Census<'_>,
    arrived: &[&Group<'_>],
    rule: &TopologySpread,
    findings: &mut Findings,
) {
    let (key, shape) = (rule.topology_key.as_str(), arrived[0].shape);
    let counts = counts(census, shape, rule);
    let few = rule.min_domains.is_some_and(|least| (counts.len() as u64) < least.unsigned_abs());
    let zero = few || key == HOSTNAME;
    let least = if zero { 0 } else { counts.values().copied().min().unwrap_or(0) };
    let domains = census.domains(key);
    for group in arrived {
        let domains = &domains[group.node];
        findings.require(!domains.is_empty(), Rule::Spread, || {
            format!("{} on {}: no label {key}", shape.id, census.name(group.node))
        });
        for domain in domains {
            let skew = counts.get(domain).copied().unwrap_or(0) - least;
            findings.require(skew <= rule.max_skew, Rule::Spread, || {
                format!("{} over {key}: {domain} is {skew} ahead", shape.id)
            });
        }
    }
}

/// Pods that a spread rule counts in each domain of the nodes it looks at.
fn counts(census: &Census<'_>, shape: &PodShape, rule: &TopologySpread) -> BTreeMap<String, i64> {
    let selected = census.select(|other| rule.selects(&shape.namespace, other));
    let hard = shape.topology_spread.iter().filter(|rule| !rule.schedule_anyway);
    let keys: BTreeSet<&str> = hard.map(|rule| rule.topology_key.as_str()).collect();
    let keys: Vec<_> = keys.into_iter().map(|key| census.domains(key)).collect();
    let domains = census.domains(&rule.topology_key);
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for (at, node) in census.nodes.iter().enumerate() {
        if !counts_for(node, shape, rule) || (node.leaves && census.crowds[at].is_empty()) {
            continue;
        }
        if keys.iter().any(|domains| domains[at].is_empty()) {
            continue;
        }
        let crowd = census.crowds[at].iter().filter(|(kind, _)| selected[**kind]);
        // A spread does not count pods that are ending.
        let pods: i64 = crowd.map(|(_, count)| count.all - count.ending).sum();
        for domain in &domains[at] {
            match counts.get_mut(domain) {
                Some(sum) => *sum += pods,
                None => drop(counts.insert(domain.clone(), pods)),
            }
        }
    }
    counts
}

fn counts_for(node: &NodeAfter<'_>, shape: &PodShape, rule: &TopologySpread) -> bool {
    let affinity = |labels: &crate::labels::Labels| {
        let terms = &shape.required_node_terms;
        shape.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            && (terms.is_empty() || terms.iter().any(|term| term.allow(labels)))
    };
    let tolerates = |taint| shape.tolerations.iter().any(|t| t.covers(taint));
    let taints = || node.taints.iter().all(|taint| !taint.repels() || tolerates(taint));
    (!rule.honor_node_affinity || node.forms.iter().any(|form| affinity(&form.labels)))
        && (!rule.honor_node_taints || taints())
}
