//! From the constraints of shapes to rules, each with those who obey it and those it counts.
//!
//! Invariant: equal constraints of different shapes are one rule; finding whom a rule counts looks
//! only at shapes that share a label with its selector, so the work grows with shapes, not with
//! their square.

use std::collections::BTreeMap;

use crate::vocabulary::requirements::selector::LabelSelector;
use crate::world::shape::{Namespaces, PodAffinityTerm, PodShape, TopologySpread};
use crate::world::topology::group::{GroupRule, GroupSpec, NodeFilter, ShapeSet};

/// Weight of a spread that is only wished for; preferred terms have 1 to 100.
const SPREAD_WISH_WEIGHT: i64 = 100;

/// What makes two constraints the same rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Same<'a> {
    rule: GroupRule,
    preference: Option<i64>,
    key: &'a str,
    filter: NodeFilter,
    /// Members meet all of them.
    selects: Vec<Select<'a>>,
}

/// Pods that a term speaks of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Select<'a> {
    /// Their namespaces; none means all.
    namespaces: Option<Vec<&'a str>>,
    /// Their labels; none selects nothing.
    selector: Option<&'a LabelSelector>,
}

/// The rules of all shapes, in order of what they are.
pub(super) fn collect(shapes: &[&PodShape]) -> Vec<GroupSpec> {
    let mut known: BTreeMap<Same<'_>, ShapeSet> = BTreeMap::new();
    for (index, shape) in shapes.iter().enumerate() {
        for same in constraints(shape) {
            known.entry(same).or_default().push(index);
        }
    }
    let index = Index::new(shapes);
    let mut members: BTreeMap<Vec<Select<'_>>, ShapeSet> = BTreeMap::new();
    let mut collected = Vec::with_capacity(known.len());
    for (same, owners) in known {
        let Same { rule, preference, key, filter, selects } = same;
        let members = members.entry(selects.clone()).or_insert_with(|| index.members(&selects));
        let (key, members) = (key.to_owned(), members.clone());
        collected.push(GroupSpec { rule, preference, key, owners, members, filter });
    }
    collected
}

fn constraints(shape: &PodShape) -> Vec<Same<'_>> {
    let mut all: Vec<Same<'_>> =
        shape.topology_spread.iter().map(|spread| spread_rule(shape, spread)).collect();
    // kube-scheduler counts for required affinity only pods that meet all terms at once.
    let together: Vec<Select<'_>> =
        shape.required_affinity.iter().map(|term| select(shape, term)).collect();
    for term in &shape.required_affinity {
        all.push(term_rule(GroupRule::Affinity, None, term, together.clone()));
    }
    for term in &shape.required_anti_affinity {
        all.push(term_rule(GroupRule::AntiAffinity, None, term, vec![select(shape, term)]));
    }
    let weight = |term: &PodAffinityTerm| Some(i64::from(term.weight.max(1)));
    for term in &shape.preferred_affinity {
        let select = vec![select(shape, term)];
        all.push(term_rule(GroupRule::Affinity, weight(term), term, select));
    }
    for term in &shape.preferred_anti_affinity {
        let select = vec![select(shape, term)];
        all.push(term_rule(GroupRule::AntiAffinity, weight(term), term, select));
    }
    all
}

fn spread_rule<'a>(shape: &'a PodShape, spread: &'a TopologySpread) -> Same<'a> {
    let namespaces = Some(vec![shape.namespace.as_str()]);
    Same {
        rule: GroupRule::Spread {
            max_skew: spread.max_skew.max(1),
            min_domains: spread.min_domains.unwrap_or(1),
        },
        preference: spread.schedule_anyway.then_some(SPREAD_WISH_WEIGHT),
        key: &spread.topology_key,
        filter: filter(shape, spread),
        selects: vec![Select { namespaces, selector: Some(&spread.selector) }],
    }
}

fn term_rule<'a>(
    rule: GroupRule,
    preference: Option<i64>,
    term: &'a PodAffinityTerm,
    selects: Vec<Select<'a>>,
) -> Same<'a> {
    Same { rule, preference, key: &term.topology_key, filter: NodeFilter::default(), selects }
}

fn select<'a>(shape: &'a PodShape, term: &'a PodAffinityTerm) -> Select<'a> {
    let namespaces = match &term.namespaces {
        Namespaces::Own => Some(vec![shape.namespace.as_str()]),
        Namespaces::All => None,
        Namespaces::Listed(names) => Some(names.iter().map(String::as_str).collect()),
    };
    Select { namespaces, selector: term.selector.as_ref() }
}

fn filter(shape: &PodShape, spread: &TopologySpread) -> NodeFilter {
    let hard = shape.topology_spread.iter().filter(|other| !other.schedule_anyway);
    let mut keys: Vec<String> = hard.map(|other| other.topology_key.clone()).collect();
    keys.sort_unstable();
    keys.dedup();
    NodeFilter {
        alternatives: spread.honor_node_affinity.then(|| shape.affinity_alternatives()),
        tolerations: spread.honor_node_taints.then(|| shape.tolerations.clone()),
        keys,
    }
}

impl Select<'_> {
    fn selects(&self, shape: &PodShape) -> bool {
        let named = self.namespaces.as_ref();
        named.is_none_or(|names| names.contains(&shape.namespace.as_str()))
            && self.selector.is_some_and(|selector| selector.selects(&shape.labels))
    }
}

/// Shapes by label.
struct Index<'a> {
    shapes: &'a [&'a PodShape],
    by_label: BTreeMap<(&'a str, &'a str), Vec<usize>>,
}

impl<'a> Index<'a> {
    fn new(shapes: &'a [&'a PodShape]) -> Self {
        let mut by_label: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (index, shape) in shapes.iter().enumerate() {
            for (key, value) in &shape.labels {
                by_label.entry((key, value)).or_default().push(index);
            }
        }
        Self { shapes, by_label }
    }

    fn members(&self, selects: &[Select<'_>]) -> ShapeSet {
        let labels = selects.iter().filter_map(|select| select.selector).flat_map(equalities);
        let lists = labels.map(|label| self.by_label.get(&label).map_or(&[][..], Vec::as_slice));
        let all = |shape: &usize| selects.iter().all(|s| s.selects(self.shapes[*shape]));
        match lists.min_by_key(|list| list.len()) {
            Some(list) => ShapeSet::of(list.iter().copied().filter(all)),
            None => ShapeSet::of((0..self.shapes.len()).filter(all)),
        }
    }
}

/// Labels that everything selected has.
fn equalities(selector: &LabelSelector) -> impl Iterator<Item = (&str, &str)> {
    let plain = selector.match_labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let expressions = selector.match_expressions.iter();
    let single = expressions.filter_map(|(key, wanted)| Some((key.as_str(), wanted.single()?)));
    plain.chain(single)
}
