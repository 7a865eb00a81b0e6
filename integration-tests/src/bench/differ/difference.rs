//! The named differences from Karpenter that may make a plan look worse, and how each is told from
//! a defect.
//!
//! Invariant: a name is given only when ours is not worse once the thing named is taken out of the
//! cluster, for both sides. Each name stands in docs/karpenter-differences.md with its reason.

use serde_json::{Value, json};

/// A difference on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Difference {
    /// The peer answers another time otherwise, and no better than ours.
    Chance,
    /// The peer charges limits with types that it will not buy, and so leaves a heavier pool early.
    Limits,
    /// The peer looks at one of several required node-affinity terms, and so spreads over its zones
    /// only.
    Terms,
}

impl Difference {
    /// Those that something in a cluster brings about.
    pub(super) const IN_CLUSTERS: [Self; 2] = [Self::Limits, Self::Terms];
    /// All of them.
    #[cfg(test)]
    pub(super) const ALL: [Self; 3] = [Self::Chance, Self::Limits, Self::Terms];

    /// As the document calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Chance => "chance",
            Self::Limits => "limits",
            Self::Terms => "first-term",
        }
    }

    /// The cluster without what brings the difference about; none when there is no such thing in
    /// it.
    pub(super) fn taken_out(self, cluster: &Value) -> Option<Value> {
        let mut without = cluster.clone();
        for item in without["items"].as_array_mut()? {
            match self {
                Self::Chance => {}
                Self::Limits => drop_limits(item),
                Self::Terms => keep_first_term(item),
            }
        }
        (without != *cluster).then_some(without)
    }
}

/// Limits of pools with a weight: those without are the last resort of both sides.
fn drop_limits(item: &mut Value) {
    if item["kind"] == "NodePool" && item["spec"]["weight"].is_number() {
        item["spec"].as_object_mut().map(|spec| spec.remove("limits"));
    }
}

/// All but the first required term of waiting pods that spread.
fn keep_first_term(item: &mut Value) {
    const TERMS: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                         /nodeSelectorTerms";
    let spreads = item.pointer("/spec/topologySpreadConstraints").is_some();
    let Some(terms) = item.pointer_mut(TERMS).filter(|_| spreads) else { return };
    let first = terms.get(0).cloned().unwrap_or_default();
    *terms = json!([first]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_documented() {
        let document = include_str!("../../../../docs/karpenter-differences.md");
        for difference in Difference::ALL {
            let row = format!("| `{}` |", difference.name());
            assert!(document.contains(&row), "no line begins with {row}");
        }
    }

    #[test]
    fn what_is_not_there_cannot_be_taken_out() {
        let pool = |spec: Value| json!({"items": [{"kind": "NodePool", "spec": spec}]});
        let limited = pool(json!({"weight": 5, "limits": {"cpu": "8"}}));
        assert_eq!(Difference::Limits.taken_out(&limited), Some(pool(json!({"weight": 5}))));
        assert_eq!(Difference::Limits.taken_out(&pool(json!({"limits": {"cpu": "8"}}))), None);
        assert_eq!(Difference::Terms.taken_out(&limited), None);
    }

    #[test]
    fn the_first_term_stays() {
        let pod = |terms: Value| {
            json!({"items": [{"kind": "Pod", "spec": {
                "topologySpreadConstraints": [],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                    {"nodeSelectorTerms": terms}}},
            }}]})
        };
        assert_eq!(Difference::Terms.taken_out(&pod(json!([1, 2]))), Some(pod(json!([1]))));
        assert_eq!(Difference::Terms.taken_out(&pod(json!([1]))), None);
    }
}
