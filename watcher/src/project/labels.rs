//! Which labels of a pod belong to its shape.
//!
//! Invariant: two kinds of label stay out of a shape unless the pod's own constraints name them:
//! those that differ between replicas, of which every rollout and every job would make new shapes,
//! and those copied from the node at binding, which no waiting pod has.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Affinity, PodAffinityTerm, PodSpec};

/// Labels that controllers write to tell generations or instances of pods apart, and those that the
/// API server copies from the node when it binds a pod.
const TRANSIENT: [&str; 10] = [
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-completion-index",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// Labels of the shape of a pod with these labels.
#[must_use]
pub fn lasting(
    labels: Option<&BTreeMap<String, String>>,
    spec: &PodSpec,
) -> BTreeMap<String, String> {
    let referred = referred(spec);
    let stays = |key: &str| !TRANSIENT.contains(&key) || referred.contains(key);
    labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| stays(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Label keys that the pod's own constraints look at.
fn referred(spec: &PodSpec) -> BTreeSet<&str> {
    let spreads = spec.topology_spread_constraints.iter().flatten();
    let spreads = spreads.map(|s| (s.label_selector.as_ref(), s.match_label_keys.as_ref()));
    let terms = spec.affinity.iter().flat_map(affinity_terms);
    let terms = terms.flat_map(|t| {
        let selector = t.label_selector.as_ref();
        [(selector, t.match_label_keys.as_ref()), (None, t.mismatch_label_keys.as_ref())]
    });
    let mut keys = BTreeSet::new();
    for (selector, extra) in spreads.chain(terms) {
        keys.extend(extra.into_iter().flatten().map(String::as_str));
        let Some(selector) = selector else { continue };
        keys.extend(selector.match_labels.iter().flatten().map(|(key, _)| key.as_str()));
        keys.extend(selector.match_expressions.iter().flatten().map(|r| r.key.as_str()));
    }
    keys
}

/// Every term of pod affinity and anti-affinity, required and preferred.
pub fn affinity_terms(affinity: &Affinity) -> impl Iterator<Item = &PodAffinityTerm> {
    let affine = affinity.pod_affinity.iter().flat_map(|a| {
        let required = a.required_during_scheduling_ignored_during_execution.iter().flatten();
        let preferred = a.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        required.chain(preferred.map(|w| &w.pod_affinity_term))
    });
    let apart = affinity.pod_anti_affinity.iter().flat_map(|a| {
        let required = a.required_during_scheduling_ignored_during_execution.iter().flatten();
        let preferred = a.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        required.chain(preferred.map(|w| &w.pod_affinity_term))
    });
    affine.chain(apart)
}
