//! Whether a pod may run on a node, and if not, why: the predicates of kube-scheduler.
//!
//! Invariant: the reasons are kube-scheduler's own words, since people and tools read them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::nodes::{NodeInfo, Nodes};
use super::pod::PodView;
use super::quantity::Resources;
use super::shape::{Spread, Taint};

/// What has to be known of all nodes before one can be judged for a pod.
#[derive(Debug)]
pub struct Judgement<'a> {
    pod: &'a PodView,
    spread: Vec<(&'a Spread, SpreadCount)>,
    attracted: Vec<(&'a str, Attraction)>,
    repelled: BTreeSet<(String, String)>,
}

/// Matching pods in each domain of one constraint.
#[derive(Debug, Default)]
pub struct SpreadCount {
    /// Pods by domain; domains without pods are in it.
    pub by_domain: BTreeMap<String, i64>,
    smallest: i64,
    counts_itself: i64,
}

/// Domains that satisfy one affinity term.
#[derive(Debug)]
struct Attraction {
    domains: BTreeSet<String>,
    /// No pod matches anywhere and the pod matches its own term: any domain will do.
    is_first: bool,
}

impl<'a> Judgement<'a> {
    /// Gathers what the pod's constraints need.
    pub fn prepare(pod: &'a PodView, nodes: &Nodes) -> Self {
        let shape = &pod.shape;
        let required = shape.spread.iter().filter(|constraint| constraint.is_required);
        Self {
            pod,
            spread: required
                .map(|constraint| (constraint, count(pod, constraint, nodes)))
                .collect(),
            attracted: shape
                .affinity
                .iter()
                .map(|term| (term.topology_key.as_str(), attraction(pod, term, nodes)))
                .collect(),
            repelled: repelled(pod, nodes),
        }
    }

    /// Reasons why the pod may not run on the node; empty when it may.
    pub fn reasons(&self, node: &NodeInfo, object: &Value) -> Vec<String> {
        let shape = &self.pod.shape;
        if node.is_unschedulable && !shape.tolerates(&unschedulable_taint()) {
            return vec!["node(s) were unschedulable".into()];
        }
        let hard = |taint: &&Taint| taint.effect != "PreferNoSchedule";
        if let Some(taint) = node.taints.iter().filter(hard).find(|taint| !shape.tolerates(taint)) {
            return vec![format!(
                "node(s) had untolerated taint {{{}: {}}}",
                taint.key, taint.value
            )];
        }
        if !shape.selects(object) {
            return vec!["node(s) didn't match Pod's node affinity/selector".into()];
        }
        let taken =
            |port: &String| node.pods.values().any(|pod| pod.shape.host_ports.contains(port));
        if shape.host_ports.iter().any(taken) {
            return vec!["node(s) didn't have free ports for the requested pod ports".into()];
        }
        let lacking = self.lacking(node);
        if !lacking.is_empty() {
            return lacking;
        }
        self.topology_reason(node).into_iter().map(str::to_owned).collect()
    }

    /// Resources that are short, nominated pods of equal or higher priority counted.
    fn lacking(&self, node: &NodeInfo) -> Vec<String> {
        let ahead =
            |pod: &&Arc<PodView>| pod.priority >= self.pod.priority && pod.key != self.pod.key;
        let mut reserved = Resources::default();
        node.nominated.values().filter(ahead).for_each(|pod| reserved.add(&pod.shape.requests));
        let requests = &self.pod.shape.requests;
        let short = |(name, amount): &(&str, i64)| {
            let free = node.allocatable.get(name) - node.used.get(name) - reserved.get(name);
            *amount > 0 && *amount > free
        };
        let reason = |(name, _): (&str, i64)| match name {
            "pods" => "Too many pods".to_owned(),
            name => format!("Insufficient {name}"),
        };
        requests.entries().filter(short).map(reason).collect()
    }

    fn topology_reason(&self, node: &NodeInfo) -> Option<&'static str> {
        for (constraint, count) in &self.spread {
            let Some(domain) = node.label(&constraint.topology_key) else {
                return Some(
                    "node(s) didn't match pod topology spread constraints (missing required label)",
                );
            };
            let here = count.by_domain.get(domain).copied().unwrap_or(0);
            if here + count.counts_itself - count.smallest > constraint.max_skew {
                return Some("node(s) didn't match pod topology spread constraints");
            }
        }
        let attracts = |(key, attraction): &(&str, Attraction)| {
            node.label(key)
                .is_some_and(|value| attraction.is_first || attraction.domains.contains(value))
        };
        if !self.attracted.iter().all(attracts) {
            return Some("node(s) didn't match pod affinity rules");
        }
        let repels =
            |(key, value): &(String, String)| node.label(key).is_some_and(|here| here == value);
        self.repelled.iter().any(repels).then_some("node(s) didn't match pod anti-affinity rules")
    }
}

fn unschedulable_taint() -> Taint {
    Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: String::new(),
        effect: "NoSchedule".into(),
    }
}

/// Counts matching pods by domain for one spread constraint.
pub fn count(pod: &PodView, constraint: &Spread, nodes: &Nodes) -> SpreadCount {
    let mut count = SpreadCount::default();
    let namespace = &pod.key.namespace;
    let counted = |other: &&Arc<PodView>| {
        other.key.namespace == *namespace
            && !other.is_deleting
            && constraint.selector.matches_object(other.value())
    };
    for (_, node, value) in nodes.existing() {
        let Some(domain) = node.label(&constraint.topology_key) else { continue };
        let is_eligible = (!constraint.honours_affinity || pod.shape.selects(value))
            && (!constraint.honours_taints || node.taints.iter().all(|t| pod.shape.tolerates(t)));
        if !is_eligible {
            continue;
        }
        let here = node.pods.values().filter(counted).count();
        let total = count.by_domain.entry(domain.to_owned()).or_insert(0);
        *total += i64::try_from(here).unwrap_or(i64::MAX);
    }
    let smallest = count.by_domain.values().min().copied().unwrap_or(0);
    count.smallest = if count.by_domain.len() < constraint.min_domains { 0 } else { smallest };
    count.counts_itself = i64::from(constraint.selector.matches_object(pod.value()));
    count
}

fn attraction(pod: &PodView, term: &super::shape::PodTerm, nodes: &Nodes) -> Attraction {
    let mut domains = BTreeSet::new();
    for (_, node, _) in nodes.existing() {
        let Some(domain) = node.label(&term.topology_key) else { continue };
        if !domains.contains(domain) && node.pods.values().any(|other| term.matches(other.value()))
        {
            domains.insert(domain.to_owned());
        }
    }
    let is_first = domains.is_empty() && term.matches(pod.value());
    Attraction { domains, is_first }
}

/// Domains closed to the pod by its own anti-affinity and by that of pods already there.
fn repelled(pod: &PodView, nodes: &Nodes) -> BTreeSet<(String, String)> {
    let mut closed = BTreeSet::new();
    for term in &pod.shape.anti_affinity {
        for (_, node, _) in nodes.existing() {
            if let Some(domain) = node.label(&term.topology_key)
                && node.pods.values().any(|other| term.matches(other.value()))
            {
                closed.insert((term.topology_key.clone(), domain.to_owned()));
            }
        }
    }
    for other in nodes.repelling() {
        let Some((node, _)) = nodes.get(&other.node) else { continue };
        let against = other.shape.anti_affinity.iter().filter(|term| term.matches(pod.value()));
        for term in against {
            if let Some(domain) = node.label(&term.topology_key) {
                closed.insert((term.topology_key.clone(), domain.to_owned()));
            }
        }
    }
    closed
}

/// kube-scheduler's message for a pod that fits nowhere.
pub fn message(reasons: &BTreeMap<String, usize>, nodes: usize) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut parts: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    parts.sort();
    let resolvable: usize = reasons
        .iter()
        .filter(|(reason, _)| reason.starts_with("Insufficient") || *reason == "Too many pods")
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0);
    let mut preemption = Vec::new();
    if resolvable > 0 {
        preemption.push(format!("{resolvable} No preemption victims found for incoming pod"));
    }
    if nodes > resolvable {
        preemption.push(format!("{} Preemption is not helpful for scheduling", nodes - resolvable));
    }
    format!(
        "0/{nodes} nodes are available: {}. preemption: 0/{nodes} nodes are available: {}.",
        parts.join(", "),
        preemption.join(", ")
    )
}
