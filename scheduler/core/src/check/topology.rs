//! Rules between pods: spread, affinity and anti-affinity, by counting pods in domains.
//!
//! Invariant: a node that could end up in several domains counts in each of them where that is worse.

use std::collections::{BTreeMap, BTreeSet};

use super::nodes::{NodeAfter, Nodes};
use super::{Findings, Rule};
use crate::vocabulary::labels::HOSTNAME;
use crate::world::shape::{PodAffinityTerm, PodShape, TopologySpread};

pub(super) fn check(nodes: &Nodes<'_>, findings: &mut Findings) {
    let all: Vec<&NodeAfter<'_>> = nodes.all.values().collect();
    let mut seen: BTreeSet<(String, bool)> = BTreeSet::new();
    for node in &all {
        for (uid, shape) in &node.pods {
            let arrived = node.arrived.contains(uid);
            // Pods of one shape on one node share their verdict.
            let fresh = seen.insert((format!("{}/{}", node.name, shape.id), arrived));
            if fresh && has_rules(shape) {
                apart(&all, node, shape, findings);
                if arrived {
                    together(&all, node, shape, findings);
                    spread(&all, node, shape, findings);
                }
            }
        }
    }
}

fn has_rules(shape: &PodShape) -> bool {
    !shape.topology_spread.is_empty()
        || !shape.required_affinity.is_empty()
        || !shape.required_anti_affinity.is_empty()
}

/// Domains that a node may be in.
fn domains(node: &NodeAfter<'_>, key: &str) -> BTreeSet<String> {
    if key == HOSTNAME {
        return BTreeSet::from([node.name.clone()]);
    }
    node.forms.iter().filter_map(|form| form.labels.get(key).cloned()).collect()
}

fn matching<'n>(
    node: &'n NodeAfter<'_>,
    term: &'n PodAffinityTerm,
    own: &'n str,
) -> impl Iterator<Item = bool> + 'n {
    let selected = node.pods.iter().filter(move |(_, shape)| term.selects(own, shape));
    selected.map(|(uid, _)| node.arrived.contains(uid))
}

fn apart(all: &[&NodeAfter<'_>], node: &NodeAfter<'_>, shape: &PodShape, findings: &mut Findings) {
    for term in &shape.required_anti_affinity {
        let here = domains(node, &term.topology_key);
        let shared = all.iter().filter(|n| !domains(n, &term.topology_key).is_disjoint(&here));
        let found: Vec<bool> = shared.flat_map(|n| matching(n, term, &shape.namespace)).collect();
        let own = usize::from(term.selects(&shape.namespace, shape));
        // Pods that were there before are kube-scheduler's business, whatever it thought.
        let news = found.contains(&true) || node_brings(node, shape);
        findings.require(found.len() <= own || !news, Rule::AntiAffinity, || {
            format!("{} on {}: {} is not free", shape.id, node.name, term.topology_key)
        });
    }
}

fn node_brings(node: &NodeAfter<'_>, shape: &PodShape) -> bool {
    node.pods.iter().any(|(uid, other)| other.id == shape.id && node.arrived.contains(uid))
}

fn together(
    all: &[&NodeAfter<'_>],
    node: &NodeAfter<'_>,
    shape: &PodShape,
    findings: &mut Findings,
) {
    for term in &shape.required_affinity {
        let here = domains(node, &term.topology_key);
        let count = |n: &&&NodeAfter<'_>| matching(n, term, &shape.namespace).count();
        let near: usize = all
            .iter()
            .filter(|n| here.len() == 1 && domains(n, &term.topology_key) == here)
            .map(|n| count(&n))
            .sum();
        let everywhere: usize = all.iter().map(|n| count(&n)).sum();
        let own = term.selects(&shape.namespace, shape);
        let first = own && everywhere == near;
        findings.require(near > usize::from(own) || first, Rule::Affinity, || {
            format!("{} on {}: no company in {}", shape.id, node.name, term.topology_key)
        });
    }
}

fn spread(all: &[&NodeAfter<'_>], node: &NodeAfter<'_>, shape: &PodShape, findings: &mut Findings) {
    for rule in shape.topology_spread.iter().filter(|rule| !rule.schedule_anyway) {
        let counts = counts(all, shape, rule);
        let few =
            rule.min_domains.is_some_and(|least| (counts.len() as u64) < least.unsigned_abs());
        let zero = few || rule.topology_key == HOSTNAME;
        let least = if zero { 0 } else { counts.values().copied().min().unwrap_or(0) };
        for domain in domains(node, &rule.topology_key) {
            let skew = counts.get(&domain).copied().unwrap_or(0) - least;
            findings.require(skew <= rule.max_skew, Rule::Spread, || {
                format!("{} over {}: {domain} is {skew} ahead", shape.id, rule.topology_key)
            });
        }
    }
}

/// Pods that a spread rule counts in each domain of the nodes it looks at.
fn counts(
    all: &[&NodeAfter<'_>],
    shape: &PodShape,
    rule: &TopologySpread,
) -> BTreeMap<String, i64> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for node in all.iter().filter(|node| counts_for(node, shape, rule)) {
        let pods = node.pods.iter().filter(|(_, pod)| rule.selects(&shape.namespace, pod)).count();
        for domain in domains(node, &rule.topology_key) {
            *counts.entry(domain).or_default() += i64::try_from(pods).unwrap_or(i64::MAX);
        }
    }
    counts
}

fn counts_for(node: &NodeAfter<'_>, shape: &PodShape, rule: &TopologySpread) -> bool {
    let alternatives = shape.node_alternatives();
    let affinity = node.forms.iter().any(|form| alternatives.iter().any(|a| a.allow(&form.labels)));
    let tolerates = |taint| shape.tolerations.iter().any(|t| t.covers(taint));
    let taints = node.taints.iter().all(|taint| !taint.repels() || tolerates(taint));
    (affinity || !rule.honor_node_affinity) && (taints || !rule.honor_node_taints)
}
