//! Affinity and topology spread: how a pod relates to nodes and to other pods.
//!
//! Invariant: label keys that a term only names are merged into its selector here, and namespace
//! selectors are resolved to namespaces, so that the planner sees plain selectors.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use longshore_proto::types::v1::{
    LabelSelector, Operator, PodAffinityTerm, PreferredTerm, Requirement, RequirementTerm,
    TopologySpread,
};

use super::fault::{FieldFault, FieldResult, Problem};
use super::requirement;
use super::surroundings::Surroundings;

/// Where required node affinity stands in a pod.
const REQUIRED: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";

/// What terms are read against.
pub struct Scope<'a> {
    /// Labels of the pod, transient ones included.
    pub labels: &'a BTreeMap<String, String>,
    /// Namespaces of the cluster.
    pub around: &'a Surroundings,
}

/// The four lists of pod affinity.
#[derive(Default)]
pub struct PodAffinities {
    /// Required affinity.
    pub required: Vec<PodAffinityTerm>,
    /// Required anti-affinity.
    pub required_anti: Vec<PodAffinityTerm>,
    /// Preferred affinity.
    pub preferred: Vec<PodAffinityTerm>,
    /// Preferred anti-affinity.
    pub preferred_anti: Vec<PodAffinityTerm>,
}

/// Topology spread constraints of a pod. One without a selector counts no pods, so it bounds
/// nothing.
///
/// # Errors
/// A selector that cannot be read.
pub fn spreads(
    list: Option<&[core::TopologySpreadConstraint]>,
    scope: &Scope<'_>,
) -> FieldResult<Vec<TopologySpread>> {
    let counting = list.unwrap_or_default().iter().filter(|from| from.label_selector.is_some());
    counting.map(|constraint| spread(constraint, scope)).collect()
}

fn spread(from: &core::TopologySpreadConstraint, scope: &Scope<'_>) -> FieldResult<TopologySpread> {
    let keys = Keys { matching: from.match_label_keys.as_deref(), mismatching: None };
    let selector = merged(from.label_selector.as_ref(), &keys, scope)
        .map_err(|f| f.within("spec.topologySpreadConstraints"))?;
    let honors =
        |policy: &Option<String>, default: &str| policy.as_deref().unwrap_or(default) == "Honor";
    Ok(TopologySpread {
        max_skew: from.max_skew,
        topology_key: crate::names::canonical(&from.topology_key).to_owned(),
        schedule_anyway: from.when_unsatisfiable == "ScheduleAnyway",
        selector,
        min_domains: from.min_domains,
        honor_node_affinity: honors(&from.node_affinity_policy, "Honor"),
        honor_node_taints: honors(&from.node_taints_policy, "Ignore"),
    })
}

/// Pod affinity and anti-affinity of a pod.
///
/// # Errors
/// A selector that cannot be read.
pub fn pod_affinities(
    affinity: Option<&core::Affinity>,
    scope: &Scope<'_>,
) -> FieldResult<PodAffinities> {
    let mut out = PodAffinities::default();
    let Some(affinity) = affinity else { return Ok(out) };
    if let Some(a) = &affinity.pod_affinity {
        let required = a.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = a.preferred_during_scheduling_ignored_during_execution.as_deref();
        out.required = required_terms(required, scope)?;
        out.preferred = preferred_terms(preferred, scope)?;
    }
    if let Some(a) = &affinity.pod_anti_affinity {
        let required = a.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = a.preferred_during_scheduling_ignored_during_execution.as_deref();
        out.required_anti = required_terms(required, scope)?;
        out.preferred_anti = preferred_terms(preferred, scope)?;
    }
    Ok(out)
}

fn required_terms(
    list: Option<&[core::PodAffinityTerm]>,
    scope: &Scope<'_>,
) -> FieldResult<Vec<PodAffinityTerm>> {
    list.unwrap_or_default().iter().map(|t| term(t, 0, scope)).collect()
}

fn preferred_terms(
    list: Option<&[core::WeightedPodAffinityTerm]>,
    scope: &Scope<'_>,
) -> FieldResult<Vec<PodAffinityTerm>> {
    list.unwrap_or_default().iter().map(|t| term(&t.pod_affinity_term, t.weight, scope)).collect()
}

fn term(
    from: &core::PodAffinityTerm,
    weight: i32,
    scope: &Scope<'_>,
) -> FieldResult<PodAffinityTerm> {
    let keys = Keys {
        matching: from.match_label_keys.as_deref(),
        mismatching: from.mismatch_label_keys.as_deref(),
    };
    let mut out = PodAffinityTerm {
        topology_key: crate::names::canonical(&from.topology_key).to_owned(),
        selector: merged(from.label_selector.as_ref(), &keys, scope)
            .map_err(|f| f.within("spec.affinity"))?,
        namespaces: from.namespaces.clone().unwrap_or_default(),
        all_namespaces: false,
        weight,
    };
    let Some(selector) = &from.namespace_selector else { return Ok(out) };
    let selector =
        requirement::selector(selector).map_err(|f| f.within("spec.affinity.namespaceSelector"))?;
    if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
        out.namespaces.clear();
        out.all_namespaces = true;
        return Ok(out);
    }
    let known = scope.around.namespaces.iter();
    let chosen = known.filter(|(_, labels)| requirement::selects(&selector, labels));
    out.namespaces.extend(chosen.map(|(name, _)| name.clone()));
    out.namespaces.sort();
    out.namespaces.dedup();
    if out.namespaces.is_empty() {
        // No namespace matches, and an empty list would mean the pod's own.
        out.selector = None;
    }
    Ok(out)
}

/// Label keys whose values on the pod itself become part of a selector.
struct Keys<'a> {
    matching: Option<&'a [String]>,
    mismatching: Option<&'a [String]>,
}

fn merged(
    from: Option<&meta::LabelSelector>,
    keys: &Keys<'_>,
    scope: &Scope<'_>,
) -> FieldResult<Option<LabelSelector>> {
    let Some(from) = from else { return Ok(None) };
    let mut selector = requirement::selector(from)?;
    let lists = [(keys.matching, Operator::In), (keys.mismatching, Operator::NotIn)];
    for (list, operator) in lists {
        for key in list.unwrap_or_default() {
            let Some(value) = scope.labels.get(key) else { continue };
            let merged = Requirement {
                key: key.clone(),
                operator: operator.into(),
                values: vec![value.clone()],
                min_values: None,
            };
            // The API server may have merged it already.
            if !selector.match_expressions.contains(&merged) {
                selector.match_expressions.push(merged);
            }
        }
    }
    Ok(Some(selector))
}

/// Preferred node affinity of a pod.
///
/// # Errors
/// An expression that cannot be read.
pub fn preferred_nodes(affinity: Option<&core::NodeAffinity>) -> FieldResult<Vec<PreferredTerm>> {
    let list = affinity
        .and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_deref())
        .unwrap_or_default();
    let field = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";
    list.iter()
        .filter_map(|term| Some((term.weight, term.preference.match_expressions.as_deref()?)))
        .map(|(weight, list)| {
            let requirements = requirement::expressions(list).map_err(|f| f.within(field))?;
            Ok(PreferredTerm { weight, requirements })
        })
        .collect()
}

/// Required node affinity of a pod: alternatives.
///
/// # Errors
/// An expression that cannot be read, or terms of which none can be had by labels.
pub fn required_nodes(affinity: Option<&core::NodeAffinity>) -> FieldResult<Vec<RequirementTerm>> {
    let Some(required) = required(affinity) else { return Ok(Vec::new()) };
    let mut by_labels = required.clone();
    by_labels.node_selector_terms.retain(|term| {
        // The name of a node to come is not known, so such an alternative is out of reach.
        term.match_fields.as_ref().is_none_or(Vec::is_empty)
    });
    let terms = requirement::node_terms(&by_labels).map_err(|f| f.within(REQUIRED))?;
    if terms.is_empty() {
        return Err(FieldFault::new(
            REQUIRED,
            Problem::Unknown {
                value: "matchFields".to_owned(),
                allowed: "matchExpressions: the name of a node to come is not known",
            },
        ));
    }
    Ok(terms)
}

/// The same for pods of a DaemonSet, each of which names its node beside what the DaemonSet asks
/// for.
///
/// # Errors
/// An expression that cannot be read.
pub fn required_by_daemons(
    affinity: Option<&core::NodeAffinity>,
) -> FieldResult<Vec<RequirementTerm>> {
    let Some(required) = required(affinity) else { return Ok(Vec::new()) };
    requirement::node_terms(required).map_err(|f| f.within(REQUIRED))
}

fn required(affinity: Option<&core::NodeAffinity>) -> Option<&core::NodeSelector> {
    affinity?.required_during_scheduling_ignored_during_execution.as_ref()
}
