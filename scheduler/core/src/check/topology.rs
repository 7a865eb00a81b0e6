//! Rules between pods that a count decides: spread and anti-affinity.
//!
//! Invariant: a node that could end up in several domains counts in each of them where that is
//! worse. Preferences are not checked.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::census::{Census, Count};
use crate::check::nodes::{Form, NodeAfter};
use crate::check::{Findings, Part, Rule};
use crate::vocabulary::labels::{HOSTNAME, Labels};
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
        let hard = shape.topology_spread.iter().filter(|rule| !rule.schedule_anyway);
        for rule in hard.filter(|_| !arrived.is_empty()) {
            spread(census, &arrived, rule, findings);
        }
    }
}

/// Pods that were there before are kube-scheduler's business, whatever it thought; a conflict
/// counts when a pod that the plan brings is part of it.
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
                let name = census.name(group.node);
                let about = too_near(census, group, &term.topology_key, (domain, &selected));
                (about, format!("{} on {name}: {domain} is not free", shape.id))
            });
        }
    }
}

/// Who would have to go for a domain to be free: the pods themselves when somebody was there before
/// them or comes first in order, else all others that the plan brings there.
fn too_near(
    census: &Census<'_>,
    group: &Group<'_>,
    key: &str,
    (domain, selected): (&String, &[bool]),
) -> Vec<Part> {
    let domains = census.domains(key);
    let there = (0..census.nodes.len()).filter(|node| domains[*node].contains(domain));
    let others = there.flat_map(|node| census.crowds[node].iter().map(move |it| (node, it)));
    let others = others.filter(|(node, (kind, _))| {
        selected[**kind] && (*node, **kind) != (group.node, group.kind)
    });
    let others: Vec<_> = others.collect();
    let before = |(node, (kind, count)): &(usize, (&usize, &Count))| {
        count.all > count.arrived || (*node, **kind) < (group.node, group.kind)
    };
    if group.arrived && (others.is_empty() || others.iter().any(before)) {
        return vec![census.arrivals(group.node, group.kind, i64::MAX)];
    }
    let news = others.iter().filter(|(_, (_, count))| count.arrived > 0);
    news.map(|(node, (kind, _))| census.arrivals(*node, **kind, i64::MAX)).collect()
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
    let emptiest = counts.values().map(|c| c.certain).min().unwrap_or(0);
    let least = if few { 0 } else { emptiest };
    let domains = census.domains(key);
    for group in arrived {
        let domains = &domains[group.node];
        findings.require(!domains.is_empty(), Rule::Spread, || {
            let detail = format!("{} on {}: no label {key}", shape.id, census.name(group.node));
            (vec![census.arrivals(group.node, group.kind, i64::MAX)], detail)
        });
        for domain in domains {
            let here = counts.get(domain).copied().unwrap_or_default();
            let skew = here.certain + here.possible - least;
            findings.require(skew <= rule.max_skew, Rule::Spread, || {
                let last = |group: &&&Group<'_>| census.domains(key)[group.node].contains(domain);
                let last = arrived.iter().rev().find(last).unwrap_or(group);
                let over = census.arrivals(last.node, last.kind, skew - rule.max_skew);
                (vec![over], format!("{} over {key}: {domain} is {skew} ahead", shape.id))
            });
        }
    }
}

/// Pods that a spread counts in a domain.
#[derive(Clone, Copy, Default)]
struct Crowded {
    /// Those that will be there.
    certain: i64,
    /// Those that may turn out to be.
    possible: i64,
}

/// Pods that a spread rule counts in each domain of the nodes it looks at.
fn counts<'c>(
    census: &'c Census<'_>,
    shape: &PodShape,
    rule: &'c TopologySpread,
) -> BTreeMap<String, Crowded> {
    let selected = census.select(|other| rule.selects(&shape.namespace, other));
    let hard = shape.topology_spread.iter().filter(|rule| !rule.schedule_anyway);
    let keys: BTreeSet<&str> = hard.map(|rule| rule.topology_key.as_str()).collect();
    let keyed: Vec<_> = keys.iter().map(|key| census.domains(key)).collect();
    let domains = census.domains(&rule.topology_key);
    let mut counts: BTreeMap<String, Crowded> = BTreeMap::new();
    for (at, node) in census.nodes.iter().enumerate() {
        let crowd = census.crowds[at].iter().filter(|(kind, _)| selected[**kind]);
        // A spread does not count pods that are ending.
        let pods: i64 = crowd.map(|(_, count)| count.all - count.ending).sum();
        // A node on its way out is gone once its pods are; over wider domains it is counted while
        // any run.
        let host = rule.topology_key == HOSTNAME;
        let gone = if host {
            (node.leaves || node.is_disrupted) && pods == 0
        } else {
            node.leaves && census.crowds[at].is_empty()
        };
        // One that is launched for nobody comes after those that wait now.
        let later = node.stands_by && census.crowds[at].is_empty();
        if gone
            || later
            || !tolerated(node, shape, rule)
            || keyed.iter().any(|key| key[at].is_empty())
        {
            continue;
        }
        let here = if rule.honor_node_affinity && chooses(shape) {
            narrowed(node, shape, rule)
        } else {
            let certain = domains[at].len() == 1;
            (domains[at].iter().map(String::as_str).collect(), certain)
        };
        for domain in here.0 {
            if !counts.contains_key(domain) {
                counts.insert(domain.to_owned(), Crowded::default());
            }
            let Some(sum) = counts.get_mut(domain) else { continue };
            *(if here.1 { &mut sum.certain } else { &mut sum.possible }) += pods;
        }
    }
    counts
}

fn tolerated(node: &NodeAfter<'_>, shape: &PodShape, rule: &TopologySpread) -> bool {
    let tolerates = |taint| shape.tolerations.iter().any(|t| t.covers(taint));
    !rule.honor_node_taints || node.taints.iter().all(|t| !t.repels() || tolerates(t))
}

/// Domains in which node affinity lets a spread see a node, and whether it is certain to be in the
/// one that this names.
fn narrowed<'n>(
    node: &'n NodeAfter<'_>,
    shape: &PodShape,
    rule: &TopologySpread,
) -> (BTreeSet<&'n str>, bool) {
    let forms = node.forms.iter().filter(|form| affinity_holds(shape, &form.labels));
    let seen: Vec<&Form> = forms.collect();
    let value = |form: &&'n Form| match rule.topology_key.as_str() {
        HOSTNAME => Some(node.name.as_str()),
        key => form.labels.get(key).map(String::as_str),
    };
    let domains: BTreeSet<&str> = seen.iter().filter_map(value).collect();
    let certain = domains.len() == 1 && seen.len() == node.forms.len();
    (domains, certain)
}

/// True when the pods choose among nodes.
fn chooses(shape: &PodShape) -> bool {
    !shape.node_selector.is_empty() || !shape.required_node_terms.is_empty()
}

/// Node selector and any required term; volumes do not matter to a spread.
fn affinity_holds(shape: &PodShape, labels: &Labels) -> bool {
    let terms = &shape.required_node_terms;
    shape.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value))
        && (terms.is_empty() || terms.iter().any(|term| term.allow(labels)))
}
