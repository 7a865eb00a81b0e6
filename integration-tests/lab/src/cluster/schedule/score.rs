//! Which of the nodes that fit is best: kube-scheduler's default scores and weights.
//!
//! Invariant: equal scores are settled by node name, so that a run replays.

use serde_json::Value;

use super::filter::count;
use super::nodes::{NodeInfo, Nodes};
use super::pod::PodView;
use super::quantity::Resources;

const SCORE_MAX: i64 = 100;
const TAINT_WEIGHT: i64 = 3;
const NODE_AFFINITY_WEIGHT: i64 = 2;
const SPREAD_WEIGHT: i64 = 2;
const POD_AFFINITY_WEIGHT: i64 = 2;

/// A node that fits.
pub type Candidate<'a> = (&'a str, &'a NodeInfo, &'a Value);

/// The name of the best candidate.
pub fn best<'a>(pod: &PodView, candidates: &[Candidate<'a>], nodes: &Nodes) -> Option<&'a str> {
    let mut totals: Vec<i64> =
        candidates.iter().map(|(_, node, _)| resource_score(pod, node)).collect();
    let soft = |node: &NodeInfo| {
        let prefers = |taint: &&super::shape::Taint| taint.effect == "PreferNoSchedule";
        let untolerated = node.taints.iter().filter(prefers).filter(|t| !pod.shape.tolerates(t));
        -i64::try_from(untolerated.count()).unwrap_or(0)
    };
    add_normalised(&mut totals, candidates, TAINT_WEIGHT, |(_, node, _)| soft(node));
    let preferred = &pod.shape.preferred_node_terms;
    if !preferred.is_empty() {
        let affinity = |value: &Value| -> i64 {
            preferred.iter().filter(|(_, term)| term.matches(value)).map(|(weight, _)| weight).sum()
        };
        add_normalised(&mut totals, candidates, NODE_AFFINITY_WEIGHT, |(_, _, v)| affinity(v));
    }
    for constraint in pod.shape.spread.iter().filter(|constraint| !constraint.is_required) {
        let counts = count(pod, constraint, nodes);
        add_normalised(&mut totals, candidates, SPREAD_WEIGHT, |(_, node, _)| {
            let domain = node.label(&constraint.topology_key);
            domain
                .map_or(i64::MIN / 4, |domain| -counts.by_domain.get(domain).copied().unwrap_or(0))
        });
    }
    if !pod.shape.preferred_pod_terms.is_empty() {
        add_normalised(&mut totals, candidates, POD_AFFINITY_WEIGHT, |(_, node, _)| {
            neighbours(pod, node, nodes)
        });
    }
    let ranked = candidates.iter().zip(&totals);
    ranked.max_by_key(|((name, _, _), total)| (**total, std::cmp::Reverse(*name))).map(|(c, _)| c.0)
}

/// Scales raw scores to 0..100 over the candidates and adds them with a weight.
fn add_normalised<'a>(
    totals: &mut [i64],
    candidates: &[Candidate<'a>],
    weight: i64,
    raw: impl Fn(&Candidate<'a>) -> i64,
) {
    let scores: Vec<i64> = candidates.iter().map(raw).collect();
    let (low, high) = match (scores.iter().min(), scores.iter().max()) {
        (Some(low), Some(high)) if low < high => (*low, *high),
        _ => return,
    };
    let span = i128::from(high) - i128::from(low);
    for (total, score) in totals.iter_mut().zip(scores) {
        let scaled = (i128::from(score) - i128::from(low)) * i128::from(SCORE_MAX) / span;
        *total += weight * i64::try_from(scaled).unwrap_or(0);
    }
}

/// Least-allocated plus balanced-allocation, as the default profile has them.
fn resource_score(pod: &PodView, node: &NodeInfo) -> i64 {
    let mut after: Resources = node.used.clone();
    after.add(&pod.shape.requests);
    let used_share = |name: &str| {
        let capacity = i128::from(node.allocatable.get(name).max(1));
        let used = i128::from(after.get(name)) * i128::from(SCORE_MAX) / capacity;
        i64::try_from(used).unwrap_or(SCORE_MAX).clamp(0, SCORE_MAX)
    };
    let (cpu, memory) = (used_share("cpu"), used_share("memory"));
    let least = (2 * SCORE_MAX - cpu - memory) / 2;
    let balanced = SCORE_MAX - (cpu - memory).abs() / 2;
    least + balanced
}

/// Weighted matches of the pod's preferred terms in the node's domains.
fn neighbours(pod: &PodView, node: &NodeInfo, nodes: &Nodes) -> i64 {
    let mut score = 0;
    for (weight, term) in &pod.shape.preferred_pod_terms {
        let Some(domain) = node.label(&term.topology_key) else { continue };
        for (_, other, _) in nodes.existing() {
            if other.label(&term.topology_key) == Some(domain) {
                let matching = other.pods.values().filter(|pod| term.matches(pod.value())).count();
                score += weight * i64::try_from(matching).unwrap_or(0);
            }
        }
    }
    score
}
